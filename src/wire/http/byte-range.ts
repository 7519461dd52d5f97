/** Range requests for one range of bytes: RFC 9110 section 14. */

/** A range within the resource, in bytes. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/**
 * Reads a `Range` header for a body of `size` bytes. Null: answer with the whole body (no range, another
 * unit, several ranges, or nonsense: all of these may be ignored). `unsatisfiable`: answer with 416.
 */
export function readRange(header: string | undefined, size: number): ByteRange | 'unsatisfiable' | null {
  if (header === undefined) return null;
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header);
  if (match === null) return null;
  const [, first = '', last = ''] = match;
  if (first === '' && last === '') return null;
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? 'unsatisfiable' : { offset: size - length, length };
  }
  const offset = Number(first);
  if (last !== '' && Number(last) < offset) return null;
  if (offset >= size) return 'unsatisfiable';
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return { offset, length: end - offset + 1 };
}
