/** Answers with a part of a file, and sending them to slow clients. */
import type { FileHandle } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import type { ByteRange } from '../wire/http/byte-range.ts';

/** Bytes of an open file, which the sender closes. */
export interface FilePart {
  readonly file: FileHandle;
  /** Consecutive ranges. */
  readonly ranges: readonly { readonly offset: number; readonly length: number }[];
}

const CHUNK = 256 * 1024;

/** The given range of a part of a file. */
export function rangeOf({ file, ranges }: FilePart, range: ByteRange): FilePart {
  const end = range.offset + range.length;
  const cut: { offset: number; length: number }[] = [];
  let at = 0;
  for (const { offset, length } of ranges) {
    const from = Math.max(range.offset - at, 0);
    const to = Math.min(end - at, length);
    if (to > from) cut.push({ offset: offset + from, length: to - from });
    at += length;
  }
  return { file, ranges: cut };
}

/** Sends the bytes and closes the file. A client that reads nothing for `timeoutMs` loses its connection. Never rejects. */
export async function sendFile(response: ServerResponse, { file, ranges }: FilePart, timeoutMs: number): Promise<void> {
  try {
    for (const { offset, length } of ranges) {
      for (let sent = 0; sent < length; ) {
        const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(Math.min(CHUNK, length - sent)), 0, null, offset + sent);
        // The file was truncated meanwhile, so the announced length cannot be sent.
        if (bytesRead === 0) throw new Error('the file ended');
        sent += bytesRead;
        if (response.destroyed) return;
        if (!response.write(buffer.subarray(0, bytesRead))) await drained(response, timeoutMs);
      }
    }
    response.end();
  } catch {
    response.destroy();
  } finally {
    await file.close().catch(() => undefined);
  }
}

/** Rejects if the client has gone, or reads no data for this long. */
function drained(response: ServerResponse, timeoutMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const late = setTimeout(() => reject(new Error('nothing was taken')), timeoutMs);
  const gone = (): void => reject(new Error('the client has gone'));
  response.once('drain', resolve);
  response.once('close', gone);
  return promise.finally(() => {
    clearTimeout(late);
    response.off('drain', resolve);
    response.off('close', gone);
  });
}
