/** A key that servers share: an edge proves that it has the key without sending it. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { OvtRequest } from '../../wire/ovt/message.ts';

const CHALLENGE_BYTES = 24;
/** Distinguishes these proofs from others with the same key. */
const PURPOSE = 'millrace ovt 1';

/** A random text, unique per connection. */
export function newChallenge(): string {
  return randomBytes(CHALLENGE_BYTES).toString('base64url');
}

/** Proves possession of `key` for one request on the connection of `challenge`. */
export function proofOf(key: string, challenge: string, { id, command, target }: Pick<OvtRequest, 'id' | 'command' | 'target'>): string {
  const told = JSON.stringify([PURPOSE, challenge, id, command, target]);
  return createHmac('sha256', key).update(told).digest('base64url');
}

/** Whether `request` has a valid proof. */
export function isProven(key: string, challenge: string, request: OvtRequest): boolean {
  const expected = Buffer.from(proofOf(key, challenge, request));
  const given = Buffer.from(request.proof ?? '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}
