/** profile_tier_level of H.265, ISO/IEC 23008-2 §7.3.3. */
import type { BitReader } from '../../util/bit-reader.ts';

/** The general part, as hvcC and codec strings repeat it. */
export interface ProfileTierLevel {
  readonly profileSpace: number;
  /** 0 main tier, 1 high tier. */
  readonly tier: number;
  readonly profileIdc: number;
  /** 32 flags, the first one in the most significant bit. */
  readonly compatibility: number;
  /** The six bytes of constraint flags. */
  readonly constraints: readonly number[];
  readonly levelIdc: number;
}

const CONSTRAINT_BYTES = 6;
const MAX_SUB_LAYERS = 8;

/** Reads the 88 bits of the general profile and the level behind them; hvcC has the same layout. */
export function readGeneralProfile(reader: BitReader): ProfileTierLevel {
  const profileSpace = reader.bits(2);
  const tier = reader.bits(1);
  const profileIdc = reader.bits(5);
  const compatibility = reader.bits(32);
  const constraints: number[] = [];
  for (let i = 0; i < CONSTRAINT_BYTES; i++) constraints.push(reader.bits(8));
  return { profileSpace, tier, profileIdc, compatibility, constraints, levelIdc: reader.bits(8) };
}

/** Reads `profile_tier_level(1, maxSubLayersMinus1)`; skips the sub-layers. */
export function readProfileTierLevel(reader: BitReader, maxSubLayersMinus1: number): ProfileTierLevel {
  const general = readGeneralProfile(reader);
  if (maxSubLayersMinus1 === 0) return general;
  const present: { profile: boolean; level: boolean }[] = [];
  for (let i = 0; i < maxSubLayersMinus1; i++) present.push({ profile: reader.flag(), level: reader.flag() });
  reader.skip(2 * (MAX_SUB_LAYERS - maxSubLayersMinus1));
  for (const layer of present) reader.skip((layer.profile ? 88 : 0) + (layer.level ? 8 : 0));
  return general;
}

/** RFC 6381 codecs string as ISO/IEC 14496-15 Annex E.3 builds it, e.g. `hvc1.1.6.L93.B0`. */
export function hevcCodecString(profile: ProfileTierLevel): string {
  const space = profile.profileSpace === 0 ? '' : String.fromCharCode(0x40 + profile.profileSpace);
  const constraints = profile.constraints.slice(0, profile.constraints.findLastIndex((byte) => byte !== 0) + 1);
  return [
    'hvc1',
    `${space}${profile.profileIdc}`,
    reverseBits(profile.compatibility).toString(16).toUpperCase(),
    `${profile.tier === 1 ? 'H' : 'L'}${profile.levelIdc}`,
    ...constraints.map((byte) => byte.toString(16).toUpperCase()),
  ].join('.');
}

function reverseBits(value: number): number {
  let reversed = 0;
  for (let bit = 0; bit < 32; bit++) reversed = reversed * 2 + ((value >>> bit) & 1);
  return reversed;
}
