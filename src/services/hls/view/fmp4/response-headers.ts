/** Header lines of LL-HLS answers, made once per stream. */
import type { MediaType } from '../../wire/fmp4/resource-name.ts';
import type { LlhlsCacheControlSettings } from '../../wire/settings.ts';
import { cacheControl, NO_STORE, PLAYLIST_TYPE, VTT_TYPE } from '../header-lines.ts';

/** Lines without CRLF for each kind of answer. */
export interface ResponseHeaders {
  readonly multivariant: readonly string[];
  readonly chunklist: readonly string[];
  readonly chunklistWithDirectives: readonly string[];
  readonly segment: Readonly<Record<MediaType, readonly string[]>>;
  readonly part: Readonly<Record<MediaType, readonly string[]>>;
  /** Headers of answers without a body. */
  readonly empty: readonly string[];
  /** Headers of answers about a wrong request. */
  readonly refusal: readonly string[];
  /** Headers of answers that ask the client to retry, besides their type. */
  readonly retry: readonly string[];
}

/** The lines for these ages, seconds: 0 forbids caching, below 0 there is no Cache-Control. */
export function responseHeaders(settings: LlhlsCacheControlSettings): ResponseHeaders {
  const media = (maxAge: number): Record<MediaType, readonly string[]> => ({
    video: ['Content-Type: video/mp4', ...cacheControl(maxAge)],
    audio: ['Content-Type: audio/mp4', ...cacheControl(maxAge)],
    subtitle: [VTT_TYPE, ...cacheControl(maxAge)],
  });
  return {
    multivariant: [PLAYLIST_TYPE, ...cacheControl(settings.masterPlaylistMaxAge)],
    chunklist: [PLAYLIST_TYPE, ...cacheControl(settings.chunklistMaxAge)],
    chunklistWithDirectives: [PLAYLIST_TYPE, ...cacheControl(settings.chunklistWithDirectivesMaxAge)],
    segment: media(settings.segmentMaxAge),
    part: media(settings.partialSegmentMaxAge),
    empty: ['Content-Type: text/html'],
    refusal: ['Content-Type: text/plain', NO_STORE],
    retry: [NO_STORE, 'Retry-After: 1'],
  };
}
