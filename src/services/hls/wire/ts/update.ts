/** The packager's updates for the views of a stream in the delivery threads. */
import type { Span } from '../../../../delivery/feed/messages.ts';

/** One line of a multivariant playlist. */
export interface HlsRenditionLine {
  /** Attribute list of EXT-X-STREAM-INF. */
  readonly attributes: string;
  readonly variant: string;
}

/** One subtitle rendition of a multivariant playlist. */
export interface HlsSubtitleLine {
  /** EXT-X-MEDIA, with `URI_MARK` for its URI. */
  readonly line: string;
  readonly variant: string;
}

/** A multivariant playlist as it is now. */
export interface HlsMultivariant {
  /** Without extension. */
  readonly fileName: string;
  readonly renditions: readonly HlsRenditionLine[];
  readonly subtitles: readonly HlsSubtitleLine[];
  /** EXT-X-MEDIA of captions in the video, whole lines; mostly ''. */
  readonly captions: string;
  /** EXT-X-VERSION. */
  readonly version: number;
}

/** A finished segment. */
export interface HlsSegment {
  readonly number: number;
  /** Seconds. */
  readonly duration: number;
  /** Wall clock of its first frame, ms since the epoch. */
  readonly startTime: number;
  /** Its parameters differ from those of the previous segment. */
  readonly discontinuity: boolean;
  /** Discontinuities of the variant so far, including its own. */
  readonly discontinuities: number;
  /** Lines of the media playlist before it, of breaks that begin or end there; mostly ''. */
  readonly tags: string;
  readonly spans: readonly Span[];
  /** File that holds it instead of `spans`; null while it is in memory. */
  readonly path: string | null;
}

/** One change of the served resources; a view that starts late gets the updates that lead to the present state. */
export type HlsUpdate =
  /** The stream has started, or its playlists have changed; variants that are not named are gone. */
  | { readonly type: 'playlists'; readonly playlists: readonly HlsMultivariant[]; readonly variants: readonly string[] }
  /** The newest segment is complete. */
  | { readonly type: 'segment'; readonly variant: string; readonly segment: HlsSegment }
  /** The bytes of a segment have moved to a file. */
  | { readonly type: 'archive'; readonly variant: string; readonly number: number; readonly path: string }
  /** Segments before `firstNumber` are gone. */
  | { readonly type: 'retire'; readonly variant: string; readonly firstNumber: number }
  /** No more segments follow. */
  | { readonly type: 'conclude' };
