/** The packager's updates for the views of a stream. One feed update carries a list of these, in order. */
import type { Span } from '../../../../delivery/feed/messages.ts';
import type { MediaType } from './resource-name.ts';

/** A multivariant playlist; `text` has `TAIL_MARK` where a client's query belongs. */
export interface MultivariantText {
  readonly fileName: string;
  readonly text: string;
}

/** One change of the model; applied in order it makes the same model everywhere. */
export type LlhlsUpdate =
  /** The stream has tracks: these playlists will be served once it is `playable`. */
  | { readonly type: 'multivariant'; readonly playlists: readonly MultivariantText[] }
  /** Players can start; durations in seconds. Sent once. */
  | { readonly type: 'playable'; readonly targetDuration: number; readonly partHoldBack: number }
  | { readonly type: 'track'; readonly trackId: number; readonly mediaType: MediaType }
  /** The track left the stream and is no longer served. */
  | { readonly type: 'track-gone'; readonly trackId: number }
  | { readonly type: 'part-target'; readonly trackId: number; readonly seconds: number }
  | { readonly type: 'init'; readonly trackId: number; readonly generation: number; readonly bytes: Uint8Array }
  | {
      readonly type: 'segment-open';
      readonly trackId: number;
      readonly msn: number;
      /** Wall clock of the first frame, ms since the epoch. */
      readonly startTime: number;
      readonly generation: number;
      readonly discontinuity: boolean;
      /** The source sent nothing for this time: the segment stays without media (EXT-X-GAP). */
      readonly gap: boolean;
      /** Lines of the media playlist before the segment, for anything that begins or ends with it; mostly ''. */
      readonly tags: string;
    }
  | {
      readonly type: 'part';
      readonly trackId: number;
      readonly msn: number;
      readonly part: number;
      /** Seconds. */
      readonly duration: number;
      readonly independent: boolean;
      /** The packager expects the segment to end behind this part. */
      readonly likelyLast: boolean;
      readonly spans: readonly Span[];
    }
  /**
   * The open segment of the track is complete; `duration` in seconds. `whole` are the bytes of a segment that is not the sum of its parts.
   */
  | { readonly type: 'segment-close'; readonly trackId: number; readonly duration: number; readonly whole?: readonly Span[] }
  /** The oldest segment leaves the playlists; the segment that left before it is released. */
  | { readonly type: 'retire'; readonly trackId: number }
  /** The bytes of the segment are in a file now and no longer in memory. */
  | { readonly type: 'archive'; readonly trackId: number; readonly msn: number; readonly path: string }
  /** Number of discontinuities before the oldest segment: only in snapshots. */
  | { readonly type: 'discontinuities'; readonly trackId: number; readonly count: number }
  /** The stream has ended: playlists end. */
  | { readonly type: 'conclude' };

/** Placeholder of a client's query in playlist texts; no URI contains it. */
export const TAIL_MARK = '\u0001';
