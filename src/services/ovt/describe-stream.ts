/** Describes an outbound stream to edges. */
import type { Playlist } from '../../core/playlist.ts';
import type { PublishableStream } from '../../core/publishing.ts';
import { internalAppName } from '../../core/stream-address.ts';
import type { SubtitleTrack, Track } from '../../media/track.ts';
import type { OvtDescription, OvtPlaylistDescription, OvtTrackDescription } from '../../wire/ovt/description.ts';
import { codecIdOf, layoutOf, OvtMediaType, UNCOMMON_CODEC_IDS } from '../../wire/ovt/wire-numbers.ts';
import type { RelayPaths } from './relay-paths.ts';

/** Planar floating point, the output format of all audio decoders here. */
const SAMPLE_FORMAT = 8;
/** The reference server's name for a data track without a name. */
const DATA_NAME = 'Data';
const NO_VIDEO = { framerate: 0, width: 0, height: 0 };
const NO_AUDIO = { sampleRate: 0, sampleFormat: 0, layout: 0 };

/** Whether the description for an edge contains the track; the edge accepts `uncommon` of `UNCOMMON_CODEC_IDS`. */
export function isTold(track: Track, uncommon: readonly number[]): track is Exclude<Track, SubtitleTrack> {
  if (track.type === 'data') return true;
  if (track.type === 'subtitle') return false;
  const id = codecIdOf(track.codec);
  return id !== undefined && (uncommon.includes(id) || !UNCOMMON_CODEC_IDS.includes(id));
}

/** `uncommon`: see `isTold`. */
export function describeRelayedStream(stream: PublishableStream, paths: RelayPaths, uncommon: readonly number[]): OvtDescription {
  const tracks = stream.tracks.filter((track) => isTold(track, uncommon));
  const appName = internalAppName(stream.vhost, stream.app);
  return {
    appName,
    streamName: stream.name,
    originStreamUuid: `Millrace_${paths.id}/${stream.vhost}/${appName}/${stream.name}`,
    path: paths.pathOf({ vhost: stream.vhost, app: stream.app, stream: stream.sourceName }),
    // An edge's publishers have defaults for their own capabilities, which may be smaller than ours.
    playlists: stream.playlists
      .filter(({ publisherDefault }) => publisherDefault !== true)
      .map((playlist) => describePlaylist(playlist, tracks))
      .filter(({ renditions }) => renditions.length > 0),
    tracks: tracks.map((track) => describeTrack(stream, track)),
  };
}

/** Only with the renditions whose tracks are described. */
function describePlaylist({ name, fileName, options, renditions }: Playlist, tracks: readonly Track[]): OvtPlaylistDescription {
  const has = (type: Track['type'], name: string): boolean =>
    name === '' || tracks.some((track) => track.type === type && track.variantName === name);
  const { webrtcAutoAbr, hlsChunklistPathDepth, enableTsPackaging } = options;
  return {
    name,
    fileName,
    webrtcAutoAbr,
    hlsChunklistPathDepth,
    enableTsPackaging,
    renditions: renditions
      .filter(({ videoVariantName, audioVariantName }) => has('video', videoVariantName) && has('audio', audioVariantName))
      .map((rendition) => ({
        name: rendition.name,
        videoTrackName: rendition.videoVariantName,
        audioTrackName: rendition.audioVariantName,
        videoIndexHint: rendition.videoIndexHint,
        audioIndexHint: rendition.audioIndexHint,
      })),
  };
}

function describeTrack(stream: PublishableStream, track: Exclude<Track, SubtitleTrack>): OvtTrackDescription {
  const { id, variantName: name, timebase, publicName, language, characteristics } = track;
  const figures = stream.figures(id);
  const bitrate = Math.round(track.bitrateConf || figures.bitrateAvg);
  const common = { id, name, timebase, bitrate, publicName, language, characteristics };
  switch (track.type) {
    case 'video': {
      const { width, height, config } = track;
      const framerate = track.framerateConf || figures.framerateAvg;
      return {
        ...common,
        ...NO_AUDIO,
        mediaType: OvtMediaType.VIDEO,
        codecId: codecIdOf(track.codec) ?? 0,
        framerate,
        width,
        height,
        config,
      };
    }
    case 'audio': {
      const layout = layoutOf(track.channels);
      const audio = { sampleRate: track.sampleRate, sampleFormat: SAMPLE_FORMAT, layout };
      // The reference does not accept an OpusHead as a configuration.
      const config = track.codec === 'AAC' ? track.config : null;
      return { ...common, ...NO_VIDEO, ...audio, mediaType: OvtMediaType.AUDIO, codecId: codecIdOf(track.codec) ?? 0, config };
    }
    case 'data':
      return { ...common, ...NO_VIDEO, ...NO_AUDIO, name: name || DATA_NAME, mediaType: OvtMediaType.DATA, codecId: 0, config: null };
  }
}
