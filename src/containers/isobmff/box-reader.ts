/** Walks ISO base media file format boxes (ISO/IEC 14496-12) without copying them. */
import { ProtocolError } from '../../util/protocol-error.ts';

const HEADER_SIZE = 8;
const LARGE_HEADER_SIZE = 16;
const MAX_BOXES = 65_536;

/** One box: `body` is a view of the bytes after its size and type. */
export interface Box {
  readonly type: string;
  readonly body: Uint8Array;
  /** Position of the box header inside the parsed bytes. */
  readonly offset: number;
}

/** The boxes in `bytes`, which lie one behind the other. Throws `ProtocolError` for an impossible size. */
export function readBoxes(bytes: Uint8Array): Box[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const boxes: Box[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    if (bytes.length - offset < HEADER_SIZE) throw new ProtocolError('ISOBMFF_TRUNCATED', 'a box header needs 8 bytes', offset);
    let size = view.getUint32(offset);
    let header = HEADER_SIZE;
    if (size === 1) {
      if (bytes.length - offset < LARGE_HEADER_SIZE) throw new ProtocolError('ISOBMFF_TRUNCATED', 'a large box needs 16 bytes', offset);
      size = Number(view.getBigUint64(offset + HEADER_SIZE));
      header = LARGE_HEADER_SIZE;
    } else if (size === 0) {
      size = bytes.length - offset;
    }
    if (size < header || offset + size > bytes.length) {
      throw new ProtocolError('ISOBMFF_BOX_SIZE', `a box of ${size} bytes does not fit`, offset);
    }
    // A list of boxes of eight bytes each takes many times the memory of its bytes.
    if (boxes.length >= MAX_BOXES) throw new ProtocolError('ISOBMFF_BOXES', `more than ${MAX_BOXES} boxes side by side`, offset);
    const type = String.fromCharCode(...bytes.subarray(offset + 4, offset + HEADER_SIZE));
    boxes.push({ type, body: bytes.subarray(offset + header, offset + size), offset });
    offset += size;
  }
  return boxes;
}

/** The first box found by descending `path`, or null. Only for plain containers (moov, trak, moof, traf …). */
export function findBox(bytes: Uint8Array, path: readonly string[]): Box | null {
  let body = bytes;
  let found: Box | null = null;
  for (const type of path) {
    found = readBoxes(body).find((box) => box.type === type) ?? null;
    if (found === null) return null;
    body = found.body;
  }
  return found;
}

/** The body of `box` for reading numbers. Throws `ProtocolError` if it has fewer than `atLeast` bytes. */
export function bodyView({ body, type, offset }: Box, atLeast: number): DataView {
  if (body.length < atLeast) throw new ProtocolError('ISOBMFF_TRUNCATED', `${type} needs ${atLeast} bytes and has ${body.length}`, offset);
  return new DataView(body.buffer, body.byteOffset, body.byteLength);
}
