/** The common settings of LL-HLS and HLS. */
import type { Static } from '@sinclair/typebox';
import { CrossDomainsSchema } from './cross-domains.ts';
import { boolean, integer, list, needless, object, optional, path, REFUSED, real, text } from './field.ts';

/** Member `maxConnection` of publishers whose sessions are opened by the main thread, which counts them. */
export const maxConnection = integer('Maximum number of viewers of this publisher in the application; 0: no limit', { default: 0 });
/** `maxConnection` of all other publishers that have the option in the reference server. */
export const unbuiltMaxConnection = integer(`Maximum number of viewers (0: no limit): ${REFUSED}`, { default: 0 });
/** Member `createDefaultPlaylist` of the publishers that can make a default playlist. */
export const createDefaultPlaylist = boolean('Adds the default playlist, unless the stream has a playlist of the same file name', {
  default: true,
});

/** `<DVR>` of an HLS publisher: segments go to files when they leave memory. The files are deleted with the stream. */
const DvrSchema = object(
  'Lets viewers rewind',
  {
    enable: boolean('Turns it on', { default: false }),
    tempStoragePath: path('Directory for the kept segments; default: `dvr` in the state folder', { default: '' }),
    maxDuration: integer('Maximum time that viewers can rewind, s', { default: 3600, minimum: 1 }),
    eventPlaylistType: boolean('Marks the playlist as EVENT', { default: false }),
  },
  { xml: 'DVR', aliases: ['dvr'] },
);
/** The typed form of `<DVR>`; `maxDuration` in seconds. */
export type DvrConfig = Static<typeof DvrSchema>;

const DumpSchema = object('Keeps the HLS output of matching streams as files', {
  enable: boolean('Turns it on'),
  targetStreamName: text('Names of output streams to keep; `*` and `?` are wildcards'),
  outputPath: text('Directory; macros are replaced'),
  id: optional(text('Id of the dump; default: generated')),
  playlists: optional(object('Multivariant playlists to keep', { playlist: list('File names', text('File name'), { default: [] }) })),
});
/** The typed form of `<Dump>`, which applies to every stream whose name matches. */
export type HlsDumpConfig = Static<typeof DumpSchema>;

const maxAge = (what: string, seconds: number, notes = {}) =>
  integer(`Max-age of ${what}, s; 0: no caching, -1: no header \`Cache-Control\``, { default: seconds, minimum: -1, ...notes });

const cacheControl = (directives = {}, parts = {}) =>
  object(
    'How long caches may keep answers',
    {
      masterPlaylistMaxAge: maxAge('multivariant playlists', 0),
      chunklistMaxAge: maxAge('media playlists', 0),
      chunklistWithDirectivesMaxAge: maxAge('media playlists requested with delivery directives', 60, directives),
      segmentMaxAge: maxAge('segments', -1),
      partialSegmentMaxAge: maxAge('parts', -1, parts),
    },
    { default: {} },
  );
const CacheControlSchema = cacheControl();
/** `<CacheControl>` in `<HLS>`, whose playlists know neither delivery directives nor parts. */
export const HlsCacheControlSchema = cacheControl(needless('HLS has no delivery directives'), needless('HLS has no parts'));
/** The typed form of `<CacheControl>`: seconds for each kind of answer; 0 forbids caching, -1 sends no header. */
export type CacheControlConfig = Static<typeof CacheControlSchema>;

/** Members that `<LLHLS>` and `<HLS>` share, to be spread into their schemas. */
export const hlsCommon = {
  maxConnection: unbuiltMaxConnection,
  segmentDuration: real('Length of a segment, s', { default: 10, exclusiveMinimum: 0, maximum: 3600 }),
  segmentCount: integer('Segments in the playlist; 3 or more is advisable', { default: 5, minimum: 1 }),
  originMode: boolean('Serves without viewer sessions, for use behind a CDN', { default: false }),
  serverTimeBasedSegmentNumbering: boolean('Derives segment numbers from the clock, so that several servers agree', { default: false }),
  createDefaultPlaylist,
  crossDomains: optional(CrossDomainsSchema),
  dVR: optional(DvrSchema),
  dumps: optional(object('Dumps that start with the stream', { dump: list('Dumps', DumpSchema, { default: [] }) })),
  cacheControl: CacheControlSchema,
  defaultQueryString: optional(
    object('Defaults of query values that the player does not send', {
      queries: list('Values', object('One value', { key: text('Name'), value: text('Value') }), { xml: 'Query', default: [] }),
    }),
  ),
};
