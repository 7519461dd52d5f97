/** Converts an origin's description of a stream for the core. */

import { AacObjectType, buildAudioSpecificConfig } from '../../codecs/aac/audio-specific-config.ts';
import { describeAudio, describeVideo } from '../../codecs/describe.ts';
import { buildOpusHead } from '../../codecs/opus/opus-head.ts';
import type { SourceTrack } from '../../core/ingest.ts';
import type { Playlist } from '../../core/playlist.ts';
import { isAddressableName } from '../../core/stream-address.ts';
import { AudioCodec, BitstreamFormat, VideoCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { OvtDescription, OvtPlaylistDescription, OvtTrackDescription } from '../../wire/ovt/description.ts';
import { audioCodecOf, channelsOf, OvtMediaType, videoCodecOf } from '../../wire/ovt/wire-numbers.ts';

/** Codecs whose frames can be relayed and whose parameters the router can follow. */
const VIDEO_FORMATS: Readonly<Partial<Record<VideoCodec, BitstreamFormat>>> = {
  [VideoCodec.H264]: BitstreamFormat.ANNEXB,
  [VideoCodec.H265]: BitstreamFormat.ANNEXB,
  [VideoCodec.VP8]: BitstreamFormat.RAW,
  [VideoCodec.VP9]: BitstreamFormat.RAW,
  [VideoCodec.AV1]: BitstreamFormat.OBU,
};

/** The supported part of a description. */
export interface RelayedSource {
  readonly tracks: readonly SourceTrack[];
  /** The origin's playlists, with the supported tracks. */
  readonly playlists: readonly Playlist[];
  /** Names of unsupported tracks, each with its codec. */
  readonly left: readonly string[];
}

/** Never throws: unsupported tracks are omitted and named. */
export function relayedSource(description: OvtDescription): RelayedSource {
  const tracks: SourceTrack[] = [];
  const left: string[] = [];
  for (const described of description.tracks) {
    const track = sourceTrack(described);
    if (track === null) left.push(`${described.name || `track ${described.id}`} (${codecNameOf(described)})`);
    else tracks.push(track);
  }
  return { tracks, left, playlists: description.playlists.flatMap((playlist) => playlistOf(playlist, tracks) ?? []) };
}

function sourceTrack(described: OvtTrackDescription): SourceTrack | null {
  const { id, timebase, bitrate, name, publicName, language, characteristics } = described;
  const base = {
    id,
    timebase,
    bitrateConf: bitrate,
    variantName: name,
    ...(publicName !== '' && { publicName }),
    language,
    characteristics,
  };
  if (described.mediaType === OvtMediaType.DATA) return { ...base, type: 'data' };
  if (described.mediaType === OvtMediaType.VIDEO) {
    const codec = videoCodecOf(described.codecId);
    const format = codec === undefined ? undefined : VIDEO_FORMATS[codec];
    if (codec === undefined || format === undefined) return null;
    const { framerate, width, height } = described;
    const config = usable(described.config, (record) => describeVideo(codec, record));
    return { ...base, type: 'video', codec, format, config, framerateConf: framerate, width, height };
  }
  const codec = described.mediaType === OvtMediaType.AUDIO ? audioCodecOf(described.codecId) : undefined;
  // The description does not contain the channel mapping of Opus with more than two channels.
  const unclear = codec === AudioCodec.OPUS && channelsOf(described.layout) > 2;
  return codec === undefined || unclear ? null : audioSource(described, base, codec);
}

function codecNameOf({ codecId, mediaType, layout }: OvtTrackDescription): string {
  if (mediaType === OvtMediaType.VIDEO) return videoCodecOf(codecId) ?? `codec ${codecId}`;
  const codec = mediaType === OvtMediaType.AUDIO ? audioCodecOf(codecId) : undefined;
  return codec === undefined ? `codec ${codecId}` : `${codec} of ${channelsOf(layout)} channels`;
}

function audioSource(
  described: OvtTrackDescription,
  base: Pick<SourceTrack, 'id' | 'timebase' | 'bitrateConf'>,
  codec: AudioCodec,
): SourceTrack {
  const { sampleRate } = described;
  const channels = channelsOf(described.layout);
  const common = { ...base, type: 'audio', codec, sampleRate, channels } as const;
  if (codec === AudioCodec.OPUS) return { ...common, format: BitstreamFormat.RAW, config: buildOpusHead({ channels: channels || 2 }) };
  if (codec !== AudioCodec.AAC) return { ...common, format: BitstreamFormat.RAW, config: null };
  const config = usable(described.config, (record) => describeAudio(codec, record));
  return { ...common, format: BitstreamFormat.AAC_RAW, config: config ?? plainAac(sampleRate, channels) };
}

/** The most likely configuration if the origin sends none. */
function plainAac(sampleRate: number, channels: number): Uint8Array {
  const channelConfiguration = channels === 8 ? 7 : Math.min(channels || 2, 6);
  return buildAudioSpecificConfig({ objectType: AacObjectType.LC, sampleRate: sampleRate || 48_000, channelConfiguration });
}

/** The configuration, or null if it is invalid: frames carry their parameters in-band, too. */
function usable(config: Uint8Array | null, understand: (config: Uint8Array) => unknown): Uint8Array | null {
  if (config === null) return null;
  try {
    understand(config);
    return config;
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}

/** Null if none of its tracks is supported, or no URL could contain its name. */
function playlistOf(described: OvtPlaylistDescription, tracks: readonly SourceTrack[]): Playlist | null {
  // Some origins include the extension of the URL.
  const fileName = described.fileName.replace(/\.m3u8$/, '');
  const has = (type: SourceTrack['type'], name: string): boolean =>
    name === '' || tracks.some((track) => track.type === type && track.variantName === name);
  const renditions = described.renditions
    .filter(({ videoTrackName, audioTrackName }) => has('video', videoTrackName) && has('audio', audioTrackName))
    .filter(({ videoTrackName, audioTrackName }) => videoTrackName !== '' || audioTrackName !== '');
  if (renditions.length === 0 || !isAddressableName(fileName)) return null;
  const { name, webrtcAutoAbr, hlsChunklistPathDepth, enableTsPackaging } = described;
  return {
    name,
    fileName,
    options: { webrtcAutoAbr, hlsChunklistPathDepth, enableTsPackaging, enableSubtitles: true },
    renditions: renditions.map((rendition) => ({
      name: rendition.name,
      videoVariantName: rendition.videoTrackName,
      audioVariantName: rendition.audioTrackName,
      videoIndexHint: rendition.videoIndexHint,
      audioIndexHint: rendition.audioIndexHint,
    })),
  };
}
