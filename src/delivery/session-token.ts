/**
 * Tokens of viewer sessions: `<id>_<key>`. The id carries the time of expiry, the key is an HMAC over the
 * id and the stream, so that any delivery thread can judge a token without asking anybody.
 *
 *     id  = expiry (seconds, base 36, 7 digits) incarnation (base 36, 4 digits) counter (base 36)
 *           and, of viewers who came with a play token, `G` and what names that token (12 digits)
 *     key = 96 bits of HMAC-SHA256, base64url
 */
import { KeyedHash } from '../util/keyed-hash.ts';

const EXPIRY_DIGITS = 7;
const INCARNATION_DIGITS = 4;
const KEY_BYTES = 12;
const SHAPE = /^([0-9a-z]{12,32}(?:G([0-9a-f]{12}))?)_([\w-]{16})$/;

/** A token taken apart; it is genuine and for the stream asked about, but may have expired. */
export interface VerifiedToken {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** Names the play token that the viewer came with. */
  readonly grant?: string;
}

/** All threads of a server share `secret`, so that any verifies what another made. Knows nothing of revoked sessions. */
export class SessionTokens {
  readonly #hash: KeyedHash;
  readonly #prefix: string;
  #count = 0;

  /** `incarnation` makes ids of different threads different. */
  constructor(secret: Uint8Array, incarnation: number) {
    this.#hash = new KeyedHash('sha256', secret, KEY_BYTES);
    this.#prefix = incarnation.toString(36).padStart(INCARNATION_DIGITS, '0');
  }

  /** Makes a token for the stream `address` (any unique text), good until `expiresAt` (rounded up to seconds); `grant`: 12 hexadecimal digits. */
  mint(address: string, expiresAt: number, grant?: string): { readonly id: string; readonly token: string } {
    this.#count += 1;
    const expiry = Math.ceil(expiresAt / 1000)
      .toString(36)
      .padStart(EXPIRY_DIGITS, '0');
    const id = `${expiry}${this.#prefix}${this.#count.toString(36)}${grant === undefined ? '' : `G${grant}`}`;
    return { id, token: `${id}_${this.#hash.sign(`${id}\n${address}`)}` };
  }

  /** Null for a token that we did not make for this stream. */
  verify(token: string, address: string): VerifiedToken | null {
    const match = SHAPE.exec(token);
    if (match === null) return null;
    const [, id = '', grant, key = ''] = match;
    if (!this.#hash.isSigned(`${id}\n${address}`, key)) return null;
    const expiresAt = Number.parseInt(id.slice(0, EXPIRY_DIGITS), 36) * 1000;
    return { id, expiresAt, ...(grant !== undefined && { grant }) };
  }
}

/** The id of a token, which may be shown to everybody. */
export function sessionId(token: string): string {
  const end = token.indexOf('_');
  return end < 0 ? token : token.slice(0, end);
}
