/** The stream description that encoders send as `onMetaData` (FLV annex E.5, Enhanced RTMP v2). */
import type { AudioCodec, VideoCodec } from '../../media/codec.ts';
import { audioCodecOfMetadata, videoCodecOfMetadata } from './fourcc.ts';

/** Field lookup of a decoded script object of any encoding. */
export type MetadataFields = ReadonlyMap<string, unknown>;

/** The video of the metadata; zero: absent. */
export interface FlvVideoDescription {
  readonly codec: VideoCodec;
  readonly width: number;
  readonly height: number;
  readonly framerate: number;
  /** Bits per second. */
  readonly bitrate: number;
}

/** The audio of the metadata; zero: absent. */
export interface FlvAudioDescription {
  readonly codec: AudioCodec;
  /** Hz. */
  readonly sampleRate: number;
  readonly channels: number;
  /** Bits per second. */
  readonly bitrate: number;
}

/** Tracks by their wire number; the top-level fields describe track 0. */
export interface FlvMetadata {
  readonly video: ReadonlyMap<number, FlvVideoDescription>;
  readonly audio: ReadonlyMap<number, FlvAudioDescription>;
  /** Name of the software that made the stream; empty if absent. */
  readonly encoder: string;
}

const MAX_TRACK_ID = 255;

/** Reads the usable fields; fields of wrong types count as absent. Tracks of unsupported codecs are left out. */
export function parseMetadata(fields: MetadataFields): FlvMetadata {
  const video = new Map<number, FlvVideoDescription>();
  const audio = new Map<number, FlvAudioDescription>();
  addVideo(video, 0, fields);
  addAudio(audio, 0, fields);
  for (const [id, track] of tracksIn(fields.get('videoTrackIdInfoMap'))) addVideo(video, id, track);
  for (const [id, track] of tracksIn(fields.get('audioTrackIdInfoMap'))) addAudio(audio, id, track);
  return { video, audio, encoder: text(fields, 'videodevice') || text(fields, 'encoder') };
}

function addVideo(tracks: Map<number, FlvVideoDescription>, id: number, fields: MetadataFields): void {
  const codec = videoCodecOfMetadata(fields.get('videocodecid'));
  if (codec === null) return;
  tracks.set(id, {
    codec,
    width: amount(fields, 'width'),
    height: amount(fields, 'height'),
    framerate: amount(fields, 'framerate', 'videoframerate'),
    bitrate: amount(fields, 'videodatarate', 'bitrate', 'maxBitrate') * 1000,
  });
}

function addAudio(tracks: Map<number, FlvAudioDescription>, id: number, fields: MetadataFields): void {
  const codec = audioCodecOfMetadata(fields.get('audiocodecid'));
  if (codec === null) return;
  tracks.set(id, {
    codec,
    sampleRate: amount(fields, 'audiosamplerate', 'samplerate'),
    channels: amount(fields, 'audiochannels', 'channels') || channelsOfStereo(fields.get('stereo')),
    bitrate: amount(fields, 'audiodatarate') * 1000,
  });
}

function tracksIn(value: unknown): [number, MetadataFields][] {
  const tracks: [number, MetadataFields][] = [];
  for (const [name, track] of fieldsOf(value) ?? []) {
    const id = Number(name);
    const fields = fieldsOf(track);
    if (Number.isInteger(id) && id >= 0 && id <= MAX_TRACK_ID && fields !== null) tracks.push([id, fields]);
  }
  return tracks;
}

function fieldsOf(value: unknown): MetadataFields | null {
  if (typeof value !== 'object' || value === null || !('fields' in value)) return null;
  return value.fields instanceof Map ? value.fields : null;
}

function channelsOfStereo(value: unknown): number {
  if (typeof value !== 'boolean') return 0;
  return value ? 2 : 1;
}

/** The first positive finite number, also if written as text; a text with a unit (`"2500k"`) counts as 0. */
function amount(fields: MetadataFields, ...names: readonly string[]): number {
  for (const name of names) {
    const value = fields.get(name);
    const number = typeof value === 'string' ? Number(value) : value;
    if (typeof number === 'number' && Number.isFinite(number) && number > 0) return number;
  }
  return 0;
}

function text(fields: MetadataFields, name: string): string {
  const value = fields.get(name);
  return typeof value === 'string' ? value : '';
}
