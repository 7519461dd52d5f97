/** Uncompressed header of VP9 frames, VP9 bitstream specification §6.2. */
import { BitReader } from '../../util/bit-reader.ts';
import { ProtocolError } from '../../util/protocol-error.ts';

/** Fields of a keyframe's header. */
export interface Vp9Keyframe {
  readonly profile: number;
  readonly bitDepth: number;
  /** Coded as in vpcC: 1 4:2:0 colocated, 2 4:2:2, 3 4:4:4. */
  readonly chromaSubsampling: number;
  readonly fullRange: boolean;
  readonly width: number;
  readonly height: number;
}

const FRAME_MARKER = 2;
const SYNC_CODE = 0x49_83_42;
const COLOR_SPACE_RGB = 7;
const CHROMA_420 = 1;
const CHROMA_422 = 2;
const CHROMA_444 = 3;
/** Maximum of bytes in a keyframe's header up to the frame size. */
export const VP9_HEADER_PROBE = 16;

/** True if the first frame of `data` is a keyframe. A frame that is too short counts as none. */
export function isVp9Keyframe(data: Uint8Array): boolean {
  const reader = new BitReader(data);
  if (reader.bitsLeft < 8 || reader.bits(2) !== FRAME_MARKER) return false;
  const profile = reader.bits(1) + 2 * reader.bits(1);
  if (profile === 3) reader.skip(1);
  const showExisting = reader.flag();
  return !showExisting && reader.bits(1) === 0;
}

/** Parses the header of a keyframe; null for other frames. Throws `VP9_HEADER`. */
export function parseVp9Keyframe(data: Uint8Array): Vp9Keyframe | null {
  if (!isVp9Keyframe(data)) return null;
  const reader = new BitReader(data);
  reader.skip(2);
  const profile = reader.bits(1) + 2 * reader.bits(1);
  if (profile === 3) reader.skip(1);
  reader.skip(4); // show_existing_frame, frame_type, show_frame, error_resilient_mode
  const sync = reader.bits(24);
  if (sync !== SYNC_CODE) throw new ProtocolError('VP9_HEADER', `sync code ${sync.toString(16)}, ${SYNC_CODE.toString(16)} expected`, 1);
  const bitDepth = profile >= 2 ? (reader.flag() ? 12 : 10) : 8;
  const color = readColor(reader, profile);
  return { profile, bitDepth, ...color, width: reader.bits(16) + 1, height: reader.bits(16) + 1 };
}

function readColor(reader: BitReader, profile: number): { chromaSubsampling: number; fullRange: boolean } {
  const oddProfile = (profile & 1) === 1;
  if (reader.bits(3) === COLOR_SPACE_RGB) {
    if (oddProfile) reader.skip(1);
    return { chromaSubsampling: CHROMA_444, fullRange: true };
  }
  const fullRange = reader.flag();
  if (!oddProfile) return { chromaSubsampling: CHROMA_420, fullRange };
  const x = reader.bits(1);
  const y = reader.bits(1);
  reader.skip(1);
  return { chromaSubsampling: x === 0 ? CHROMA_444 : y === 0 ? CHROMA_422 : CHROMA_420, fullRange };
}
