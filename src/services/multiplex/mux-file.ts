/** Multiplex channels as XML files, with the same content as the API's JSON. */
import { parseXml, type XmlElement } from '../../config/xml.ts';
import { readXml } from '../../config/xml-thread.ts';
import type { Logger } from '../../util/logger.ts';
import { escapeXml } from '../../util/xml-text.ts';
import {
  type ChannelDefinition,
  type ChannelPlaylist,
  type ChannelSource,
  DefinitionFault,
  MUX_FILE_LIMITS,
  readDefinition,
} from './channel-definition.ts';

/** Ends the names of the files. */
export const MUX_EXTENSION = '.mux';

/** Parses a file; `file` is its name for texts. Throws `ConfigError` or `DefinitionFault`. */
export function parseMuxFile(xml: string, file: string): ChannelDefinition {
  return definitionIn(parseXml(xml, file, MUX_FILE_LIMITS));
}

/** Like `parseMuxFile`; a large file is parsed in a thread. */
export function readMuxFile(
  source: { readonly text: string; readonly file: string },
  logger: Pick<Logger, 'warn'>,
): ChannelDefinition | Promise<ChannelDefinition> {
  const root = readXml({ ...source, limits: MUX_FILE_LIMITS }, logger);
  return root instanceof Promise ? root.then(definitionIn) : definitionIn(root);
}

function definitionIn(root: XmlElement): ChannelDefinition {
  if (root.name !== 'Multiplex') throw new DefinitionFault(`the root element must be Multiplex, but is ${root.name}`);
  const output = child(root, 'OutputStream');
  const sources = child(root, 'SourceStreams');
  const playlists = child(root, 'Playlists');
  return readDefinition({
    ...(output !== undefined && {
      outputStream: { ...text(output, 'name', 'Name'), ...flag(output, 'bypassTranscoder', 'BypassTranscoder') },
    }),
    ...(sources !== undefined && { sourceStreams: children(sources, 'SourceStream').map(sourceJson) }),
    ...(playlists !== undefined && { playlists: children(playlists, 'Playlist').map(playlistJson) }),
  });
}

/** The file of a definition; `parseMuxFile` makes the same of it. */
export function formatMuxFile({ outputStream, sourceStreams, playlists }: ChannelDefinition): string {
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    ...element('Multiplex', [
      ...element('OutputStream', [leaf('Name', outputStream.name), leaf('BypassTranscoder', outputStream.bypassTranscoder)]),
      ...element('SourceStreams', sourceStreams.flatMap(sourceLines)),
      ...(playlists.length > 0 ? element('Playlists', playlists.flatMap(playlistLines)) : []),
    ]),
  ];
  return `${lines.join('\n')}\n`;
}

function sourceJson(source: XmlElement): object {
  const map = child(source, 'TrackMap');
  const tracks = map === undefined ? [] : children(map, 'Track');
  return {
    ...text(source, 'name', 'Name'),
    ...text(source, 'url', 'Url'),
    ...(map !== undefined && {
      trackMap: tracks.map((track) => ({
        ...text(track, 'sourceTrackName', 'SourceTrackName'),
        ...text(track, 'newTrackName', 'NewTrackName'),
        ...number(track, 'bitrateConf', 'BitrateConf'),
        ...number(track, 'framerateConf', 'FramerateConf'),
      })),
    }),
  };
}

function playlistJson(playlist: XmlElement): object {
  const options = child(playlist, 'Options');
  return {
    ...text(playlist, 'name', 'Name'),
    ...text(playlist, 'fileName', 'FileName'),
    ...(options !== undefined && {
      options: {
        ...flag(options, 'webrtcAutoAbr', 'WebRtcAutoAbr'),
        ...number(options, 'hlsChunklistPathDepth', 'HLSChunklistPathDepth', 'HlsChunklistPathDepth'),
        ...flag(options, 'enableTsPackaging', 'EnableTsPackaging'),
      },
    }),
    renditions: children(playlist, 'Rendition').map((rendition) => ({
      ...text(rendition, 'name', 'Name'),
      ...text(rendition, 'video', 'Video'),
      ...text(rendition, 'audio', 'Audio'),
      ...number(rendition, 'videoIndexHint', 'VideoIndexHint'),
      ...number(rendition, 'audioIndexHint', 'AudioIndexHint'),
    })),
  };
}

function sourceLines({ name, url, trackMap }: ChannelSource): string[] {
  const tracks = trackMap.flatMap(({ sourceTrackName, newTrackName, bitrateConf, framerateConf }) =>
    element('Track', [
      leaf('SourceTrackName', sourceTrackName),
      leaf('NewTrackName', newTrackName),
      ...(bitrateConf > 0 ? [leaf('BitrateConf', bitrateConf)] : []),
      ...(framerateConf > 0 ? [leaf('FramerateConf', framerateConf)] : []),
    ]),
  );
  return element('SourceStream', [leaf('Name', name), leaf('Url', url), ...element('TrackMap', tracks)]);
}

function playlistLines({ name, fileName, options, renditions }: ChannelPlaylist): string[] {
  return element('Playlist', [
    leaf('Name', name),
    leaf('FileName', fileName),
    ...element('Options', [
      leaf('WebRtcAutoAbr', options.webrtcAutoAbr),
      leaf('HLSChunklistPathDepth', options.hlsChunklistPathDepth),
      leaf('EnableTsPackaging', options.enableTsPackaging),
    ]),
    ...renditions.flatMap(({ name: label, video, audio, videoIndexHint, audioIndexHint }) =>
      element('Rendition', [
        leaf('Name', label),
        ...(video === undefined ? [] : [leaf('Video', video)]),
        ...(audio === undefined ? [] : [leaf('Audio', audio)]),
        ...(videoIndexHint === undefined ? [] : [leaf('VideoIndexHint', videoIndexHint)]),
        ...(audioIndexHint === undefined ? [] : [leaf('AudioIndexHint', audioIndexHint)]),
      ]),
    ),
  ]);
}

function element(name: string, lines: readonly string[]): string[] {
  return [`<${name}>`, ...lines.map((line) => `  ${line}`), `</${name}>`];
}

function leaf(name: string, value: string | number | boolean): string {
  return `<${name}>${escapeXml(String(value))}</${name}>`;
}

function child(element: XmlElement, ...names: readonly string[]): XmlElement | undefined {
  return element.children.find(({ name }) => names.includes(name));
}

function children(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((candidate) => candidate.name === name);
}

function text(element: XmlElement, key: string, name: string): Readonly<Record<string, string>> {
  const found = child(element, name);
  return found === undefined ? {} : { [key]: found.text };
}

function flag(element: XmlElement, key: string, name: string): Readonly<Record<string, boolean>> {
  const found = child(element, name);
  if (found === undefined || found.text === '') return {};
  const word = found.text.toLowerCase();
  if (word !== 'true' && word !== 'false') throw faultOf(found, 'must be true or false');
  return { [key]: word === 'true' };
}

function number(element: XmlElement, key: string, ...names: readonly string[]): Readonly<Record<string, number>> {
  const found = child(element, ...names);
  if (found === undefined || found.text === '') return {};
  const value = Number(found.text);
  if (Number.isNaN(value)) throw faultOf(found, 'must be a number');
  return { [key]: value };
}

function faultOf({ name, line, text: value }: XmlElement, what: string): DefinitionFault {
  return new DefinitionFault(`line ${line}: ${name} ${what}, but is ${JSON.stringify(value.slice(0, 80))}`);
}
