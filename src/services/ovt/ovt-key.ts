/** A key that servers share: an edge proves that it knows it, and never sends it. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { OvtRequest } from '../../wire/ovt/message.ts';

const CHALLENGE_BYTES = 24;
/** Sets these proofs apart from others by the same key. */
const PURPOSE = 'millrace ovt 1';

/** A text that no connection has had before. */
export function newChallenge(): string {
  return randomBytes(CHALLENGE_BYTES).toString('base64url');
}

/** Proves for one request on the connection of `challenge` that `key` is known. */
export function proofOf(key: string, challenge: string, { id, command, target }: Pick<OvtRequest, 'id' | 'command' | 'target'>): string {
  const told = JSON.stringify([PURPOSE, challenge, id, command, target]);
  return createHmac('sha256', key).update(told).digest('base64url');
}

/** Whether `request` has the proof. */
export function isProven(key: string, challenge: string, request: OvtRequest): boolean {
  const expected = Buffer.from(proofOf(key, challenge, request));
  const given = Buffer.from(request.proof ?? '');
  return given.length === expected.length && timingSafeEqual(given, expected);
}
