/** Stream types, stream ids and descriptors by codec, ISO/IEC 13818-1 §2.4.4.9 and §2.6. */
import { parseOpusHead } from '../../codecs/opus/opus-head.ts';
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import type { Track } from '../../media/track.ts';
import { ByteWriter } from '../../util/byte-writer.ts';

/** The `stream_type`s of a program map table (ISO/IEC 13818-1 table 2-34) that are read or written here. */
export const StreamType = {
  MPEG1_AUDIO: 0x03,
  MPEG2_AUDIO: 0x04,
  PRIVATE: 0x06,
  AAC_ADTS: 0x0f,
  AAC_LATM: 0x11,
  METADATA_PES: 0x15,
  H264: 0x1b,
  H265: 0x24,
  /** splice_info_sections (ANSI/SCTE 35 §8.1), not PES packets. */
  SCTE35: 0x86,
} as const;
/** Any value of `StreamType`. */
export type StreamType = (typeof StreamType)[keyof typeof StreamType];

/** Base values of PES stream ids (table 2-22). */
export const StreamId = {
  PRIVATE_1: 0xbd,
  AUDIO: 0xc0,
  VIDEO: 0xe0,
} as const;

/** Tags of descriptors (table 2-45 and ETSI EN 300 468). */
export const Descriptor = {
  REGISTRATION: 0x05,
  LANGUAGE: 0x0a,
  METADATA_POINTER: 0x25,
  METADATA: 0x26,
  DVB_EXTENSION: 0x7f,
} as const;

const MPEG1_LOWEST_RATE = 32_000;
const OPUS_EXTENSION_TAG = 0x80;
/** The following identifiers name application and format (§2.6.58). */
const FORMAT_BY_IDENTIFIER = [0xff, 0xff] as const;

/** Whether a transport stream can carry the track. */
export function canCarry(track: Track): boolean {
  return streamTypeOf(track) !== null;
}

/** The stream type for the program map table; null if a transport stream cannot carry the track. */
export function streamTypeOf(track: Track): StreamType | null {
  if (track.type === 'data') return StreamType.METADATA_PES;
  if (track.type === 'subtitle') return null;
  switch (track.codec) {
    case VideoCodec.H264:
      return track.config === null ? null : StreamType.H264;
    case VideoCodec.H265:
      return track.config === null ? null : StreamType.H265;
    case AudioCodec.AAC:
      return track.config === null ? null : StreamType.AAC_ADTS;
    case AudioCodec.OPUS:
      return StreamType.PRIVATE;
    case AudioCodec.MP3:
      return track.sampleRate >= MPEG1_LOWEST_RATE ? StreamType.MPEG1_AUDIO : StreamType.MPEG2_AUDIO;
    default:
      return null;
  }
}

/** Descriptors of the program: for ID3 metadata, if a track has it, and for splice_info_sections (`splices`). */
export function programDescriptors(tracks: readonly Track[], programNumber: number, splices = false): Uint8Array {
  const writer = new ByteWriter(32);
  if (tracks.some((track) => track.type === 'data')) {
    writer.u8(Descriptor.METADATA_POINTER).u8(15).u8(FORMAT_BY_IDENTIFIER[0]).u8(FORMAT_BY_IDENTIFIER[1]).text('ID3 ');
    writer.u8(0xff).text('ID3 ').u8(0).u8(0x1f).u16(programNumber);
  }
  if (splices) writer.u8(Descriptor.REGISTRATION).u8(4).text('CUEI');
  return writer.finish();
}

/** Descriptors of one elementary stream. */
export function streamDescriptors(track: Track): Uint8Array {
  const writer = new ByteWriter(32);
  if (track.type === 'data') {
    writer.u8(Descriptor.METADATA).u8(13).u8(FORMAT_BY_IDENTIFIER[0]).u8(FORMAT_BY_IDENTIFIER[1]).text('ID3 ');
    return writer.u8(0xff).text('ID3 ').u8(0).u8(0x0f).finish();
  }
  if (track.type === 'subtitle') return writer.finish();
  if (track.codec === VideoCodec.H265) writer.u8(Descriptor.REGISTRATION).u8(4).text('HEVC');
  if (track.codec === AudioCodec.OPUS) {
    writer.u8(Descriptor.REGISTRATION).u8(4).text('Opus');
    const channels = track.config === null ? track.channels : parseOpusHead(track.config).channels;
    writer.u8(Descriptor.DVB_EXTENSION).u8(2).u8(OPUS_EXTENSION_TAG).u8(channels);
  }
  // ISO 639-2 codes have three letters, so two-letter tags of RFC 5646 cannot be written.
  if (/^[a-z]{3}$/i.test(track.language)) writer.u8(Descriptor.LANGUAGE).u8(4).text(track.language.toLowerCase()).u8(0);
  return writer.finish();
}
