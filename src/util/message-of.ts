import type { Logger } from './logger.ts';
import { ProtocolError } from './protocol-error.ts';

/** The text of a thrown value, which may be anything. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Text about the end of a connection, for its peer and the log. A ProtocolError is the peer's fault and gives its code and message. Any
 * other error is ours: the log gets the whole error as a failure of `what`, the peer only `internal error`.
 */
export function faultDetail(error: unknown, logger: Logger, what: string): string {
  if (error instanceof ProtocolError) return `${error.code}: ${error.message}`;
  logger.limited.error({ err: error }, `${what} failed inside the server`);
  return 'internal error';
}
