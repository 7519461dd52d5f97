/** What the HLS (MPEG-TS) publisher needs of its application's configuration. */
import type { CrossDomainRules } from '../outlet/messages.ts';

/** `Cache-Control` in seconds: -1 no header, 0 `no-cache, no-store`, more `max-age`. */
export interface HlsCacheControl {
  readonly masterPlaylistMaxAge: number;
  readonly chunklistMaxAge: number;
  readonly segmentMaxAge: number;
}

/** The `HLS` element of an application's publishers. */
export interface HlsSettings {
  /** Seconds. */
  readonly segmentDuration: number;
  /** Segments a playlist lists. */
  readonly segmentCount: number;
  readonly createDefaultPlaylist: boolean;
  readonly crossDomains?: CrossDomainRules | undefined;
  readonly cacheControl?: HlsCacheControl;
}

/** What the view in an egress thread gets of them. */
export interface HlsViewSettings {
  readonly segmentDuration: number;
  readonly segmentCount: number;
  readonly cacheControl: HlsCacheControl;
}

/** By default the headers are left to the CDN. */
export const NO_CACHE_CONTROL: HlsCacheControl = { masterPlaylistMaxAge: -1, chunklistMaxAge: -1, segmentMaxAge: -1 };
