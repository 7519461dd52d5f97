/** Follows the parameter sets inside the bitstream and turns them into decoder configurations. */
import { VideoCodec } from '../media/codec.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { buildAv1c, findSequenceHeader, parseAv1c } from './av1/av1c.ts';
import { buildAvcc, parseAvcc } from './h264/avcc.ts';
import { H264NalType, h264NalType } from './h264/nal-type.ts';
import { parseH264PpsIds, parseH264Sps } from './h264/sps.ts';
import { buildHvcc, parseHvcc } from './h265/hvcc.ts';
import { H265NalType, h265NalType } from './h265/nal-type.ts';
import { parseH265PpsIds, parseH265Sps, parseH265VpsId } from './h265/sps.ts';
import { LengthPrefixedCursor, type NalLengthSize } from './nal/nal-cursor.ts';
import { parseVp9Keyframe, VP9_HEADER_PROBE } from './vp9/frame-header.ts';
import { buildVpcc } from './vp9/vpcc.ts';

/**
 * Parameter sets as whole NAL units. For AV1 `sps` holds the sequence header OBU, for VP9 the first bytes of a keyframe: the data that a
 * decoder needs before the first frame.
 */
export interface ParameterSets {
  readonly vps: readonly Uint8Array[];
  readonly sps: readonly Uint8Array[];
  readonly pps: readonly Uint8Array[];
}

type Kind = keyof ParameterSets;

/** Offsets of the byte whose two lowest bits are `lengthSizeMinusOne`. */
const AVCC_LENGTH_SIZE_AT = 4;
const HVCC_LENGTH_SIZE_AT = 21;

const NO_SETS: ParameterSets = { vps: [], sps: [], pps: [] };

/**
 * The parameter sets inside an access unit (H.264/H.265: 4-byte lengths) as views into it; null without any.
 * Throws `ProtocolError` for broken framing.
 */
export function parameterSetsOf(codec: VideoCodec, accessUnit: Uint8Array): ParameterSets | null {
  if (codec === VideoCodec.H264 || codec === VideoCodec.H265) return nalParameterSets(codec, accessUnit);
  if (codec === VideoCodec.AV1) return single(findSequenceHeader(accessUnit));
  if (codec === VideoCodec.VP9) return single(parseVp9Keyframe(accessUnit) === null ? null : accessUnit.subarray(0, VP9_HEADER_PROBE));
  return null;
}

/** The parameter sets of a decoder configuration record, as views into it; empty for codecs without parameter sets. */
export function parameterSetsOfConfig(codec: VideoCodec, config: Uint8Array): ParameterSets {
  if (codec === VideoCodec.H264) {
    const { sps, pps } = parseAvcc(config);
    return { vps: [], sps, pps };
  }
  if (codec === VideoCodec.H265) return parseHvcc(config);
  if (codec === VideoCodec.AV1) return single(parseAv1c(config).sequenceHeader) ?? NO_SETS;
  return NO_SETS;
}

/** Bytes of the NAL unit lengths of a source with this avcC or hvcC; 4 for other codecs. */
export function nalLengthSizeOf(codec: VideoCodec, config: Uint8Array): NalLengthSize {
  if (codec === VideoCodec.H264) return parseAvcc(config).lengthSize;
  return codec === VideoCodec.H265 ? parseHvcc(config).lengthSize : 4;
}

/** The configuration for packets with 4-byte lengths: `config` itself if it has them already, else a changed copy. */
export function withFourByteLengths(codec: VideoCodec, config: Uint8Array): Uint8Array {
  if (nalLengthSizeOf(codec, config) === 4) return config;
  const at = codec === VideoCodec.H264 ? AVCC_LENGTH_SIZE_AT : HVCC_LENGTH_SIZE_AT;
  const changed = config.slice();
  changed[at] = (changed[at] ?? 0) | 3;
  return changed;
}

/**
 * Builds avcC, hvcC, av1C or vpcC; of sets with the same id the last one is used. Throws `ProtocolError` if a set is missing or broken, or
 * the codec has no record.
 */
export function buildConfig(codec: VideoCodec, sets: ParameterSets): Uint8Array {
  return buildRecord(codec, mergeSets(codec, NO_SETS, sets));
}

function buildRecord(codec: VideoCodec, sets: ParameterSets): Uint8Array {
  if (codec === VideoCodec.H264) return buildAvcc(sets);
  if (codec === VideoCodec.H265) return buildHvcc(sets);
  const [header] = sets.sps;
  if (codec === VideoCodec.AV1 && header !== undefined) return buildAv1c(header);
  const keyframe = codec === VideoCodec.VP9 && header !== undefined ? parseVp9Keyframe(header) : null;
  if (keyframe === null) throw new ProtocolError('NO_CONFIG', `no decoder configuration can be built for ${codec}`);
  return buildVpcc(keyframe);
}

/**
 * The configuration after `sets` came in-band: sets replace those with the same id, others are kept. Returns `config` itself if nothing
 * changes, and null while a set is missing.
 */
export function updateConfig(codec: VideoCodec, config: Uint8Array | null, sets: ParameterSets): Uint8Array | null {
  const known = config === null ? NO_SETS : parameterSetsOfConfig(codec, config);
  const merged = mergeSets(codec, known, sets);
  const missing =
    merged.sps.length === 0 || (usesPps(codec) && merged.pps.length === 0) || (codec === VideoCodec.H265 && merged.vps.length === 0);
  if (missing) return config;
  if (config !== null && sameSets(known, merged)) return config;
  const updated = buildRecord(codec, merged);
  return config !== null && sameBytes(config, updated) ? config : updated;
}

function usesPps(codec: VideoCodec): boolean {
  return codec === VideoCodec.H264 || codec === VideoCodec.H265;
}

function single(unit: Uint8Array | null): ParameterSets | null {
  return unit === null ? null : { vps: [], sps: [unit], pps: [] };
}

function nalParameterSets(codec: VideoCodec, accessUnit: Uint8Array): ParameterSets | null {
  const nals = new LengthPrefixedCursor(accessUnit);
  let sets: Record<Kind, Uint8Array[]> | null = null;
  while (nals.next()) {
    const kind = kindOf(codec, accessUnit[nals.start] ?? 0);
    if (kind === null) continue;
    sets ??= { vps: [], sps: [], pps: [] };
    sets[kind].push(nals.unit());
  }
  return sets;
}

function kindOf(codec: VideoCodec, firstByte: number): Kind | null {
  const [vps, sps, pps] =
    codec === VideoCodec.H264 ? [-1, H264NalType.SPS, H264NalType.PPS] : [H265NalType.VPS, H265NalType.SPS, H265NalType.PPS];
  const type = codec === VideoCodec.H264 ? h264NalType(firstByte) : h265NalType(firstByte);
  return type === sps ? 'sps' : type === pps ? 'pps' : type === vps ? 'vps' : null;
}

function idOf(codec: VideoCodec, kind: Kind, unit: Uint8Array): number {
  if (codec === VideoCodec.H264) return kind === 'sps' ? parseH264Sps(unit).id : parseH264PpsIds(unit).id;
  if (codec !== VideoCodec.H265) return 0;
  if (kind === 'vps') return parseH265VpsId(unit);
  return kind === 'sps' ? parseH265Sps(unit).id : parseH265PpsIds(unit).id;
}

function mergeSets(codec: VideoCodec, known: ParameterSets, added: ParameterSets): ParameterSets {
  return {
    vps: merge(codec, 'vps', known.vps, added.vps),
    sps: merge(codec, 'sps', known.sps, added.sps),
    pps: merge(codec, 'pps', known.pps, added.pps),
  };
}

function merge(codec: VideoCodec, kind: Kind, known: readonly Uint8Array[], added: readonly Uint8Array[]): readonly Uint8Array[] {
  if (added.length === 0) return known;
  const byId = new Map(known.map((unit) => [idOf(codec, kind, unit), unit]));
  for (const unit of added) byId.set(idOf(codec, kind, unit), unit);
  return [...byId.values()];
}

function sameSets(a: ParameterSets, b: ParameterSets): boolean {
  return sameUnits(a.vps, b.vps) && sameUnits(a.sps, b.sps) && sameUnits(a.pps, b.pps);
}

function sameUnits(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return a.length === b.length && a.every((unit, index) => sameBytes(unit, b[index]));
}

function sameBytes(a: Uint8Array, b: Uint8Array | undefined): boolean {
  return b !== undefined && a.length === b.length && a.every((byte, index) => byte === b[index]);
}
