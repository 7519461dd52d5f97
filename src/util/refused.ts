/** The log line of a refusal: the message is the reason, because people read the message. */
import type { Logger } from './logger.ts';

/** Kinds of refusal. */
export interface Refused {
  /** Machine word of the reason. */
  readonly code: string;
  /** The reason in words: what is wrong and, where possible, what would be right. */
  readonly reason: string;
  /** Address, application, stream and so on. */
  readonly [field: string]: unknown;
}

/**
 * Logs a refusal, `publisher refused: <reason>`: a warning for publishers, `info` for viewers. Clients can cause any number of refusals, so
 * the lines are rate-limited.
 */
export function logRefused(logger: Logger, who: 'publisher' | 'viewer', { reason, ...fields }: Refused): void {
  const line = `${who} refused: ${reason}`;
  if (who === 'publisher') logger.limited.warn(fields, line);
  else logger.limited.info(fields, line);
}
