/** Configuration of the LL-HLS publisher and the part of it that egress threads need. */

import type { CrossDomainRules } from '../../../../delivery/outlet/messages.ts';
import type { DumpsSettings } from '../../dump/wanted-dumps.ts';

/** Seconds for `Cache-Control: max-age`; -1 leaves the header out, 0 forbids caching. */
export interface CacheControlSettings {
  readonly masterPlaylistMaxAge: number;
  readonly chunklistMaxAge: number;
  readonly chunklistWithDirectivesMaxAge: number;
  readonly segmentMaxAge: number;
  readonly partialSegmentMaxAge: number;
}

/** What the packager needs of `<DVR>`. */
export interface DvrSettings {
  readonly enable: boolean;
  readonly tempStoragePath: string;
  /** Seconds of media kept. */
  readonly maxDuration: number;
}

/** `Publishers/LLHLS` of an application; durations in seconds. */
export interface LlhlsSettings {
  readonly chunkDuration: number;
  /** 0: three part targets. */
  readonly partHoldBack: number;
  readonly segmentDuration: number;
  readonly segmentCount: number;
  readonly originMode: boolean;
  readonly serverTimeBasedSegmentNumbering: boolean;
  readonly createDefaultPlaylist: boolean;
  readonly enablePreloadHint: boolean;
  readonly crossDomains?: CrossDomainRules | undefined;
  readonly dVR?: DvrSettings | undefined;
  readonly dumps?: DumpsSettings;
  readonly cacheControl: CacheControlSettings;
  readonly defaultQueryString?: { readonly queries: readonly { readonly key: string; readonly value: string }[] } | undefined;
}

/** What the view in an egress thread is constructed with. */
export interface LlhlsViewSettings {
  readonly streamKey: string;
  readonly originMode: boolean;
  readonly enablePreloadHint: boolean;
  /** Complete segments listed when the client does not rewind. */
  readonly segmentCount: number;
  /** Complete segments a playlist can reach when the client rewinds; decides whether delta updates pay. */
  readonly rewindSegmentCount: number;
  readonly cacheControl: CacheControlSettings;
  readonly defaultLegacy: boolean;
  readonly defaultRewind: boolean;
}

/** Fewer segments than this leave players nothing to start from. */
export const MIN_SEGMENT_COUNT = 3;
/** Complete segments kept beyond the configured count: two still listed for rewinding, one for requests under way. */
export const EXTRA_SEGMENTS = 3;

/** Derives the view's settings. */
export function viewSettings(settings: LlhlsSettings, streamKey: string): LlhlsViewSettings {
  const segmentCount = Math.max(MIN_SEGMENT_COUNT, settings.segmentCount);
  const dvrSegments = settings.dVR?.enable === true ? Math.floor(settings.dVR.maxDuration / Math.max(1, settings.segmentDuration)) : 0;
  return {
    streamKey,
    originMode: settings.originMode,
    enablePreloadHint: settings.enablePreloadHint,
    segmentCount,
    rewindSegmentCount: Math.max(segmentCount + EXTRA_SEGMENTS - 1, dvrSegments),
    cacheControl: settings.cacheControl,
    defaultLegacy: defaultQuery(settings, '_HLS_legacy') ?? false,
    defaultRewind: defaultQuery(settings, '_HLS_rewind') ?? true,
  };
}

function defaultQuery(settings: LlhlsSettings, key: string): boolean | null {
  const query = settings.defaultQueryString?.queries.find((candidate) => candidate.key.toLowerCase() === key.toLowerCase());
  return query === undefined ? null : query.value.toUpperCase() === 'YES';
}
