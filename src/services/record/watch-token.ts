/** Token for players that cannot send headers: valid for one recording, for a while. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

const SHAPE = /^(\d{10,12})-([\w-]{43})$/;

/** Tokens of this process; those of earlier processes are invalid. */
export class WatchTokens {
  readonly #key = randomBytes(32);

  /** Valid for `scope` until `expires`, seconds since the epoch. */
  sign(scope: string, expires: number): string {
    return `${expires}-${this.#mac(scope, expires)}`;
  }

  /** Its expiry, seconds; null: it is not valid for `scope` at `now`, ms. */
  verify(scope: string, token: string, now: number): number | null {
    const match = SHAPE.exec(token);
    if (match === null) return null;
    const expires = Number(match[1]);
    const isGood = timingSafeEqual(Buffer.from(this.#mac(scope, expires)), Buffer.from(match[2] ?? ''));
    return isGood && now < expires * 1000 ? expires : null;
  }

  #mac(scope: string, expires: number): string {
    return createHmac('sha256', this.#key).update(`${expires}\n${scope}`).digest('base64url');
  }
}
