/** How the tracks of an output stream are offered to players. */
import type { Static } from '@sinclair/typebox';
import { nameFault } from '../value.ts';
import { boolean, choice, finishing, firstDuplicate, integer, list, object, optional, text } from './field.ts';

const limit = (xml: string, most: boolean, what: string, aliases: readonly string[] = []) =>
  integer(`Only tracks with at ${most ? 'most' : 'least'} this ${what}; -1: no limit`, {
    default: -1,
    minimum: -1,
    xml,
    aliases: [xml.charAt(0).toLowerCase() + xml.slice(1), ...aliases],
  });

const filters = {
  variant_name: optional(
    text('Only tracks of encodes with this name; `*` and `?` are wildcards', { xml: 'VariantName', aliases: ['variantName'] }),
  ),
  encoding_type: choice('Only encoded tracks, only bypassed tracks, or all tracks', ['all', 'encoded', 'bypassed'], {
    xml: 'EncodingType',
    aliases: ['encodingType'],
    default: 'all',
    refusal: (value) => `Invalid EncodingType: ${value} (all, encoded, bypassed)`,
  }),
  max_bitrate: limit('MaxBitrate', true, 'bit rate, bit/s'),
  min_bitrate: limit('MinBitrate', false, 'bit rate, bit/s'),
};

const VideoTemplateSchema = object(
  'Video tracks that get a rendition',
  {
    ...filters,
    max_width: limit('MaxWidth', true, 'width, pixels'),
    min_width: limit('MinWidth', false, 'width, pixels'),
    max_height: limit('MaxHeight', true, 'height, pixels'),
    min_height: limit('MinHeight', false, 'height, pixels'),
    max_framerate: limit('MaxFramerate', true, 'frame rate', ['maxFPS']),
    min_framerate: limit('MinFramerate', false, 'frame rate', ['minFPS']),
  },
  { xml: 'VideoTemplate', aliases: ['videoTemplate'] },
);
/** The typed form of `<VideoTemplate>`; -1 sets no limit. */
export type VideoTemplateConfig = Static<typeof VideoTemplateSchema>;

const AudioTemplateSchema = object(
  'Audio tracks that get a rendition',
  {
    ...filters,
    max_samplerate: limit('MaxSamplerate', true, 'sample rate, Hz'),
    min_samplerate: limit('MinSamplerate', false, 'sample rate, Hz'),
    max_channel: limit('MaxChannel', true, 'channel count'),
    min_channel: limit('MinChannel', false, 'channel count'),
  },
  { xml: 'AudioTemplate', aliases: ['audioTemplate'] },
);
/** The typed form of `<AudioTemplate>`; -1 sets no limit. */
export type AudioTemplateConfig = Static<typeof AudioTemplateSchema>;

const indexHint = (xml: string, alias: string) =>
  integer('Index among the tracks of this name, from 0; -1: the first', { default: -1, minimum: -1, xml, aliases: [alias] });

const RenditionSchema = object('One rendition that players may choose', {
  name: text('Name shown to players'),
  video: optional(text('Name of a video encode')),
  audio: optional(text('Name of an audio encode')),
  video_index_hint: indexHint('VideoIndexHint', 'videoIndexHint'),
  audio_index_hint: indexHint('AudioIndexHint', 'audioIndexHint'),
});
/** The typed form of `<Rendition>`: tracks by the names of their encodes, with an index among tracks of one name. */
export type RenditionConfig = Static<typeof RenditionSchema>;

const RenditionTemplateSchema = object('Makes a rendition of every matching pair of tracks', {
  name: text('Name shown to players; `${Height}`, `${Width}`, `${Bitrate}` and `${Framerate}` stand for the values of the track'),
  video_template: optional(VideoTemplateSchema),
  audio_template: optional(AudioTemplateSchema),
});
/** The typed form of `<RenditionTemplate>`; the name still has its macros. */
export type RenditionTemplateConfig = Static<typeof RenditionTemplateSchema>;

const PlaylistOptionsSchema = object(
  'How the playlist is served',
  {
    webRtcAutoAbr: boolean('WebRTC viewers are switched between renditions as their bandwidth changes', {
      default: true,
      aliases: ['webrtcAutoAbr', 'webRTCAutoAbr'],
    }),
    hLSChunklistPathDepth: integer(
      'URLs of media playlists: -1: absolute path, 0: file name, 1: relative path with the stream, 2: relative path with the application and the stream',
      { default: -1, minimum: -1, maximum: 2, xml: 'HLSChunklistPathDepth', aliases: ['hlsChunklistPathDepth'] },
    ),
    enableTsPackaging: boolean('Serves the playlist also as HLS with MPEG-TS segments', { default: false }),
    enableSubtitles: optional(boolean('Offers the subtitles of the stream; absent: `true`')),
  },
  { default: {} },
);
/** The typed form of `<Options>` in `<Playlist>`, defaults filled in. */
export type PlaylistOptionsConfig = Static<typeof PlaylistOptionsSchema>;

/** `<Playlist>` of an output profile. File names with `playlist` or `chunklist` inside are those of media playlists and refused. */
export const PlaylistSchema = object(
  'One multivariant playlist',
  {
    name: text('Name shown to players and in stream information', { default: '' }),
    fileName: text('Last part of the URL, without extension; unique in the profile'),
    options: PlaylistOptionsSchema,
    renditions: list('Renditions, in the order of the playlist', RenditionSchema, { xml: 'Rendition', default: [] }),
    rendition_templates: list('Renditions made from the tracks of the stream', RenditionTemplateSchema, {
      xml: 'RenditionTemplate',
      aliases: ['renditionTemplates'],
      default: [],
    }),
  },
  {
    finish: finishing<{ fileName: string; renditions: { name: string }[] }>((value, fail) => {
      const word = ['playlist', 'chunklist'].find((reserved) => value.fileName.toLowerCase().includes(reserved));
      if (value.fileName === '') fail('Playlist file name must not be empty', 'fileName');
      else if (word !== undefined) fail(`Playlist file name must not contain ${word}: ${value.fileName}`, 'fileName');
      // The name is part of URLs and of the path of dumps.
      else {
        const fault = nameFault(value.fileName);
        if (fault !== undefined) fail(`Playlist file name ${fault.text}`, 'fileName');
      }
      const twice = firstDuplicate(value.renditions);
      if (twice !== undefined) fail(`Duplicate rendition name: ${twice}`, 'renditions');
    }),
  },
);
/** The typed form of `<Playlist>`; the file name has no extension. */
export type PlaylistConfig = Static<typeof PlaylistSchema>;
