/** Goes on behind what a parser refuses. */
import { ProtocolError } from '../../../src/util/protocol-error.ts';

/** What `action` returns; null when it refuses with a `ProtocolError`, so that a run goes on behind it. Everything else is thrown. */
export function tolerate<T>(action: () => T): T | null {
  try {
    return action();
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}
