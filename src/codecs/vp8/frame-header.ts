/** Frame header of VP8, RFC 6386 §9.1. */
import { ProtocolError } from '../../util/protocol-error.ts';

const FRAME_TAG_LENGTH = 3;
const KEYFRAME_HEADER_LENGTH = 10;
/** The upper two bits of a dimension are a scaling hint. */
const DIMENSION_MASK = 0x3f_ff;

/** True for a keyframe; false for an empty frame. */
export function isVp8Keyframe(data: Uint8Array): boolean {
  const first = data[0];
  return first !== undefined && (first & 1) === 0;
}

/** Size of a keyframe in pixels; null for other frames. Throws `VP8_HEADER`. */
export function parseVp8Keyframe(data: Uint8Array): { readonly width: number; readonly height: number } | null {
  if (!isVp8Keyframe(data)) return null;
  if (data.length < KEYFRAME_HEADER_LENGTH) throw new ProtocolError('VP8_HEADER', `keyframe of ${data.length} bytes`, data.length);
  const [a, b, c, w0 = 0, w1 = 0, h0 = 0, h1 = 0] = data.subarray(FRAME_TAG_LENGTH, KEYFRAME_HEADER_LENGTH);
  if (a !== 0x9d || b !== 0x01 || c !== 0x2a) throw new ProtocolError('VP8_HEADER', 'start code 9d 01 2a expected', FRAME_TAG_LENGTH);
  return { width: (w0 | (w1 << 8)) & DIMENSION_MASK, height: (h0 | (h1 << 8)) & DIMENSION_MASK };
}
