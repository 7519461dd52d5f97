/** User fragment and password of one ICE session (RFC 8445 section 5.3). */
import { randomInt } from 'node:crypto';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const FRAGMENT_LENGTH = 8;
const PASSWORD_LENGTH = 32;

/** Of one side; checks are authenticated with the password of the side they go to. */
export interface IceCredentials {
  readonly ufrag: string;
  readonly password: string;
}

/** Fresh ones, long and random enough to stand for the session. */
export function createCredentials(): IceCredentials {
  return { ufrag: randomWord(FRAGMENT_LENGTH), password: randomWord(PASSWORD_LENGTH) };
}

/** `length` letters and digits that nobody can guess. */
export function randomWord(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}
