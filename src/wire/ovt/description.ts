/** The answer to `describe`: the tracks and playlists of a stream. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { isMembers, type JsonMembers, pathOf } from './message.ts';

/** The signalling version of the reference server. */
const VERSION = 0x12;
/** Limits against attacks: real streams have far fewer. */
const MAX_TRACKS = 256;
const MAX_PLAYLISTS = 256;
const MAX_RENDITIONS = 256;

/** A track in the JSON of the reference server; missing members are 0 or empty. */
export interface OvtTrackDescription {
  readonly id: number;
  /** Variant name: what renditions call the track. */
  readonly name: string;
  /** The numbers of `wire-numbers.ts`. */
  readonly codecId: number;
  readonly mediaType: number;
  readonly timebase: { readonly num: number; readonly den: number };
  /** Bits per second; 0 when unknown. */
  readonly bitrate: number;
  readonly framerate: number;
  readonly width: number;
  readonly height: number;
  readonly sampleRate: number;
  readonly sampleFormat: number;
  /** Speaker mask. */
  readonly layout: number;
  /** avcC, hvcC, AudioSpecificConfig, av1C or vpcC; null when there is none. */
  readonly config: Uint8Array | null;
  /** Empty in descriptions of older servers, which lack these three. */
  readonly publicName: string;
  readonly language: string;
  readonly characteristics: string;
}

/** A rendition of a playlist, its tracks by name. */
export interface OvtRenditionDescription {
  readonly name: string;
  /** Names of tracks; empty when the rendition has none of the kind. */
  readonly videoTrackName: string;
  readonly audioTrackName: string;
  /** Index among the tracks of that name; -1: all of them, or the first. */
  readonly videoIndexHint: number;
  readonly audioIndexHint: number;
}

/** A playlist that the origin has for the stream; edges may offer it, too. */
export interface OvtPlaylistDescription {
  readonly name: string;
  readonly fileName: string;
  readonly webrtcAutoAbr: boolean;
  readonly hlsChunklistPathDepth: number;
  readonly enableTsPackaging: boolean;
  readonly renditions: readonly OvtRenditionDescription[];
}

/** The description of a stream that an edge gets before it plays the stream. */
export interface OvtDescription {
  /** `#<vhost>#<app>` of the origin. */
  readonly appName: string;
  readonly streamName: string;
  /** Unique among all streams of all servers. */
  readonly originStreamUuid: string;
  /** Ids of the servers through which the stream comes, the nearest first; empty if the server does not list them. */
  readonly path: readonly string[];
  readonly playlists: readonly OvtPlaylistDescription[];
  readonly tracks: readonly OvtTrackDescription[];
}

/** The `contents` of a response. */
export function describeContents({ appName, streamName, originStreamUuid, path, playlists, tracks }: OvtDescription): object {
  return {
    version: VERSION,
    stream: {
      appName,
      streamName,
      originStreamUUID: originStreamUuid,
      path,
      playlists: playlists.map(({ name, fileName, renditions, ...options }) => ({ name, fileName, options, renditions })),
      tracks: tracks.map(trackContents),
    },
  };
}

function trackContents(track: OvtTrackDescription): object {
  const { id, name, codecId, mediaType, timebase, bitrate, framerate, width, height, sampleRate, sampleFormat, layout, config } = track;
  const { publicName, language, characteristics } = track;
  return {
    id,
    name,
    codecId,
    mediaType,
    timebaseNum: timebase.num,
    timebaseDen: timebase.den,
    bitrate,
    startFrameTime: 0,
    lastFrameTime: 0,
    // Every track has both objects, because the reference requires both.
    videoTrack: { framerate, maxFramerate: framerate, width, height, maxWidth: width, maxHeight: height },
    audioTrack: { samplerate: sampleRate, sampleFormat, layout },
    ...(config !== null && { decoderConfig: Buffer.from(config).toString('base64') }),
    publicName,
    language,
    characteristics,
  };
}

/** Reads `contents`; unknown members are skipped. Throws `OVT_DESCRIPTION`, which names the invalid member. */
export function parseContents(contents: unknown): OvtDescription {
  const stream = membersOf(membersOf({ contents }, 'contents'), 'stream');
  return {
    appName: textOf(stream, 'appName'),
    streamName: textOf(stream, 'streamName'),
    originStreamUuid: optionalText(stream, 'originStreamUUID'),
    path: pathOf(stream['path']),
    playlists: listOf(stream, 'playlists', MAX_PLAYLISTS).map(parsePlaylist),
    tracks: uniqueTracks(listOf(stream, 'tracks', MAX_TRACKS).map(parseTrack)),
  };
}

function uniqueTracks(tracks: OvtTrackDescription[]): OvtTrackDescription[] {
  if (new Set(tracks.map(({ id }) => id)).size !== tracks.length) fault('tracks', 'has an id twice');
  return tracks;
}

function parsePlaylist(json: JsonMembers): OvtPlaylistDescription {
  const options = membersOf(json, 'options');
  const depth = options['hlsChunklistPathDepth'];
  return {
    name: textOf(json, 'name'),
    fileName: textOf(json, 'fileName'),
    webrtcAutoAbr: options['webrtcAutoAbr'] !== false,
    hlsChunklistPathDepth: typeof depth === 'number' && Number.isInteger(depth) && depth >= -1 && depth <= 2 ? depth : -1,
    enableTsPackaging: options['enableTsPackaging'] === true,
    renditions: listOf(json, 'renditions', MAX_RENDITIONS).map((rendition) => ({
      name: textOf(rendition, 'name'),
      videoTrackName: textOf(rendition, 'videoTrackName'),
      audioTrackName: textOf(rendition, 'audioTrackName'),
      videoIndexHint: hintOf(rendition, 'videoIndexHint'),
      audioIndexHint: hintOf(rendition, 'audioIndexHint'),
    })),
  };
}

function parseTrack(json: JsonMembers): OvtTrackDescription {
  const video = membersOf(json, 'videoTrack');
  const audio = membersOf(json, 'audioTrack');
  return {
    id: wholeOf(json, 'id'),
    name: textOf(json, 'name'),
    codecId: wholeOf(json, 'codecId'),
    mediaType: wholeOf(json, 'mediaType'),
    timebase: { num: positiveOf(json, 'timebaseNum'), den: positiveOf(json, 'timebaseDen') },
    bitrate: wholeOf(json, 'bitrate'),
    framerate: measureOf(video, 'framerate'),
    width: Math.floor(measureOf(video, 'width')),
    height: Math.floor(measureOf(video, 'height')),
    sampleRate: Math.floor(measureOf(audio, 'samplerate')),
    sampleFormat: typeof audio['sampleFormat'] === 'number' ? audio['sampleFormat'] : -1,
    layout: Math.floor(measureOf(audio, 'layout')),
    config: configOf(json),
    publicName: optionalText(json, 'publicName'),
    language: optionalText(json, 'language'),
    characteristics: optionalText(json, 'characteristics'),
  };
}

function fault(key: string, what: string): never {
  throw new ProtocolError('OVT_DESCRIPTION', `'${key}' ${what}`);
}

function membersOf(json: JsonMembers, key: string): JsonMembers {
  const value = json[key];
  return isMembers(value) ? value : fault(key, 'is no object');
}

/** A missing list counts as empty: the reference writes `null` for an empty list. */
function listOf(json: JsonMembers, key: string, most: number): JsonMembers[] {
  const value = json[key] ?? [];
  if (!Array.isArray(value) || !value.every(isMembers)) fault(key, 'is no list of objects');
  if (value.length > most) fault(key, `has ${value.length} items, at most ${most} expected`);
  return value;
}

function textOf(json: JsonMembers, key: string): string {
  const value = json[key];
  return typeof value === 'string' ? value : fault(key, 'is no text');
}

function optionalText(json: JsonMembers, key: string): string {
  const value = json[key];
  return typeof value === 'string' ? value : '';
}

function wholeOf(json: JsonMembers, key: string): number {
  const value = json[key];
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 0xffff_ffff) fault(key, 'is no number of 32 bits');
  return value;
}

function positiveOf(json: JsonMembers, key: string): number {
  return wholeOf(json, key) || fault(key, 'is 0');
}

/** Descriptive numbers: an invalid or negative one counts as unknown. */
function measureOf(json: JsonMembers, key: string): number {
  const value = json[key];
  return typeof value === 'number' && value > 0 && value <= 0xffff_ffff ? value : 0;
}

function hintOf(json: JsonMembers, key: string): number {
  const value = json[key];
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : -1;
}

function configOf(json: JsonMembers): Uint8Array | null {
  const text = optionalText(json, 'decoderConfig');
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === 0 ? null : new Uint8Array(bytes);
}
