/** AVCDecoderConfigurationRecord, ISO/IEC 14496-15 §5.3.3.1. */
import { BitReader } from '../../util/bit-reader.ts';
import { ByteWriter } from '../../util/byte-writer.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { NalLengthSize } from '../nal/nal-cursor.ts';
import { isH264HighProfile, parseH264Sps } from './sps.ts';

/** Decoder configuration of H.264. Parameter sets are whole NAL units. */
export interface AvcConfig {
  readonly profileIdc: number;
  readonly constraints: number;
  readonly levelIdc: number;
  readonly lengthSize: NalLengthSize;
  readonly sps: readonly Uint8Array[];
  readonly pps: readonly Uint8Array[];
  readonly spsExtensions: readonly Uint8Array[];
}

const MAX_SPS_COUNT = 31;
const MAX_PPS_COUNT = 255;
const MAX_UNIT_LENGTH = 0xff_ff;

/** Parses an avcC payload. The parameter sets are views into `data`. */
export function parseAvcc(data: Uint8Array): AvcConfig {
  const reader = new BitReader(data);
  const version = reader.bits(8);
  if (version !== 1) throw new ProtocolError('AVCC', `avcC version ${version}, 1 expected`, 0);
  const profileIdc = reader.bits(8);
  const constraints = reader.bits(8);
  const levelIdc = reader.bits(8);
  reader.skip(6);
  const lengthSize = readLengthSize(reader);
  reader.skip(3);
  const sps = readUnits(reader, reader.bits(5));
  const pps = readUnits(reader, reader.bits(8));
  // Some writers omit the extension although the profile requires it.
  const extended = isH264HighProfile(profileIdc) && reader.bitsLeft >= 32;
  if (extended) reader.skip(24); // chroma format and bit depths, also in the SPS
  const spsExtensions = extended ? readUnits(reader, reader.bits(8)) : [];
  return { profileIdc, constraints, levelIdc, lengthSize, sps, pps, spsExtensions };
}

/** Reads the two bits `lengthSizeMinusOne`; 3-byte lengths do not exist. */
export function readLengthSize(reader: BitReader): NalLengthSize {
  const size = reader.bits(2) + 1;
  if (size === 3) throw new ProtocolError('NAL_LENGTH_SIZE', 'NAL unit lengths of 3 bytes are not allowed', reader.byteOffset);
  return size as NalLengthSize;
}

/** Builds an avcC payload with 4-byte lengths. Throws `AVCC` if a set is missing or too large, or the first SPS is broken. */
export function buildAvcc(sets: {
  readonly sps: readonly Uint8Array[];
  readonly pps: readonly Uint8Array[];
  readonly spsExtensions?: readonly Uint8Array[];
}): Uint8Array {
  const [first] = sets.sps;
  if (first === undefined || sets.sps.length > MAX_SPS_COUNT)
    throw new ProtocolError('AVCC', `${sets.sps.length} SPS, 1 to ${MAX_SPS_COUNT} expected`);
  if (sets.pps.length === 0 || sets.pps.length > MAX_PPS_COUNT)
    throw new ProtocolError('AVCC', `${sets.pps.length} PPS, 1 to ${MAX_PPS_COUNT} expected`);
  const sps = parseH264Sps(first);
  const writer = new ByteWriter(64 + first.length);
  writer.u8(1).u8(sps.profileIdc).u8(sps.constraints).u8(sps.levelIdc).u8(0xff);
  writer.u8(0xe0 | sets.sps.length);
  writeUnits(writer, sets.sps);
  writer.u8(sets.pps.length);
  writeUnits(writer, sets.pps);
  if (isH264HighProfile(sps.profileIdc)) {
    const extensions = sets.spsExtensions ?? [];
    writer
      .u8(0xfc | sps.chromaFormatIdc)
      .u8(0xf8 | (sps.bitDepthLuma - 8))
      .u8(0xf8 | (sps.bitDepthChroma - 8));
    writer.u8(extensions.length);
    writeUnits(writer, extensions);
  }
  return writer.finish();
}

/** RFC 6381 codecs string, `avc1.PPCCLL`. */
export function avcCodecString(config: Pick<AvcConfig, 'profileIdc' | 'constraints' | 'levelIdc'>): string {
  return `avc1.${[config.profileIdc, config.constraints, config.levelIdc].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

function readUnits(reader: BitReader, count: number): Uint8Array[] {
  const units: Uint8Array[] = [];
  for (let i = 0; i < count; i++) units.push(reader.bytes(reader.bits(16)));
  return units;
}

function writeUnits(writer: ByteWriter, units: readonly Uint8Array[]): void {
  for (const unit of units) {
    if (unit.length > MAX_UNIT_LENGTH)
      throw new ProtocolError('AVCC', `parameter set of ${unit.length} bytes, at most ${MAX_UNIT_LENGTH} fit`);
    writer.u16(unit.length).bytes(unit);
  }
}
