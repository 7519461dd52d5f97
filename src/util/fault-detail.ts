import type { Logger } from './logger.ts';
import { ProtocolError } from './protocol-error.ts';

/**
 * Why a connection ends that `error` came out of, in words for its peer and the log: a fault of the peer by its code. Any other is
 * ours; the log gets all there is of it, as that `what` failed.
 */
export function faultDetail(error: unknown, logger: Logger, what: string): string {
  if (error instanceof ProtocolError) return `${error.code}: ${error.message}`;
  logger.limited.error({ err: error }, `${what} failed inside the server`);
  return 'internal error';
}
