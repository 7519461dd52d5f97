/** Identification header of Opus, RFC 7845 §5.1. All integers are little-endian. */
import { ProtocolError } from '../../util/protocol-error.ts';

/** Fields of an OpusHead packet. */
export interface OpusHead {
  readonly channels: number;
  /** Samples at 48 kHz to drop at the start. */
  readonly preSkip: number;
  /** Sample rate of the original, Hz; decoders always output 48 kHz. */
  readonly inputSampleRate: number;
  /** Q7.8 dB. */
  readonly outputGain: number;
  /** 0 mono or stereo, 1 surround in Vorbis order, 255 undefined. */
  readonly mappingFamily: number;
  /** Stream count, coupled count and one byte per channel; empty for family 0. */
  readonly mapping: Uint8Array;
}

/** Rate of Opus timestamps for any input (RFC 7845 §4). */
export const OPUS_SAMPLE_RATE = 48_000;

const MAGIC = new TextEncoder().encode('OpusHead');
const FIXED_LENGTH = 19;

/** Parses an OpusHead packet. The mapping is a view into `data`. Throws `OPUS_HEAD`. */
export function parseOpusHead(data: Uint8Array): OpusHead {
  if (data.length < FIXED_LENGTH)
    throw new ProtocolError('OPUS_HEAD', `${data.length} bytes, at least ${FIXED_LENGTH} expected`, data.length);
  if (MAGIC.some((byte, index) => data[index] !== byte)) throw new ProtocolError('OPUS_HEAD', 'OpusHead expected', 0);
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  const version = view.getUint8(8);
  // Only a change of the upper four bits makes versions incompatible.
  if (version >> 4 !== 0) throw new ProtocolError('OPUS_HEAD', `version ${version}`, 8);
  const channels = view.getUint8(9);
  if (channels === 0) throw new ProtocolError('OPUS_HEAD', 'no channels', 9);
  const mappingFamily = view.getUint8(18);
  const mappingEnd = mappingFamily === 0 ? FIXED_LENGTH : FIXED_LENGTH + 2 + channels;
  if (mappingEnd > data.length) throw new ProtocolError('OPUS_HEAD', 'channel mapping ends early', data.length);
  return {
    channels,
    preSkip: view.getUint16(10, true),
    inputSampleRate: view.getUint32(12, true),
    outputGain: view.getInt16(16, true),
    mappingFamily,
    mapping: data.subarray(FIXED_LENGTH, mappingEnd),
  };
}

/** Builds an OpusHead packet; without a mapping its family is 0 (mono or stereo). */
export function buildOpusHead(head: Pick<OpusHead, 'channels'> & Partial<OpusHead>): Uint8Array {
  const mapping = head.mapping ?? new Uint8Array(0);
  const out = new Uint8Array(FIXED_LENGTH + mapping.length);
  const view = new DataView(out.buffer);
  out.set(MAGIC);
  view.setUint8(8, 1);
  view.setUint8(9, head.channels);
  view.setUint16(10, head.preSkip ?? 0, true);
  view.setUint32(12, head.inputSampleRate ?? OPUS_SAMPLE_RATE, true);
  view.setInt16(16, head.outputGain ?? 0, true);
  view.setUint8(18, head.mappingFamily ?? 0);
  out.set(mapping, FIXED_LENGTH);
  return out;
}
