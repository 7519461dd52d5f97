/** Writes ID3v2.4 tags (id3.org, "ID3 tag version 2.4.0" structure and native frames) for timed metadata. */
import { ByteWriter } from '../../util/byte-writer.ts';

/** Text frames `T???`, user text `TXXX` and private frames `PRIV`. */
export type Id3Frame =
  | { readonly type: 'TXXX'; readonly description: string; readonly text: string }
  | { readonly type: 'PRIV'; readonly owner: string; readonly data: Uint8Array }
  /** `id` is one of the text frames, e.g. `TIT2`. */
  | { readonly type: 'text'; readonly id: string; readonly text: string };

const HEADER_LENGTH = 10;
const ENCODING_UTF8 = 3;
const TEXT_FRAME_ID = /^T[A-Z0-9]{3}$/;
/** Sizes have four groups of seven bits (§6.2). */
const MAX_SIZE = 2 ** 28 - 1;

/** A whole tag with `frames` in order. Throws `TypeError` for an id that is no text frame and for a tag that is too large. */
export function buildId3Tag(frames: readonly Id3Frame[]): Uint8Array {
  const writer = new ByteWriter().zeros(HEADER_LENGTH);
  for (const frame of frames) writeFrame(writer, frame);
  const size = writer.length - HEADER_LENGTH;
  const tag = writer.finish();
  const header = new ByteWriter(HEADER_LENGTH).text('ID3').u8(4).u8(0).u8(0).u32(synchsafe(size));
  tag.set(header.view());
  return tag;
}

/** True for the names of text frames other than `TXXX`. */
export function isTextFrameId(id: string): boolean {
  return id !== 'TXXX' && TEXT_FRAME_ID.test(id);
}

function writeFrame(writer: ByteWriter, frame: Id3Frame): void {
  const body = frameBody(frame);
  const id = frame.type === 'text' ? frame.id : frame.type;
  writer.text(id).u32(synchsafe(body.length)).u16(0).bytes(body);
}

function frameBody(frame: Id3Frame): Uint8Array {
  const body = new ByteWriter();
  if (frame.type === 'PRIV') return body.text(frame.owner).u8(0).bytes(frame.data).finish();
  body.u8(ENCODING_UTF8);
  if (frame.type === 'TXXX') return body.text(frame.description).u8(0).text(frame.text).u8(0).finish();
  if (!isTextFrameId(frame.id)) throw new TypeError(`'${frame.id}' is no ID3 text frame: T and three capital letters or digits expected`);
  return body.text(frame.text).u8(0).finish();
}

/** Spreads 28 bits over four bytes of seven bits each, so that no byte looks like an MPEG sync. */
function synchsafe(size: number): number {
  if (size > MAX_SIZE) throw new TypeError(`ID3 size ${size}, at most ${MAX_SIZE} fits`);
  return ((size & 0xf_e0_00_00) << 3) | ((size & 0x1f_c0_00) << 2) | ((size & 0x3f_80) << 1) | (size & 0x7f);
}
