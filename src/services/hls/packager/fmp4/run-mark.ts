/** The part of resource names that tells one run of a stream from the next. */
import { createHash, randomBytes } from 'node:crypto';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const LENGTH = 8;

/** Eight random characters; new for every start of a stream. */
export function randomRunMark(): string {
  return spell(randomBytes(LENGTH * 2));
}

/** The same for the same name, so that several origins behind one CDN agree (`OriginMode`). */
export function fixedRunMark(name: string): string {
  return spell(createHash('sha256').update(name).digest());
}

function spell(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: LENGTH }, (_, i) => ALPHABET[view.getUint16(i * 2) % ALPHABET.length]).join('');
}
