/** Tokens in configurations: in clear text, or as the SHA-256 of a token that only its holder knows. */
import { createHash } from 'node:crypto';

const PREFIX = 'sha256:';
const HASHED = /^sha256:[\da-f]{64}$/i;

/** Error text for a value that `tokenDigest` rejects; it does not repeat the value. */
export const TOKEN_RULE = `must be the token itself, or '${PREFIX}' and 64 hexadecimal digits`;

/** The 32 bytes by which a token is compared. Null for a value with the prefix of a hash that is not a valid hash. */
export function tokenDigest(value: string): Buffer | null {
  if (!value.toLowerCase().startsWith(PREFIX)) return createHash('sha256').update(value, 'utf8').digest();
  return HASHED.test(value) ? Buffer.from(value.slice(PREFIX.length), 'hex') : null;
}
