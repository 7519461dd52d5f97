/** What the HLS (MPEG-TS) publisher needs of its application's configuration. */

import type { CrossDomainRules } from '../../../../delivery/outlet/messages.ts';
import type { DumpsSettings } from '../../dump/wanted-dumps.ts';

/** `Cache-Control` in seconds: -1 no header, 0 `no-cache, no-store`, more `max-age`. */
export interface HlsCacheControl {
  readonly masterPlaylistMaxAge: number;
  readonly chunklistMaxAge: number;
  readonly segmentMaxAge: number;
}

/** Rewinding beyond the segments in memory. */
export interface HlsDvrSettings {
  readonly enable: boolean;
  /** Directory for segments that left memory. */
  readonly tempStoragePath: string;
  /** Seconds of media that stay playable. */
  readonly maxDuration: number;
  /** Rewindable playlists say that they are of the type EVENT. */
  readonly eventPlaylistType: boolean;
}

/** The `HLS` element of an application's publishers. */
export interface HlsSettings {
  /** Seconds. */
  readonly segmentDuration: number;
  /** Segments a playlist lists. */
  readonly segmentCount: number;
  readonly createDefaultPlaylist: boolean;
  readonly crossDomains?: CrossDomainRules | undefined;
  readonly cacheControl?: HlsCacheControl | undefined;
  readonly dVR?: HlsDvrSettings | undefined;
  readonly dumps?: DumpsSettings;
  readonly defaultQueryString?: { readonly queries: readonly { readonly key: string; readonly value: string }[] } | undefined;
}

/** What the view in an egress thread gets of them. */
export interface HlsViewSettings {
  readonly segmentDuration: number;
  readonly segmentCount: number;
  readonly cacheControl: HlsCacheControl;
  /** Rewindable playlists list everything there is. */
  readonly dvr: boolean;
  readonly eventPlaylistType: boolean;
  /** Whether playlists are rewindable when the client does not say. */
  readonly defaultRewind: boolean;
}

/** By default the headers are left to the CDN. */
const NO_CACHE_CONTROL: HlsCacheControl = { masterPlaylistMaxAge: -1, chunklistMaxAge: -1, segmentMaxAge: -1 };

/** Name of the query value that asks for a rewindable playlist. */
export const REWIND_KEY = '_HLS_rewind';

/** Derives the view's settings. */
export function viewSettings(settings: HlsSettings): HlsViewSettings {
  const { segmentDuration, segmentCount, cacheControl = NO_CACHE_CONTROL, dVR, defaultQueryString } = settings;
  const dvr = dVR?.enable === true;
  return {
    segmentDuration,
    segmentCount,
    cacheControl,
    dvr,
    eventPlaylistType: dvr && dVR.eventPlaylistType,
    defaultRewind: defaultQueryString?.queries.find(({ key }) => key === REWIND_KEY)?.value !== 'NO',
  };
}
