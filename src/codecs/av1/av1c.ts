/** AV1CodecConfigurationRecord, "AV1 Codec ISO Media File Format Binding" §2.3. */
import { BitReader } from '../../util/bit-reader.ts';
import { BitWriter } from '../../util/bit-writer.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { ObuCursor, ObuType } from './obu.ts';
import { type Av1Sequence, parseAv1SequenceHeader } from './sequence-header.ts';

/** Decoder configuration of AV1. */
export interface Av1Config {
  readonly profile: number;
  readonly level: number;
  readonly tier: number;
  readonly bitDepth: number;
  readonly monochrome: boolean;
  /** Sequence header OBU with its header; null if the record has none. */
  readonly sequenceHeader: Uint8Array | null;
}

const MARKER_AND_VERSION = 0x81;

/** Parses an av1C payload. The sequence header is a view into `data`. */
export function parseAv1c(data: Uint8Array): Av1Config {
  const reader = new BitReader(data);
  const version = reader.bits(8);
  if (version !== MARKER_AND_VERSION) throw new ProtocolError('AV1C', `av1C begins with ${version}, ${MARKER_AND_VERSION} expected`, 0);
  const profile = reader.bits(3);
  const level = reader.bits(5);
  const tier = reader.bits(1);
  const highBitDepth = reader.flag();
  const twelveBit = reader.flag();
  const monochrome = reader.flag();
  reader.skip(12); // subsampling, sample position, presentation delay: the sequence header has them too
  const sequenceHeader = findSequenceHeader(data.subarray(reader.byteOffset));
  return { profile, level, tier, bitDepth: twelveBit ? 12 : highBitDepth ? 10 : 8, monochrome, sequenceHeader };
}

/** Builds an av1C payload around a sequence header OBU. */
export function buildAv1c(sequenceHeader: Uint8Array): Uint8Array {
  const sequence = parseAv1SequenceHeader(sequenceHeader);
  const head = new BitWriter().bits(MARKER_AND_VERSION, 8).bits(sequence.profile, 3).bits(sequence.level, 5).bits(sequence.tier, 1);
  head
    .flag(sequence.bitDepth > 8)
    .flag(sequence.bitDepth === 12)
    .flag(sequence.monochrome);
  head.bits(sequence.subsamplingX, 1).bits(sequence.subsamplingY, 1).bits(sequence.chromaSamplePosition, 2);
  head.bits(0, 8); // no initial presentation delay
  const out = new Uint8Array(4 + sequenceHeader.length);
  out.set(head.finish());
  out.set(sequenceHeader, 4);
  return out;
}

/** RFC 6381 codecs string, e.g. `av01.0.04M.08` (binding §5; trailing defaults left out). */
export function av1CodecString(config: Pick<Av1Sequence, 'profile' | 'level' | 'tier' | 'bitDepth'>): string {
  const two = (value: number): string => value.toString().padStart(2, '0');
  return `av01.${config.profile}.${two(config.level)}${config.tier === 1 ? 'H' : 'M'}.${two(config.bitDepth)}`;
}

/** The first sequence header OBU of `obus` as a view, or null. */
export function findSequenceHeader(obus: Uint8Array): Uint8Array | null {
  const cursor = new ObuCursor(obus);
  while (cursor.next()) {
    if (cursor.type === ObuType.SEQUENCE_HEADER) return cursor.unit();
  }
  return null;
}
