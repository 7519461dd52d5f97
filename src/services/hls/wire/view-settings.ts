/** The part of the configuration that views in the delivery threads need. */
import {
  type CacheControlSettings,
  EXTRA_SEGMENTS,
  type HlsSettings,
  type LlhlsCacheControlSettings,
  type LlhlsSettings,
  type PackagingSettings,
} from './settings.ts';

/** Settings of both views. */
interface ViewSettings {
  /** Complete segments listed when the client does not rewind. */
  readonly segmentCount: number;
  /** Whether playlists are rewindable when the client does not say. */
  readonly defaultRewind: boolean;
  readonly cacheControl: CacheControlSettings;
}

/** Settings of the view of LL-HLS. */
export interface LlhlsViewSettings extends ViewSettings {
  /** Distinguishes the names of this run of the stream from those of the next run. */
  readonly runMark: string;
  readonly originMode: boolean;
  readonly enablePreloadHint: boolean;
  /** Complete segments a playlist can reach when the client rewinds; decides whether delta updates pay. */
  readonly rewindSegmentCount: number;
  readonly cacheControl: LlhlsCacheControlSettings;
  readonly defaultLegacy: boolean;
}

/** Settings of the view of HLS over MPEG-TS. */
export interface HlsViewSettings extends ViewSettings {
  readonly originMode: boolean;
  /** Seconds. */
  readonly segmentDuration: number;
  /** Rewindable playlists list all segments. */
  readonly dvr: boolean;
  readonly eventPlaylistType: boolean;
}

/** Name of the query value that asks for a rewindable playlist. */
export const REWIND_KEY = '_HLS_rewind';
/** Name of the query value that asks for a playlist of complete segments only. */
export const LEGACY_KEY = '_HLS_legacy';

/** With fewer segments players of LL-HLS cannot start. */
const MIN_SEGMENT_COUNT = 3;
/** HLS leaves the headers to the CDN by default. */
const NO_CACHE_CONTROL: CacheControlSettings = { masterPlaylistMaxAge: -1, chunklistMaxAge: -1, segmentMaxAge: -1 };

/** Derives the settings of the view of LL-HLS. */
export function llhlsViewSettings(settings: LlhlsSettings, runMark: string): LlhlsViewSettings {
  const segmentCount = Math.max(MIN_SEGMENT_COUNT, settings.segmentCount);
  const dvrSegments = settings.dVR?.enable === true ? Math.floor(settings.dVR.maxDuration / Math.max(1, settings.segmentDuration)) : 0;
  return {
    runMark,
    originMode: settings.originMode,
    enablePreloadHint: settings.enablePreloadHint,
    segmentCount,
    rewindSegmentCount: Math.max(segmentCount + EXTRA_SEGMENTS - 1, dvrSegments),
    cacheControl: settings.cacheControl,
    defaultLegacy: defaultQuery(settings, LEGACY_KEY) ?? false,
    defaultRewind: defaultQuery(settings, REWIND_KEY) ?? true,
  };
}

/** Derives the settings of the view of HLS. */
export function hlsViewSettings(settings: HlsSettings): HlsViewSettings {
  const { segmentDuration, segmentCount, originMode = false, cacheControl = NO_CACHE_CONTROL, dVR, defaultQueryString } = settings;
  const dvr = dVR?.enable === true;
  return {
    originMode,
    segmentDuration,
    segmentCount,
    cacheControl,
    dvr,
    eventPlaylistType: dvr && dVR.eventPlaylistType,
    // Only upper case counts, as in the reference server.
    defaultRewind: defaultQueryString?.queries.find(({ key }) => key === REWIND_KEY)?.value !== 'NO',
  };
}

/** A default query value of LL-HLS, in any case of letters. */
function defaultQuery(settings: PackagingSettings, key: string): boolean | null {
  const query = settings.defaultQueryString?.queries.find((candidate) => candidate.key.toLowerCase() === key.toLowerCase());
  return query === undefined ? null : query.value.toUpperCase() === 'YES';
}
