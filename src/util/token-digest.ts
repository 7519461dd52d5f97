/** Tokens as configurations hold them: in the clear, or as the SHA-256 of one that only its holder has. */
import { createHash } from 'node:crypto';

const PREFIX = 'sha256:';
const HASHED = /^sha256:[\da-f]{64}$/i;

/** Error text for a value that `tokenDigest` rejects; it does not repeat the value. */
export const TOKEN_RULE = `must be the token itself, or '${PREFIX}' and 64 hexadecimal digits`;

/** The 32 bytes that a token is compared by. Null for a value that begins as a hash does and is none. */
export function tokenDigest(value: string): Buffer | null {
  if (!value.toLowerCase().startsWith(PREFIX)) return createHash('sha256').update(value, 'utf8').digest();
  return HASHED.test(value) ? Buffer.from(value.slice(PREFIX.length), 'hex') : null;
}
