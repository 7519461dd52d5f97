/** The line about somebody who was refused: the reason is the message, for that is what people read. */
import type { Logger } from './logger.ts';

/** Kinds of refusal. */
export interface Refused {
  /** Machine word of the reason. */
  readonly code: string;
  /** In words: what is wrong, and where it helps what would be right. */
  readonly reason: string;
  /** Address, application, stream and so on. */
  readonly [field: string]: unknown;
}

/**
 * Tells that somebody was refused, `publisher refused: <reason>`: a publisher is worth a warning, that a viewer is refused happens.
 * Strangers can be refused as often as they like, so the lines are limited.
 */
export function logRefused(logger: Logger, who: 'publisher' | 'viewer', { reason, ...fields }: Refused): void {
  const line = `${who} refused: ${reason}`;
  if (who === 'publisher') logger.limited.warn(fields, line);
  else logger.limited.info(fields, line);
}
