/** HEVCDecoderConfigurationRecord, ISO/IEC 14496-15 §8.3.3.1. */
import { BitReader } from '../../util/bit-reader.ts';
import { ByteWriter } from '../../util/byte-writer.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { readLengthSize } from '../h264/avcc.ts';
import type { NalLengthSize } from '../nal/nal-cursor.ts';
import { H265NalType } from './nal-type.ts';
import { type ProfileTierLevel, readGeneralProfile } from './profile-tier-level.ts';
import { parseH265Sps } from './sps.ts';

/** Decoder configuration of H.265. Parameter sets are whole NAL units. */
export interface HevcConfig {
  readonly profile: ProfileTierLevel;
  /** Frames per second in the record; 0 if unknown. */
  readonly avgFrameRate: number;
  readonly lengthSize: NalLengthSize;
  readonly vps: readonly Uint8Array[];
  readonly sps: readonly Uint8Array[];
  readonly pps: readonly Uint8Array[];
}

const MAX_UNIT_LENGTH = 0xff_ff;
const MAX_UNIT_COUNT = 255;

/** Parses an hvcC payload. The parameter sets are views into `data`. */
export function parseHvcc(data: Uint8Array): HevcConfig {
  const reader = new BitReader(data);
  const version = reader.bits(8);
  // Version 0 was written by early muxers and has the same layout.
  if (version > 1) throw new ProtocolError('HVCC', `hvcC version ${version}, 1 expected`, 0);
  const profile = readGeneralProfile(reader);
  reader.skip(48); // segmentation, parallelism, chroma format, bit depths: all in the SPS
  const avgFrameRate = reader.bits(16) / 256;
  reader.skip(6); // constantFrameRate, numTemporalLayers, temporalIdNested
  const lengthSize = readLengthSize(reader);
  const sets: Record<'vps' | 'sps' | 'pps', Uint8Array[]> = { vps: [], sps: [], pps: [] };
  const arrays = reader.bits(8);
  for (let i = 0; i < arrays; i++) {
    reader.skip(2);
    const type = reader.bits(6);
    const count = reader.bits(16);
    for (let unit = 0; unit < count; unit++) {
      const bytes = reader.bytes(reader.bits(16));
      if (type === H265NalType.VPS) sets.vps.push(bytes);
      else if (type === H265NalType.SPS) sets.sps.push(bytes);
      else if (type === H265NalType.PPS) sets.pps.push(bytes);
    }
  }
  return { profile, avgFrameRate, lengthSize, ...sets };
}

/** Builds an hvcC payload with 4-byte lengths. Throws `HVCC` if a set is missing or too large, or the first SPS is broken. */
export function buildHvcc(sets: {
  readonly vps: readonly Uint8Array[];
  readonly sps: readonly Uint8Array[];
  readonly pps: readonly Uint8Array[];
}): Uint8Array {
  const [first] = sets.sps;
  if (first === undefined) throw new ProtocolError('HVCC', 'no SPS');
  const sps = parseH265Sps(first);
  const writer = new ByteWriter(128 + first.length);
  const { profile } = sps;
  writer.u8(1).u8((profile.profileSpace << 6) | (profile.tier << 5) | profile.profileIdc);
  writer.u32(profile.compatibility).bytes(Uint8Array.from(profile.constraints)).u8(profile.levelIdc);
  writer.u16(0xf0_00 | sps.minSpatialSegmentation);
  writer.u8(0xfc); // parallelismType unknown
  writer
    .u8(0xfc | sps.chromaFormatIdc)
    .u8(0xf8 | (sps.bitDepthLuma - 8))
    .u8(0xf8 | (sps.bitDepthChroma - 8));
  writer.u16(0); // avgFrameRate unspecified
  writer.u8((sps.temporalLayers << 3) | (Number(sps.temporalIdNested) << 2) | 3);
  writer.u8(3);
  writeArray(writer, H265NalType.VPS, sets.vps);
  writeArray(writer, H265NalType.SPS, sets.sps);
  writeArray(writer, H265NalType.PPS, sets.pps);
  return writer.finish();
}

function writeArray(writer: ByteWriter, type: number, units: readonly Uint8Array[]): void {
  if (units.length === 0 || units.length > MAX_UNIT_COUNT) {
    throw new ProtocolError('HVCC', `${units.length} NAL units of type ${type}, 1 to ${MAX_UNIT_COUNT} expected`);
  }
  writer.u8(0x80 | type).u16(units.length); // array_completeness: nothing else comes in-band
  for (const unit of units) {
    if (unit.length > MAX_UNIT_LENGTH)
      throw new ProtocolError('HVCC', `parameter set of ${unit.length} bytes, at most ${MAX_UNIT_LENGTH} fit`);
    writer.u16(unit.length).bytes(unit);
  }
}
