/** Reasons of a refusal: a handshake type from 1000 on contains the code, draft-sharabayko-srt-01 §3.2.1, table 7. */

/** Handshake types from here on are refusals. */
export const REJECTION_BASE = 1000;

/** Codes of the protocol below 1000, codes of applications from 1000 on. */
export const RejectionCode = {
  UNKNOWN: 0,
  SYSTEM: 1,
  PEER: 2,
  RESOURCE: 3,
  ROGUE: 4,
  BACKLOG: 5,
  INTERNAL: 6,
  CLOSE: 7,
  VERSION: 8,
  RENDEZVOUS_COOKIE: 9,
  BAD_SECRET: 10,
  UNSECURE: 11,
  MESSAGE_API: 12,
  CONGESTION: 13,
  FILTER: 14,
  GROUP: 15,
  TIMEOUT: 16,
  CRYPTO: 17,
  // Codes of applications begin at 1000 and are named after HTTP (access-control guidelines of SRT).
  BAD_REQUEST: 1400,
  UNAUTHORIZED: 1401,
  OVERLOAD: 1402,
  FORBIDDEN: 1403,
  NOT_FOUND: 1404,
  BAD_MODE: 1405,
  UNACCEPTABLE: 1406,
  CONFLICT: 1409,
  UNSUPPORTED_MEDIA: 1415,
  LOCKED: 1423,
  UNAVAILABLE: 1503,
} as const;
/** Any value of `RejectionCode`. */
export type RejectionCode = (typeof RejectionCode)[keyof typeof RejectionCode];

const NAMES = new Map<number, string>(Object.entries(RejectionCode).map(([name, code]) => [code, name.toLowerCase().replaceAll('_', ' ')]));

/** The code in words, for logs. */
export function describeRejection(code: number): string {
  return `${NAMES.get(code) ?? 'unnamed reason'} (${code})`;
}
