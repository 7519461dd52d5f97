/** Reads sample entries of stsd (ISO/IEC 14496-12 §8.5.2): the codec of a track, and its decoder configuration. */
import { buildOpusHead } from '../../codecs/opus/opus-head.ts';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { type Box, bodyView, readBoxes } from './box-reader.ts';

/** A visual sample entry (§12.1.3), with its size in pixels. */
export interface VideoDescriptionEntry {
  readonly type: 'video';
  readonly codec: VideoCodec;
  /** Payload of avcC, hvcC, av1C or vpcC; null for VP8. */
  readonly config: Uint8Array | null;
  readonly width: number;
  readonly height: number;
}

/** An audio sample entry (§12.2.3). */
export interface AudioDescriptionEntry {
  readonly type: 'audio';
  readonly codec: AudioCodec;
  /** AudioSpecificConfig or OpusHead; null for MP3. */
  readonly config: Uint8Array | null;
  /** Hz; 0 if only the configuration has it. */
  readonly sampleRate: number;
  readonly channels: number;
}

/** A track of an unsupported codec; `what` is for the log. */
export interface UnsupportedEntry {
  readonly type: 'unsupported';
  readonly what: string;
}

/** The stsd entry of a track. */
export type DescriptionEntry = VideoDescriptionEntry | AudioDescriptionEntry | UnsupportedEntry;

const STSD_HEADER = 8;
const VISUAL_ENTRY = 78;
const AUDIO_ENTRY = 28;
/** The additional fields of QuickTime's versions of the audio entry. */
const AUDIO_VERSION_EXTRA = [0, 16, 36] as const;
/** Version and flags of vpcC and esds. */
const FULL_BOX = 4;
const DOPS_SIZE = 11;

const VIDEO_ENTRIES: Readonly<Record<string, { readonly codec: VideoCodec; readonly config: string | null }>> = {
  avc1: { codec: VideoCodec.H264, config: 'avcC' },
  avc3: { codec: VideoCodec.H264, config: 'avcC' },
  hvc1: { codec: VideoCodec.H265, config: 'hvcC' },
  hev1: { codec: VideoCodec.H265, config: 'hvcC' },
  av01: { codec: VideoCodec.AV1, config: 'av1C' },
  vp09: { codec: VideoCodec.VP9, config: 'vpcC' },
  vp08: { codec: VideoCodec.VP8, config: null },
};

/** The first entry of an stsd (`body` without its header). Throws `ProtocolError`. */
export function readSampleDescription(body: Uint8Array): DescriptionEntry {
  const entry = readBoxes(body.subarray(Math.min(STSD_HEADER, body.length)))[0];
  if (entry === undefined) throw new ProtocolError('ISOBMFF_DESCRIPTION', 'stsd without an entry', 0);
  const video = Object.hasOwn(VIDEO_ENTRIES, entry.type) ? VIDEO_ENTRIES[entry.type] : undefined;
  if (video !== undefined) return readVideo(entry, video);
  if (entry.type === 'mp4a' || entry.type === '.mp3' || entry.type === 'Opus') return readAudio(entry);
  return { type: 'unsupported', what: entry.type.replace(/[^\x20-\x7e]/g, '?') };
}

function readVideo(entry: Box, { codec, config: name }: { codec: VideoCodec; config: string | null }): VideoDescriptionEntry {
  const view = bodyView(entry, VISUAL_ENTRY);
  const found = name === null ? null : inner(entry, VISUAL_ENTRY).find(({ type }) => type === name);
  if (found === undefined) throw new ProtocolError('ISOBMFF_DESCRIPTION', `${entry.type} without ${name}`, entry.offset);
  const config = found === null ? null : found.type === 'vpcC' ? found.body.subarray(FULL_BOX) : found.body;
  return { type: 'video', codec, config, width: view.getUint16(24), height: view.getUint16(26) };
}

function readAudio(entry: Box): AudioDescriptionEntry | UnsupportedEntry {
  const view = bodyView(entry, AUDIO_ENTRY);
  const version = view.getUint16(8);
  const boxes = inner(entry, AUDIO_ENTRY + (AUDIO_VERSION_EXTRA[version] ?? 0));
  const base = { type: 'audio', sampleRate: view.getUint16(24), channels: view.getUint16(16) } as const;
  if (entry.type === '.mp3') return { ...base, codec: AudioCodec.MP3, config: null };
  if (entry.type === 'Opus') return { ...base, codec: AudioCodec.OPUS, config: opusHead(boxes, entry) };
  // QuickTime puts it into another box.
  const esds = boxes.find(({ type }) => type === 'esds') ?? boxes.filter(({ type }) => type === 'wave').flatMap(inWave)[0];
  if (esds === undefined) throw new ProtocolError('ISOBMFF_DESCRIPTION', 'mp4a without esds', entry.offset);
  return readElementaryStream(esds, base);
}

function inWave(wave: Box): Box[] {
  return readBoxes(wave.body).filter(({ type }) => type === 'esds');
}

/** dOps to the header of RFC 7845, whose numbers are little-endian. */
function opusHead(boxes: readonly Box[], entry: Box): Uint8Array {
  const dops = boxes.find(({ type }) => type === 'dOps');
  if (dops === undefined) throw new ProtocolError('ISOBMFF_DESCRIPTION', 'Opus without dOps', entry.offset);
  const view = bodyView(dops, DOPS_SIZE);
  const channels = view.getUint8(1);
  const mappingFamily = view.getUint8(10);
  const mapping = mappingFamily === 0 ? new Uint8Array(0) : dops.body.subarray(DOPS_SIZE, DOPS_SIZE + 2 + channels);
  const [preSkip, inputSampleRate, outputGain] = [view.getUint16(2), view.getUint32(4), view.getInt16(8)];
  return buildOpusHead({ channels, preSkip, inputSampleRate, outputGain, mappingFamily, mapping });
}

const ES_DESCRIPTOR = 0x03;
const DECODER_CONFIG = 0x04;
const DECODER_SPECIFIC_INFO = 0x05;
/** Object types (ISO/IEC 14496-1, table 5): AAC of MPEG-4 and MPEG-2, MP3 of MPEG-2 and MPEG-1. */
const AAC_OBJECTS: readonly number[] = [0x40, 0x66, 0x67, 0x68];
const MP3_OBJECTS: readonly number[] = [0x69, 0x6b];

/** esds (ISO/IEC 14496-14 §5.6). */
function readElementaryStream(
  esds: Box,
  base: Pick<AudioDescriptionEntry, 'type' | 'sampleRate' | 'channels'>,
): AudioDescriptionEntry | UnsupportedEntry {
  const stream = descriptor(esds.body.subarray(FULL_BOX), ES_DESCRIPTOR);
  const flags = stream?.[2] ?? 0;
  const optional = ((flags & 0x80) !== 0 ? 2 : 0) + ((flags & 0x40) !== 0 ? 1 + (stream?.[3] ?? 0) : 0) + ((flags & 0x20) !== 0 ? 2 : 0);
  const decoder = stream === null ? null : descriptor(stream.subarray(Math.min(3 + optional, stream.length)), DECODER_CONFIG);
  const object = decoder?.[0];
  if (decoder === null || object === undefined) throw new ProtocolError('ISOBMFF_DESCRIPTION', 'esds without a decoder', esds.offset);
  if (MP3_OBJECTS.includes(object)) return { ...base, codec: AudioCodec.MP3, config: null };
  if (!AAC_OBJECTS.includes(object)) return { type: 'unsupported', what: `mp4a.${object.toString(16)}` };
  const config = descriptor(decoder.subarray(Math.min(13, decoder.length)), DECODER_SPECIFIC_INFO);
  if (config === null || config.length === 0)
    throw new ProtocolError('ISOBMFF_DESCRIPTION', 'AAC without an AudioSpecificConfig', esds.offset);
  return { ...base, codec: AudioCodec.AAC, config };
}

/** The content of the first descriptor with `tag`; null without one (ISO/IEC 14496-1 §8.3.3: sizes have seven bits in each byte). */
function descriptor(bytes: Uint8Array, tag: number): Uint8Array | null {
  let at = 0;
  while (at < bytes.length) {
    const found = bytes[at];
    at += 1;
    let size = 0;
    for (let count = 0; count < 4; count += 1) {
      const byte = bytes[at] ?? 0;
      at += 1;
      size = (size << 7) | (byte & 0x7f);
      if ((byte & 0x80) === 0) break;
    }
    if (found === tag) return bytes.subarray(at, at + size);
    at += size;
  }
  return null;
}

function inner(entry: Box, at: number): Box[] {
  if (entry.body.length < at) throw new ProtocolError('ISOBMFF_TRUNCATED', `${entry.type} needs ${at} bytes`, entry.offset);
  return readBoxes(entry.body.subarray(at));
}
