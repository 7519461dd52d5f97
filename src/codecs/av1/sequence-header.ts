/** Sequence header of AV1, AV1 bitstream specification §5.5. */
import { BitReader } from '../../util/bit-reader.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { ObuCursor, ObuType } from './obu.ts';

/** Fields of a sequence header. */
export interface Av1Sequence {
  readonly profile: number;
  readonly level: number;
  /** 0 main tier, 1 high tier. */
  readonly tier: number;
  readonly bitDepth: number;
  readonly monochrome: boolean;
  readonly subsamplingX: number;
  readonly subsamplingY: number;
  readonly chromaSamplePosition: number;
  /** Size of the largest frame, pixels. */
  readonly width: number;
  readonly height: number;
  /** Frames per second; 0 if unknown. */
  readonly framerate: number;
  /** Frame headers are reduced, so every frame is a keyframe. */
  readonly reducedStillPicture: boolean;
}

interface OperatingPoint {
  readonly level: number;
  readonly tier: number;
  readonly framerate: number;
}

type ColorConfig = Pick<Av1Sequence, 'bitDepth' | 'monochrome' | 'subsamplingX' | 'subsamplingY' | 'chromaSamplePosition'>;

const MAX_PROFILE = 2;
/** Levels above 7 (3.3) carry a tier bit. */
const LAST_LEVEL_WITHOUT_TIER = 7;
const COLOR_PRIMARIES_BT709 = 1;
const COLOR_UNSPECIFIED = 2;
const TRANSFER_SRGB = 13;
const MATRIX_IDENTITY = 0;

/** Parses a whole sequence header OBU (header included). */
export function parseAv1SequenceHeader(unit: Uint8Array): Av1Sequence {
  const obu = new ObuCursor(unit);
  if (!obu.next() || obu.type !== ObuType.SEQUENCE_HEADER) throw new ProtocolError('AV1_SEQUENCE', 'not a sequence header', 0);
  const reader = new BitReader(unit, obu.payload, obu.end);
  const profile = reader.bits(3);
  if (profile > MAX_PROFILE) throw new ProtocolError('AV1_SEQUENCE', `profile ${profile}, at most ${MAX_PROFILE} exists`, obu.payload);
  reader.skip(1); // still_picture
  const reducedStillPicture = reader.flag();
  const point = reducedStillPicture ? { level: reader.bits(5), tier: 0, framerate: 0 } : readOperatingPoints(reader);
  const widthBits = reader.bits(4) + 1;
  const heightBits = reader.bits(4) + 1;
  const width = reader.bits(widthBits) + 1;
  const height = reader.bits(heightBits) + 1;
  if (!reducedStillPicture && reader.flag()) reader.skip(7); // frame id lengths
  reader.skip(3); // 128x128 superblocks, filter intra, intra edge filter
  if (!reducedStillPicture) skipInterTools(reader);
  reader.skip(3); // superres, cdef, restoration
  return { profile, ...point, width, height, reducedStillPicture, ...readColorConfig(reader, profile) };
}

function readOperatingPoints(reader: BitReader): OperatingPoint {
  let framerate = 0;
  let delayBits = 0;
  let decoderModel = false;
  if (reader.flag()) {
    framerate = readTiming(reader);
    decoderModel = reader.flag();
    if (decoderModel) {
      delayBits = reader.bits(5) + 1;
      reader.skip(32 + 5 + 5);
    }
  }
  const displayDelays = reader.flag();
  const count = reader.bits(5) + 1;
  let first: OperatingPoint = { level: 0, tier: 0, framerate };
  for (let i = 0; i < count; i++) {
    reader.skip(12); // operating_point_idc
    const level = reader.bits(5);
    const tier = level > LAST_LEVEL_WITHOUT_TIER ? reader.bits(1) : 0;
    if (decoderModel && reader.flag()) reader.skip(2 * delayBits + 1);
    if (displayDelays && reader.flag()) reader.skip(4);
    if (i === 0) first = { level, tier, framerate };
  }
  return first;
}

function readTiming(reader: BitReader): number {
  const unitsInTick = reader.bits(32);
  const timeScale = reader.bits(32);
  const equalInterval = reader.flag();
  // uvlc() is an unsigned Exp-Golomb code.
  const ticksPerPicture = equalInterval ? reader.ue() + 1 : 1;
  return equalInterval && unitsInTick > 0 ? timeScale / (unitsInTick * ticksPerPicture) : 0;
}

/** From `enable_interintra_compound` to `order_hint_bits_minus_1`. */
function skipInterTools(reader: BitReader): void {
  reader.skip(4);
  const orderHint = reader.flag();
  if (orderHint) reader.skip(2);
  const chooseScreenContent = reader.flag();
  const forceScreenContent = chooseScreenContent ? 2 : reader.bits(1);
  if (forceScreenContent > 0) {
    const chooseIntegerMv = reader.flag();
    if (!chooseIntegerMv) reader.skip(1);
  }
  if (orderHint) reader.skip(3);
}

/** color_config, §5.5.2. */
function readColorConfig(reader: BitReader, profile: number): ColorConfig {
  const highBitDepth = reader.flag();
  const twelveBit = profile === 2 && highBitDepth && reader.flag();
  const bitDepth = twelveBit ? 12 : highBitDepth ? 10 : 8;
  const monochrome = profile !== 1 && reader.flag();
  const described = reader.flag();
  const primaries = described ? reader.bits(8) : COLOR_UNSPECIFIED;
  const transfer = described ? reader.bits(8) : COLOR_UNSPECIFIED;
  const matrix = described ? reader.bits(8) : COLOR_UNSPECIFIED;
  if (monochrome) {
    reader.skip(1); // color_range
    return { bitDepth, monochrome, subsamplingX: 1, subsamplingY: 1, chromaSamplePosition: 0 };
  }
  if (primaries === COLOR_PRIMARIES_BT709 && transfer === TRANSFER_SRGB && matrix === MATRIX_IDENTITY) {
    return { bitDepth, monochrome, subsamplingX: 0, subsamplingY: 0, chromaSamplePosition: 0 };
  }
  reader.skip(1); // color_range
  const [subsamplingX, subsamplingY] = readSubsampling(reader, profile, bitDepth);
  const chromaSamplePosition = subsamplingX === 1 && subsamplingY === 1 ? reader.bits(2) : 0;
  return { bitDepth, monochrome, subsamplingX, subsamplingY, chromaSamplePosition };
}

function readSubsampling(reader: BitReader, profile: number, bitDepth: number): readonly [number, number] {
  if (profile === 0) return [1, 1];
  if (profile === 1) return [0, 0];
  if (bitDepth < 12) return [1, 0];
  const x = reader.bits(1);
  return [x, x === 1 ? reader.bits(1) : 0];
}
