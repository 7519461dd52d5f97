/** Configuration of the LL-HLS and HLS publishers of an application. */
import type { CrossDomainRules } from '../../../delivery/feed/messages.ts';

/** Seconds for `Cache-Control: max-age`; -1 leaves the header out, 0 forbids caching. */
export interface CacheControlSettings {
  readonly masterPlaylistMaxAge: number;
  readonly chunklistMaxAge: number;
  readonly segmentMaxAge: number;
}

/** Settings of LL-HLS. */
export interface LlhlsCacheControlSettings extends CacheControlSettings {
  readonly chunklistWithDirectivesMaxAge: number;
  readonly partialSegmentMaxAge: number;
}

/** `<DVR>`: rewinding beyond the segments in memory. */
export interface DvrSettings {
  readonly enable: boolean;
  /** Folder for segments that left memory; empty for the server's. */
  readonly tempStoragePath: string;
  /** Seconds of media that stay playable. */
  readonly maxDuration: number;
}

/** DVR settings of HLS. */
export interface HlsDvrSettings extends DvrSettings {
  /** Rewindable playlists have the type EVENT. */
  readonly eventPlaylistType: boolean;
}

/** A dump that begins with every stream whose name matches. */
export interface DumpSettings {
  readonly enable: boolean;
  /** Takes `*` and `?`. */
  readonly targetStreamName: string;
  /** Macros are replaced. */
  readonly outputPath: string;
  readonly id?: string | undefined;
  readonly playlists?: { readonly playlist: readonly string[] } | undefined;
}

/** `<Dumps>` of a publisher; undefined where there is no such element. */
export type DumpsSettings = { readonly dump: readonly DumpSettings[] } | undefined;

/** Query values that clients need not send. */
export interface DefaultQuerySettings {
  readonly queries: readonly { readonly key: string; readonly value: string }[];
}

/** Settings of both publishers. */
export interface PackagingSettings {
  /** Seconds. */
  readonly segmentDuration: number;
  /** Complete segments that a playlist lists when the client does not rewind. */
  readonly segmentCount: number;
  readonly createDefaultPlaylist: boolean;
  readonly crossDomains?: CrossDomainRules | undefined;
  readonly dVR?: DvrSettings | undefined;
  readonly dumps?: DumpsSettings;
  readonly defaultQueryString?: DefaultQuerySettings | undefined;
}

/** `Publishers/LLHLS` of an application; durations in seconds. */
export interface LlhlsSettings extends PackagingSettings {
  readonly chunkDuration: number;
  /** 0: three part targets. */
  readonly partHoldBack: number;
  readonly originMode: boolean;
  readonly serverTimeBasedSegmentNumbering: boolean;
  readonly enablePreloadHint: boolean;
  readonly cacheControl: LlhlsCacheControlSettings;
}

/** `Publishers/HLS` of an application. */
export interface HlsSettings extends PackagingSettings {
  readonly originMode?: boolean;
  readonly serverTimeBasedSegmentNumbering?: boolean;
  readonly dVR?: HlsDvrSettings | undefined;
  readonly cacheControl?: CacheControlSettings | undefined;
}

/** Complete segments kept beyond the configured count: for rewinding a little, and for players that hold an older playlist. */
export const EXTRA_SEGMENTS = 3;

/** PART-HOLD-BACK is three part targets (rfc8216bis §4.4.3.8): a player needs as many to start. */
export const HOLD_BACK_PARTS = 3;
