/** Answers that are a part of a file: ranges (RFC 9110 section 14), and how they are sent to whoever takes them slowly. */

import type { FileHandle } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';

/** Bytes of an open file, which whoever sends them closes. */
export interface FilePart {
  readonly file: FileHandle;
  /** One behind the other. */
  readonly ranges: readonly { readonly offset: number; readonly length: number }[];
}

/** A range of a file of `size` bytes. */
export interface ByteRange {
  readonly first: number;
  readonly last: number;
}

const CHUNK = 256 * 1024;

/** What a `Range` header asks for; null: all of it, as for anything that is not understood; `none`: nothing of it is there. */
export function readRange(header: string | undefined, size: number): ByteRange | null | 'none' {
  const match = /^bytes=(\d*)-(\d*)$/i.exec(header?.trim() ?? '');
  if (match === null) return null;
  const [, from = '', to = ''] = match;
  if (from === '' && to === '') return null;
  if (from === '') {
    const length = Math.min(Number(to), size);
    return length === 0 ? 'none' : { first: size - length, last: size - 1 };
  }
  const first = Number(from);
  const last = to === '' ? size - 1 : Math.min(Number(to), size - 1);
  if (to !== '' && Number(to) < first) return null;
  return first >= size ? 'none' : { first, last };
}

/** That range of a part. */
export function rangeOf({ file, ranges }: FilePart, { first, last }: ByteRange): FilePart {
  const cut: { offset: number; length: number }[] = [];
  let at = 0;
  for (const { offset, length } of ranges) {
    const from = Math.max(first - at, 0);
    const to = Math.min(last + 1 - at, length);
    if (to > from) cut.push({ offset: offset + from, length: to - from });
    at += length;
  }
  return { file, ranges: cut };
}

/** Sends the bytes and closes the file. A client that takes nothing for `patience` ms loses its connection. Never rejects. */
export async function sendFile(response: ServerResponse, { file, ranges }: FilePart, patience: number): Promise<void> {
  try {
    for (const { offset, length } of ranges) {
      for (let sent = 0; sent < length; ) {
        const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(Math.min(CHUNK, length - sent)), 0, null, offset + sent);
        // It was cut meanwhile: what was promised cannot be kept.
        if (bytesRead === 0) throw new Error('the file ended');
        sent += bytesRead;
        if (response.destroyed) return;
        if (!response.write(buffer.subarray(0, bytesRead))) await drained(response, patience);
      }
    }
    response.end();
  } catch {
    response.destroy();
  } finally {
    await file.close().catch(() => undefined);
  }
}

/** Rejects when the client has gone, or takes nothing for so long. */
function drained(response: ServerResponse, patience: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const late = setTimeout(() => reject(new Error('nothing was taken')), patience);
  const gone = (): void => reject(new Error('the client has gone'));
  response.once('drain', resolve);
  response.once('close', gone);
  return promise.finally(() => {
    clearTimeout(late);
    response.off('drain', resolve);
    response.off('close', gone);
  });
}
