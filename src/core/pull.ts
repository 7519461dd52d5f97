/** The contract of a pull source: it opens a URL and delivers media until it is closed or ends. */
import type { Logger } from '../util/logger.ts';
import { maskedUrl } from '../util/masked-url.ts';
import type { CloseReason, IngestStream } from './ingest.ts';
import type { ProviderKind, SourceType } from './kinds.ts';
import type { StreamAddress } from './stream-address.ts';

/** Receives the media of a source. Everything after `close`, or after the session was closed, is ignored. */
export interface PullSink extends Pick<IngestStream, 'setTracks' | 'push' | 'pushEvent' | 'countBytes'> {
  /** Media has arrived, even if it has to wait before it is pushed. A source without such calls counts as silent. */
  heard(): void;
  /** The source ended or failed. */
  close(reason: CloseReason): void;
}

/** One attempt at one URL; media, and the end of it, go to `sink`. */
export interface PullTarget {
  readonly url: string;
  /** Starts at once instead of waiting for the sender reports that bring audio and video together (RTSP). */
  readonly ignoreSenderReports: boolean;
  /** The provider's part of the application's configuration; its type is the provider's to know. */
  readonly settings: unknown;
  readonly sink: PullSink;
  /** Aborts the opening; without effect once `open` has resolved. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** The stream's name here; absent: the source is only probed. */
  readonly stream?: StreamAddress;
  /** The stream is served as it is. */
  readonly relay?: boolean;
  /** Ids of the servers for which the stream is pulled, the first to ask first; absent: none. */
  readonly via?: readonly string[];
}

/** A source that delivers. */
export interface PullSession {
  /** Ends the session in order, if the server still answers. Idempotent. */
  close(): void;
  /** Stops reading until `resume`, so that the server waits; absent for sources that cannot do that. */
  pause?(): void;
  resume?(): void;
}

/** A way to fetch streams. */
export interface PullSource {
  /** URL schemes, in lower case, without colon. */
  readonly schemes: readonly string[];
  readonly provider: ProviderKind;
  readonly sourceType: SourceType;
  /** Resolves when the server has agreed to send; otherwise rejects with the reason, for the log. */
  open(target: PullTarget): Promise<PullSession>;
}

/** How a pulled stream lives; times in milliseconds. */
export interface PullProperties {
  /** Kept until it is deleted: reconnects for ever, survives restarts. */
  readonly persistent: boolean;
  /** Silence of the source after which the next URL is tried. */
  readonly noInputFailoverTimeoutMs: number;
  /** Time without any viewer after which the stream is deleted. */
  readonly unusedStreamDeletionTimeoutMs: number;
  readonly ignoreRtcpSRTimestamp: boolean;
  /** Further rounds over all URLs before the stream is given up. */
  readonly retryCount: number;
  /** Tracks are bypassed, whatever output profiles the application has. */
  readonly relay: boolean;
  /** How often the first URL is tried while another one delivers; absent: never. */
  readonly failbackMs?: number;
}

/** A stream to pull. */
export interface PullDefinition {
  readonly name: string;
  /** In the order of failover; all of one scheme. */
  readonly urls: readonly string[];
  readonly properties: PullProperties;
  /** The configuration of the application asks for it, or a viewer did: it ends with the application and is not kept on disk. */
  readonly configured?: boolean;
  /** The origin map named the source. */
  readonly fromOriginMap?: boolean;
  /** Ids of the servers that asked for it, the first to ask first. */
  readonly via?: readonly string[];
  /** Finds the stream's present server when its source was lost; null if none is known. Absent: only `urls` count. Never rejects. */
  readonly successor?: () => Promise<string | null>;
}

/** No URL could be pulled; `message` is the last reason. */
export class PullFailed extends Error {
  override readonly name = 'PullFailed';
}

/** The scheme of a URL in lower case; empty when it has none. */
export function schemeOf(url: string): string {
  return /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase() ?? '';
}

/** The URL without user and password. */
export function withoutCredentials(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, '$1');
}

/** The URL for logs and answers: without user and password, and without secret values of its query. */
export function shownUrl(url: string): string {
  return maskedUrl(withoutCredentials(url));
}
