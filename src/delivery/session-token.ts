/**
 * Tokens of viewer sessions: `<id>_<key>`. The id contains the time of expiry, the key is an HMAC over the
 * id and the stream, so any delivery thread can verify a token without a request to another.
 *
 * id  = expiry (seconds, base 36, 7 digits) incarnation (base 36, 4 digits) counter (base 36)
 * and, for viewers with a play token, `G` and the grant of that token (12 digits)
 * key = 96 bits of HMAC-SHA256, base64url
 */
import { KeyedHash } from '../util/keyed-hash.ts';

const EXPIRY_DIGITS = 7;
const INCARNATION_DIGITS = 4;
const KEY_BYTES = 12;
const SHAPE = /^([0-9a-z]{12,32}(?:G([0-9a-f]{12}))?)_([\w-]{16})$/;

/** The parts of a token; it is genuine and for the given stream, but may have expired. */
export interface VerifiedToken {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** Grant of the viewer's play token. */
  readonly grant?: string;
}

/** All threads of a server share `secret`, so each can verify the others' tokens. Has no record of revoked sessions. */
export class SessionTokens {
  readonly #hash: KeyedHash;
  readonly #prefix: string;
  #count = 0;

  /** `incarnation` makes ids of different threads different. */
  constructor(secret: Uint8Array, incarnation: number) {
    this.#hash = new KeyedHash('sha256', secret, KEY_BYTES);
    this.#prefix = incarnation.toString(36).padStart(INCARNATION_DIGITS, '0');
  }

  /**
   * Creates a token for the stream `address` (any unique text), valid until `expiresAt` (rounded up to seconds); `grant`: 12 hexadecimal
   * digits.
   */
  mint(address: string, expiresAt: number, grant?: string): { readonly id: string; readonly token: string } {
    this.#count += 1;
    const expiry = Math.ceil(expiresAt / 1000)
      .toString(36)
      .padStart(EXPIRY_DIGITS, '0');
    const id = `${expiry}${this.#prefix}${this.#count.toString(36)}${grant === undefined ? '' : `G${grant}`}`;
    return { id, token: `${id}_${this.#hash.sign(`${id}\n${address}`)}` };
  }

  /** Null for a token that this server did not create for this stream. */
  verify(token: string, address: string): VerifiedToken | null {
    const match = SHAPE.exec(token);
    if (match === null) return null;
    const [, id = '', grant, key = ''] = match;
    if (!this.#hash.isSigned(`${id}\n${address}`, key)) return null;
    const expiresAt = Number.parseInt(id.slice(0, EXPIRY_DIGITS), 36) * 1000;
    return { id, expiresAt, ...(grant !== undefined && { grant }) };
  }
}

/** The id of a token, which is not secret. */
export function sessionId(token: string): string {
  const end = token.indexOf('_');
  return end < 0 ? token : token.slice(0, end);
}
