/** The definition of a multiplex channel: its source streams, the tracks it takes from them, and its playlists. */
import { isAddressableName } from '../../core/stream-address.ts';
import { hasHiddenCharacter, showHidden } from '../../util/hidden-characters.ts';

/** A track that is taken out of a source, under another name. */
export interface MappedTrack {
  /** Variant name in the source. */
  readonly sourceTrackName: string;
  /** Variant name in the channel. */
  readonly newTrackName: string;
  /** Bits per second; 0: as the source says. */
  readonly bitrateConf: number;
  /** Frames per second; 0: as the source says. */
  readonly framerateConf: number;
}

/** A stream from which a channel takes tracks. */
export interface ChannelSource {
  /** A label. */
  readonly name: string;
  /** `stream://<vhost>/<app>/<stream>`: an output stream of this server. Others never come. */
  readonly url: string;
  readonly trackMap: readonly MappedTrack[];
}

/** Tracks that are played together, by their new names. */
export interface ChannelRendition {
  readonly name: string;
  readonly video?: string;
  readonly audio?: string;
  /** Which of the tracks of that name; absent: all, or the first. */
  readonly videoIndexHint?: number;
  readonly audioIndexHint?: number;
}

/** A playlist of a channel whose tracks pass as they are. */
export interface ChannelPlaylist {
  readonly name: string;
  /** Part of the URL, without extension. */
  readonly fileName: string;
  readonly options: {
    readonly webrtcAutoAbr: boolean;
    readonly hlsChunklistPathDepth: number;
    readonly enableTsPackaging: boolean;
  };
  /** Not empty. */
  readonly renditions: readonly ChannelRendition[];
}

/** A channel as the API and its file define it. */
export interface ChannelDefinition {
  readonly outputStream: {
    readonly name: string;
    /** Tracks pass as they are; else the output profiles of the application are made of them. */
    readonly bypassTranscoder: boolean;
  };
  readonly sourceStreams: readonly ChannelSource[];
  readonly playlists: readonly ChannelPlaylist[];
}

/** Defaults of a playlist. */
export const DEFAULT_OPTIONS: ChannelPlaylist['options'] = { webrtcAutoAbr: false, hlsChunklistPathDepth: -1, enableTsPackaging: false };

/** A definition that cannot be used; `message` names the member. */
export class DefinitionFault extends Error {
  override readonly name = 'DefinitionFault';
}

/** Limit of a channel's name, which is that of its file. */
const MAX_NAME_BYTES = 200;
/** Limit of each list in a definition: each entry costs work while the channel plays. */
const MAX_ITEMS = 100;
/** Limit of the lists of all sources, and of all playlists, together. */
const MAX_IN_ALL = 1000;
/** Limit of tags in a file: ten for each track and rendition, and some more. */
export const MUX_FILE_LIMITS = { tags: 12 * 2 * MAX_IN_ALL + 40 * MAX_ITEMS + 1000, attributes: 1000 } as const;
const URL_FORM = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#]+(?:[/?#]\S*)?$/i;

type Json = Readonly<Record<string, unknown>>;

/** Reads a definition as the API takes it. Throws `DefinitionFault`. */
export function readDefinition(json: unknown): ChannelDefinition {
  const root = isObject(json) ? json : {};
  const { outputStream } = root;
  if (!isObject(outputStream)) throw missing('outputStream');
  const name = textOf(outputStream, 'outputStream/name');
  if (!isAddressableName(name) || Buffer.byteLength(name) > MAX_NAME_BYTES) {
    throw new DefinitionFault(`outputStream/name must not be empty, too long or contain / : ? # or white space: ${shown(name)}`);
  }
  const sourceStreams = listOf(root, 'sourceStreams').map(readSource);
  if (sourceStreams.length === 0) throw new DefinitionFault('sourceStreams must have at least one item');
  const playlists = root['playlists'] === undefined ? [] : listOf(root, 'playlists').flatMap((item) => readPlaylist(item) ?? []);
  refuseMany(
    'sourceStreams/trackMap',
    sourceStreams.map(({ trackMap }) => trackMap),
  );
  refuseMany(
    'playlists/renditions',
    playlists.map(({ renditions }) => renditions),
  );
  checkPlaylists(playlists, sourceStreams);
  return {
    outputStream: { name, bypassTranscoder: booleanOf(outputStream, 'outputStream/bypassTranscoder', true) },
    sourceStreams,
    playlists,
  };
}

function readSource(item: unknown): ChannelSource {
  const json = isObject(item) ? item : {};
  const name = textOf(json, 'sourceStreams/name');
  const url = textOf(json, 'sourceStreams/url');
  if (!URL_FORM.test(url)) throw new DefinitionFault(`Failed to parse url: ${showHidden(url)}`);
  return { name, url, trackMap: listOf(json, 'sourceStreams/trackMap').map(readTrack) };
}

function readTrack(item: unknown): MappedTrack {
  const json = isObject(item) ? item : {};
  const sourceTrackName = textOf(json, 'sourceStreams/trackMap/sourceTrackName');
  const newTrackName = textOf(json, 'sourceStreams/trackMap/newTrackName');
  if (newTrackName.trim() === '') throw new DefinitionFault('sourceStreams/trackMap/newTrackName must not be empty');
  const bitrateConf = numberOf(json, 'sourceStreams/trackMap/bitrateConf', 0, 1e12);
  const framerateConf = numberOf(json, 'sourceStreams/trackMap/framerateConf', 0, 1000);
  return { sourceTrackName, newTrackName, bitrateConf, framerateConf };
}

/** Null for a playlist without renditions, which cannot be played. */
function readPlaylist(item: unknown): ChannelPlaylist | null {
  const json = isObject(item) ? item : {};
  const name = textOf(json, 'playlists/name');
  const fileName = textOf(json, 'playlists/fileName');
  if (!isAddressableName(fileName)) {
    throw new DefinitionFault(`playlists/fileName must not be empty, too long or contain / : ? # or white space: ${shown(fileName)}`);
  }
  const options = json['options'] ?? {};
  if (!isObject(options)) throw new DefinitionFault('playlists/options must be an object');
  const renditions = json['renditions'] === undefined ? [] : listOf(json, 'playlists/renditions').map(readRendition);
  if (renditions.length === 0) return null;
  const depth = numberOf(options, 'playlists/options/hlsChunklistPathDepth', -1, 2, DEFAULT_OPTIONS.hlsChunklistPathDepth);
  return {
    name,
    fileName,
    options: {
      webrtcAutoAbr: booleanOf(options, 'playlists/options/webrtcAutoAbr', DEFAULT_OPTIONS.webrtcAutoAbr),
      hlsChunklistPathDepth: Math.trunc(depth),
      enableTsPackaging: booleanOf(options, 'playlists/options/enableTsPackaging', DEFAULT_OPTIONS.enableTsPackaging),
    },
    renditions,
  };
}

function readRendition(item: unknown): ChannelRendition {
  const json = isObject(item) ? item : {};
  const name = textOf(json, 'playlists/renditions/name');
  const track = (kind: 'video' | 'audio'): Partial<ChannelRendition> => {
    if (json[kind] === undefined || json[kind] === null || json[kind] === '') return {};
    const hint = numberOf(json, `playlists/renditions/${kind}IndexHint`, -1, MAX_ITEMS, -1);
    return { [kind]: textOf(json, `playlists/renditions/${kind}`), ...(hint >= 0 && { [`${kind}IndexHint`]: Math.trunc(hint) }) };
  };
  return { name, ...track('video'), ...track('audio') };
}

function refuseMany(path: string, lists: readonly (readonly unknown[])[]): void {
  const count = lists.reduce((sum, list) => sum + list.length, 0);
  if (count > MAX_IN_ALL) throw new DefinitionFault(`${path} must not have more than ${MAX_IN_ALL} items in all`);
}

function checkPlaylists(playlists: readonly ChannelPlaylist[], sources: readonly ChannelSource[]): void {
  const names = new Set(sources.flatMap(({ trackMap }) => trackMap.map(({ newTrackName }) => newTrackName)));
  const taken = new Set<string>();
  for (const { fileName, renditions } of playlists) {
    if (taken.has(fileName)) throw new DefinitionFault(`playlists/fileName ${shown(fileName)} is there twice`);
    taken.add(fileName);
    for (const rendition of renditions) {
      for (const kind of ['video', 'audio'] as const) {
        const name = rendition[kind];
        if (name === undefined || names.has(name)) continue;
        throw new DefinitionFault(`Failed to find ${kind} variant name ${showHidden(name)} in SourceStream/TrackMap object`);
      }
    }
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function memberOf(json: Json, path: string): unknown {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return Object.hasOwn(json, name) ? json[name] : undefined;
}

/** A member of the wrong type counts as missing. */
function textOf(json: Json, path: string): string {
  const value = memberOf(json, path);
  if (typeof value !== 'string') throw missing(path);
  // The file could not hold it, or would hold another one.
  if (hasHiddenCharacter(value)) throw new DefinitionFault(`${path} must not have characters that cannot be seen: ${shown(value)}`);
  return value;
}

function listOf(json: Json, path: string): readonly unknown[] {
  const value = memberOf(json, path);
  if (!Array.isArray(value)) throw missing(path);
  if (value.length > MAX_ITEMS) throw new DefinitionFault(`${path} must not have more than ${MAX_ITEMS} items`);
  return value;
}

function booleanOf(json: Json, path: string, otherwise: boolean): boolean {
  const value = memberOf(json, path) ?? otherwise;
  if (typeof value !== 'boolean') throw new DefinitionFault(`${path} must be true or false`);
  return value;
}

function numberOf(json: Json, path: string, min: number, max: number, otherwise = 0): number {
  const value = memberOf(json, path) ?? otherwise;
  if (typeof value === 'number' && value >= min && value <= max) return value;
  throw new DefinitionFault(`${path} must be a number from ${min} to ${max}`);
}

function missing(path: string): DefinitionFault {
  return new DefinitionFault(`Failed to find ${path} object`);
}

function shown(text: string): string {
  return showHidden(JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text));
}
