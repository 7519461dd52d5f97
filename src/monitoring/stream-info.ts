import type { SourceType } from '../core/kinds.ts';
import type { Playlist, PlaylistRendition } from '../core/playlist.ts';
import type { TrackFigures } from '../core/publishing.ts';
import type { AudioTrack, Track, VideoTrack } from '../media/track.ts';
import { formatTimestamp } from '../util/timestamp.ts';
import { Real } from './real.ts';

/** An output in stream information. */
export interface OutputFigures {
  readonly name: string;
  readonly tracks: readonly Track[];
  readonly playlists: readonly Playlist[];
  /** Reasons why viewers lack media, or get it in poor quality. */
  readonly warnings: readonly string[];
  figures(trackId: number): TrackFigures;
}

/** An inbound stream in stream information. */
export interface StreamFigures {
  readonly name: string;
  /** Wall clock, ms since the epoch. */
  readonly createdAt: number;
  readonly sourceType: SourceType;
  /** Empty if the source has no address. */
  readonly sourceUrl: string;
  readonly tracks: readonly Track[];
  readonly outputs: Iterable<OutputFigures>;
  figures(trackId: number): TrackFigures;
}

const AUTHORITY = /:\/\/[^/?#]*/;
const TYPE_WORDS = { video: 'Video', audio: 'Audio', data: 'Data', subtitle: 'Subtitle' } as const satisfies Record<Track['type'], string>;

/** Serialises a stream as `GET …/streams/{stream}` prints it; `masked` hides the address of the source. */
export function streamInformation(stream: StreamFigures, { masked }: { readonly masked: boolean }) {
  const sourceUrl = masked ? stream.sourceUrl.replace(AUTHORITY, '://xxx.xxx.xxx.xxx:xxx') : stream.sourceUrl;
  return {
    input: {
      createdTime: formatTimestamp(stream.createdAt),
      sourceType: stream.sourceType,
      ...(sourceUrl !== '' && { sourceUrl }),
      tracks: tracksInformation(stream),
    },
    name: stream.name,
    outputs: Array.from(stream.outputs, (output) => ({
      name: output.name,
      playlists: playlistsInformation(output.playlists),
      tracks: tracksInformation(output),
      ...(output.warnings.length > 0 && { warnings: output.warnings }),
    })),
  };
}

/** Serialises a stream that is kept while its source cannot be pulled: it has neither tracks nor outputs. */
export function waitingStreamInformation(
  stream: Pick<StreamFigures, 'name' | 'createdAt' | 'sourceType' | 'sourceUrl'>,
  options: { readonly masked: boolean },
) {
  const figures = (): never => {
    throw new Error('a stream without tracks has no figures');
  };
  const { name, createdAt, sourceType, sourceUrl } = stream;
  return streamInformation({ name, createdAt, sourceType, sourceUrl, tracks: [], outputs: [], figures }, options);
}

/** Serialises the tracks of a stream as answers print them, in the order of their ids. */
export function tracksInformation(owner: { readonly tracks: readonly Track[]; figures(trackId: number): TrackFigures }) {
  return [...owner.tracks].sort((a, b) => a.id - b.id).map((track) => trackInformation(track, owner.figures(track.id)));
}

function trackInformation(track: Track, figures: TrackFigures) {
  const common = {
    id: track.id,
    name: track.variantName === '' ? TYPE_WORDS[track.type] : track.variantName,
    type: TYPE_WORDS[track.type],
  };
  switch (track.type) {
    case 'video':
      return { ...common, video: videoInformation(track, figures) };
    case 'audio':
      return { audio: audioInformation(track, figures), ...common };
    case 'data':
    case 'subtitle':
      return common;
  }
}

/** Bit rates are strings in this API. */
function bitrates(track: Track, figures: TrackFigures) {
  return {
    bitrate: String(track.bitrateConf > 0 ? track.bitrateConf : figures.bitrateAvg),
    bitrateAvg: String(figures.bitrateAvg),
    bitrateConf: String(track.bitrateConf),
    bitrateLatest: String(figures.bitrateLatest),
    bypass: track.bypass,
  };
}

function videoInformation(track: VideoTrack, figures: TrackFigures) {
  const configured = track.keyFrameIntervalConf ?? 0;
  return {
    ...bitrates(track, figures),
    codec: track.codec,
    deltaFramesSinceLastKeyFrame: figures.deltaFramesSinceLastKeyFrame,
    framerate: new Real(track.framerateConf > 0 ? track.framerateConf : figures.framerateAvg),
    framerateAvg: new Real(figures.framerateAvg),
    framerateConf: new Real(track.framerateConf),
    framerateLatest: new Real(figures.framerateLatest),
    hasBframes: figures.hasBframes,
    height: track.height,
    keyFrameInterval: Math.round(configured > 0 ? configured : figures.keyFrameIntervalAvg),
    keyFrameIntervalAvg: new Real(figures.keyFrameIntervalAvg),
    keyFrameIntervalConf: new Real(configured),
    keyFrameIntervalLatest: Math.round(figures.keyFrameIntervalLatest),
    maxHeight: Math.max(figures.maxHeight, track.height),
    maxWidth: Math.max(figures.maxWidth, track.width),
    width: track.width,
  };
}

function audioInformation(track: AudioTrack, figures: TrackFigures) {
  return { ...bitrates(track, figures), channel: track.channels, codec: track.codec, samplerate: track.sampleRate };
}

function playlistsInformation(playlists: readonly Playlist[]) {
  return [...playlists].sort(byFileName).map((playlist) => ({
    fileName: playlist.fileName,
    name: playlist.name,
    options: {
      enableTsPackaging: playlist.options.enableTsPackaging,
      hlsChunklistPathDepth: playlist.options.hlsChunklistPathDepth,
      webrtcAutoAbr: playlist.options.webrtcAutoAbr,
    },
    renditions: playlist.renditions.map(renditionInformation),
  }));
}

function byFileName(a: Playlist, b: Playlist): number {
  if (a.fileName === b.fileName) return 0;
  return a.fileName < b.fileName ? -1 : 1;
}

/** A rendition without video (or audio) has an empty variant name for it. */
function renditionInformation(rendition: PlaylistRendition) {
  return {
    ...(rendition.audioVariantName !== '' && { audioVariantName: rendition.audioVariantName }),
    name: rendition.name,
    ...(rendition.videoVariantName !== '' && { videoVariantName: rendition.videoVariantName }),
  };
}
