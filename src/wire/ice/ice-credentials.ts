/** User fragment and password of one ICE session (RFC 8445 section 5.3). */
import { randomInt } from 'node:crypto';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const FRAGMENT_LENGTH = 8;
const PASSWORD_LENGTH = 32;

/** Credentials of one side; checks are authenticated with the password of their destination. */
export interface IceCredentials {
  readonly ufrag: string;
  readonly password: string;
}

/** New credentials, long and random enough to identify the session. */
export function createCredentials(): IceCredentials {
  return { ufrag: randomWord(FRAGMENT_LENGTH), password: randomWord(PASSWORD_LENGTH) };
}

/** `length` unpredictable letters and digits. */
export function randomWord(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}
