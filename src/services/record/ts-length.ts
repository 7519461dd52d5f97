/** The length of an MPEG-TS recording, by its own timestamps. */
import { open } from 'node:fs/promises';
import { PtsSpan } from '../../containers/mpegts/pts-span.ts';

/** Read at either end; the longest frame in between does not matter, the last one must fit. */
const HEAD_BYTES = 256 * 1024;
const TAIL_BYTES = 4 * 1024 * 1024;

/** ms; null when the file at `path` holds no frame. Rejects with the file system's error. */
export async function tsMilliseconds(path: string): Promise<number | null> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const span = new PtsSpan();
    const tail = Math.max(0, size - TAIL_BYTES);
    for (const [from, to] of [[0, Math.min(tail, HEAD_BYTES)] as const, [tail, size] as const]) {
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(to - from), 0, to - from, from);
      span.push(buffer.subarray(0, bytesRead));
    }
    return span.milliseconds;
  } finally {
    await file.close();
  }
}
