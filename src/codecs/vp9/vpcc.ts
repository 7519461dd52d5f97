/** VPCodecConfigurationBox payload, "VP Codec ISO Media File Format Binding" §2.2. */
import { BitReader } from '../../util/bit-reader.ts';
import { BitWriter } from '../../util/bit-writer.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { Vp9Keyframe } from './frame-header.ts';

/** Decoder configuration of VP9. It lacks the frame size. */
export interface VpConfig {
  readonly profile: number;
  /** Ten times the level, e.g. 31. */
  readonly level: number;
  readonly bitDepth: number;
  readonly chromaSubsampling: number;
  readonly fullRange: boolean;
}

const VERSION_AND_FLAGS = 0x01_00_00_00;
const FULL_BOX_HEADER = 4;
const RECORD_LENGTH = 8;
const UNSPECIFIED = 2;

/** Largest luma frame of each level, VP9 levels definition; larger frames get the last level. */
const LEVEL_PICTURE_SIZES: readonly (readonly [number, number])[] = [
  [36_864, 10],
  [73_728, 11],
  [122_880, 20],
  [245_760, 21],
  [552_960, 30],
  [983_040, 31],
  [2_228_224, 40],
  [8_912_896, 50],
  [35_651_584, 60],
];
const MAX_LEVEL = 62;

/** Parses a vpcC payload, with or without the version and flags of the box. */
export function parseVpcc(data: Uint8Array): VpConfig {
  const reader = new BitReader(vpccRecord(data));
  if (reader.bitsLeft < RECORD_LENGTH * 8) throw new ProtocolError('VPCC', `vpcC of ${data.length} bytes, ${RECORD_LENGTH} expected`, 0);
  const profile = reader.bits(8);
  const level = reader.bits(8);
  const bitDepth = reader.bits(4);
  if (profile > 3 || bitDepth < 8 || bitDepth > 12) throw new ProtocolError('VPCC', `profile ${profile} with ${bitDepth} bits`, 0);
  return { profile, level, bitDepth, chromaSubsampling: reader.bits(3), fullRange: reader.flag() };
}

/** A vpcC payload without the version and flags of the box, which only some sources include; a view. */
export function vpccRecord(data: Uint8Array): Uint8Array {
  const boxed = data.length >= FULL_BOX_HEADER + RECORD_LENGTH && new BitReader(data).bits(32) === VERSION_AND_FLAGS;
  return boxed ? data.subarray(FULL_BOX_HEADER) : data;
}

/** Builds a vpcC payload (version and flags included) from a keyframe; the level follows from the frame size. */
export function buildVpcc(keyframe: Vp9Keyframe): Uint8Array {
  const writer = new BitWriter().bits(VERSION_AND_FLAGS, 32).bits(keyframe.profile, 8).bits(levelOf(keyframe), 8);
  writer.bits(keyframe.bitDepth, 4).bits(keyframe.chromaSubsampling, 3).flag(keyframe.fullRange);
  writer.bits(UNSPECIFIED, 8).bits(UNSPECIFIED, 8).bits(UNSPECIFIED, 8);
  return writer.bits(0, 16).finish();
}

/** RFC 6381 codecs string, e.g. `vp09.00.31.08`. */
export function vpCodecString(config: Pick<VpConfig, 'profile' | 'level' | 'bitDepth'>): string {
  return `vp09.${[config.profile, config.level, config.bitDepth].map((value) => value.toString().padStart(2, '0')).join('.')}`;
}

function levelOf(keyframe: Vp9Keyframe): number {
  const pixels = keyframe.width * keyframe.height;
  return LEVEL_PICTURE_SIZES.find(([size]) => pixels <= size)?.[1] ?? MAX_LEVEL;
}
