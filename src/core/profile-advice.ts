/** Advice about what to make of a new stream, if the configuration does not decide that (`TranscodeWebhook`). */
import type { OutputProfilesConfig, TranscodeWebhookConfig } from '../config/index.ts';
import type { Track } from '../media/track.ts';
import type { SourceType } from './kinds.ts';
import type { TrackFigures } from './publishing.ts';
import type { StreamAddress } from './stream-address.ts';

/** A stream in a request for advice. */
export interface AdvisedStream extends StreamAddress {
  readonly sourceType: SourceType;
  readonly sourceUrl: string;
  /** Wall clock, ms. */
  readonly createdAt: number;
  readonly tracks: readonly Track[];
  figures(trackId: number): TrackFigures;
}

/** The advice: other profiles, those of the configuration, or none. Reasons are for the log. */
export type Advice =
  | { readonly kind: 'profiles'; readonly outputProfiles: OutputProfilesConfig }
  | { readonly kind: 'local'; readonly reason: string }
  | { readonly kind: 'refused'; readonly reason: string };

/** Is asked about each stream of one application, which closes it. */
export interface ProfileAdviser {
  /** Never rejects. `signal`: the result is no longer needed. */
  advise(stream: AdvisedStream, signal: AbortSignal): Promise<Advice>;
  /** Idempotent. */
  close(): void;
}

/** Makes the adviser of an application. */
export type AdviserSource = (webhook: TranscodeWebhookConfig) => ProfileAdviser;
