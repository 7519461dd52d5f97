import { keptMark, saltOf, shownMark } from '../../src/util/key-hash.ts';

/** Whether `key` belongs to this hash. */
export function fitsKey(hash: string, key: string): boolean {
  const salt = saltOf(hash);
  return salt !== undefined && keptMark(hash) === shownMark(salt, key);
}
