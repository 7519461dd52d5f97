/** Sample entries of stsd: the decoder configuration of each codec. */
import { vpccRecord } from '../../codecs/vp9/vpcc.ts';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import type { AudioTrack, VideoTrack } from '../../media/track.ts';
import type { BoxWriter } from './box-writer.ts';

const DPI_72 = 0x0048_0000;
const COLOUR_DEPTH_24 = 0x0018;
const COMPRESSOR_NAME_SIZE = 32;
/** Position of lengthSizeMinusOne, ISO/IEC 14496-15 §5.3.3.1 and §8.3.3.1. */
const AVCC_LENGTH_SIZE_AT = 4;
const HVCC_LENGTH_SIZE_AT = 21;
const LENGTH_SIZE_4 = 0x03;

interface VideoEntry {
  readonly entry: string;
  readonly config: string;
  /** Version and flags of a full-box config (vpcC); null for plain boxes. */
  readonly fullBoxVersion: number | null;
}

const VIDEO_ENTRIES: Partial<Record<VideoCodec, VideoEntry>> = {
  [VideoCodec.H264]: { entry: 'avc1', config: 'avcC', fullBoxVersion: null },
  [VideoCodec.H265]: { entry: 'hvc1', config: 'hvcC', fullBoxVersion: null },
  [VideoCodec.AV1]: { entry: 'av01', config: 'av1C', fullBoxVersion: null },
  [VideoCodec.VP9]: { entry: 'vp09', config: 'vpcC', fullBoxVersion: 1 },
};

const AUDIO_CODECS: readonly AudioCodec[] = [AudioCodec.AAC, AudioCodec.OPUS, AudioCodec.MP3];

/** True if a sample entry can be written: the codec is supported here and its configuration has arrived. */
export function hasSampleEntry(track: VideoTrack | AudioTrack): boolean {
  if (track.type === 'video') return VIDEO_ENTRIES[track.codec] !== undefined && track.config !== null;
  return AUDIO_CODECS.includes(track.codec) && (track.codec !== AudioCodec.AAC || track.config !== null);
}

/** Appends the VisualSampleEntry (ISO/IEC 14496-12 §12.1.3) with its decoder configuration. */
export function writeVideoSampleEntry(writer: BoxWriter, track: VideoTrack): void {
  const names = VIDEO_ENTRIES[track.codec];
  if (names === undefined || track.config === null) throw new TypeError(`no sample entry for ${track.codec}`);
  const entry = writer.box(names.entry);
  writer.zeros(6);
  writer.u16(1);
  writer.zeros(16);
  writer.u16(track.width);
  writer.u16(track.height);
  writer.u32(DPI_72);
  writer.u32(DPI_72);
  writer.u32(0);
  writer.u16(1);
  writer.zeros(COMPRESSOR_NAME_SIZE);
  writer.u16(COLOUR_DEPTH_24);
  writer.u16(0xffff);
  const config = names.fullBoxVersion === null ? writer.box(names.config) : writer.fullBox(names.config, names.fullBoxVersion, 0);
  writer.bytes(track.codec === VideoCodec.VP9 ? vpccRecord(track.config) : withFourByteLengths(track.codec, track.config));
  writer.end(config);
  writer.end(entry);
}

/** Packets always have 4-byte NAL lengths, so the source's record must say so. */
function withFourByteLengths(codec: VideoCodec, config: Uint8Array): Uint8Array {
  const at = codec === VideoCodec.H264 ? AVCC_LENGTH_SIZE_AT : codec === VideoCodec.H265 ? HVCC_LENGTH_SIZE_AT : -1;
  const value = config[at];
  if (value === undefined || (value & LENGTH_SIZE_4) === LENGTH_SIZE_4) return config;
  const patched = config.slice();
  patched[at] = value | LENGTH_SIZE_4;
  return patched;
}

/** Appends the AudioSampleEntry (ISO/IEC 14496-12 §12.2.3) with its decoder configuration. */
export function writeAudioSampleEntry(writer: BoxWriter, track: AudioTrack): void {
  const entry = writer.box(track.codec === AudioCodec.OPUS ? 'Opus' : 'mp4a');
  writer.zeros(6);
  writer.u16(1);
  writer.zeros(8);
  writer.u16(track.channels);
  writer.u16(16);
  writer.u32(0);
  // 16.16 fixed point cannot hold more than 65535 Hz; readers then take the rate from the configuration.
  writer.u16(track.sampleRate <= 0xffff ? track.sampleRate : 0);
  writer.u16(0);
  if (track.codec === AudioCodec.OPUS) writeOpusConfig(writer, track);
  else writeElementaryStreamDescriptor(writer, track);
  writer.end(entry);
}

const OPUS_HEAD_MIN_SIZE = 19;
const OPUS_RATE = 48_000;

/** dOps ("Encapsulation of Opus in ISOBMFF" §4.3.2): OpusHead of RFC 7845 without magic, big-endian, version 0. */
function writeOpusConfig(writer: BoxWriter, track: AudioTrack): void {
  const box = writer.box('dOps');
  writer.u8(0);
  const head = track.config;
  if (head === null || head.length < OPUS_HEAD_MIN_SIZE) {
    writer.u8(track.channels);
    writer.u16(0);
    writer.u32(OPUS_RATE);
    writer.u16(0);
    writer.u8(0);
  } else {
    const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
    writer.u8(view.getUint8(9));
    writer.u16(view.getUint16(10, true));
    writer.u32(view.getUint32(12, true));
    writer.u16(view.getUint16(16, true));
    writer.bytes(head.subarray(18));
  }
  writer.end(box);
}

const ES_DESCRIPTOR = 0x03;
const DECODER_CONFIG = 0x04;
const DECODER_SPECIFIC_INFO = 0x05;
const SL_CONFIG = 0x06;
const OBJECT_TYPE_AAC = 0x40;
const OBJECT_TYPE_MP3 = 0x6b;
/** streamType 5 (audio), upStream 0, reserved 1. */
const AUDIO_STREAM = 0x15;
const DECODER_CONFIG_FIXED_SIZE = 13;
const DESCRIPTOR_HEADER_SIZE = 2;

/** esds (ISO/IEC 14496-14 §5.6, descriptors of ISO/IEC 14496-1 §7.2.6). */
function writeElementaryStreamDescriptor(writer: BoxWriter, track: AudioTrack): void {
  const specific = track.codec === AudioCodec.AAC ? (track.config ?? new Uint8Array()) : new Uint8Array();
  const specificSize = specific.length > 0 ? DESCRIPTOR_HEADER_SIZE + specific.length : 0;
  const decoderSize = DECODER_CONFIG_FIXED_SIZE + specificSize;
  const box = writer.fullBox('esds', 0, 0);
  writeDescriptor(writer, ES_DESCRIPTOR, 3 + DESCRIPTOR_HEADER_SIZE + decoderSize + DESCRIPTOR_HEADER_SIZE + 1);
  writer.u16(0);
  writer.u8(0);
  writeDescriptor(writer, DECODER_CONFIG, decoderSize);
  writer.u8(track.codec === AudioCodec.AAC ? OBJECT_TYPE_AAC : OBJECT_TYPE_MP3);
  writer.u8(AUDIO_STREAM);
  writer.zeros(3);
  writer.u32(track.bitrateConf);
  writer.u32(track.bitrateConf);
  if (specificSize > 0) {
    writeDescriptor(writer, DECODER_SPECIFIC_INFO, specific.length);
    writer.bytes(specific);
  }
  writeDescriptor(writer, SL_CONFIG, 1);
  writer.u8(0x02);
  writer.end(box);
}

/** Sizes here are below 128 (an AudioSpecificConfig has a few bytes), so one size byte suffices. */
function writeDescriptor(writer: BoxWriter, tag: number, size: number): void {
  if (size > 0x7f) throw new TypeError(`a descriptor of ${size} bytes is too large for an AudioSpecificConfig`);
  writer.u8(tag);
  writer.u8(size);
}
