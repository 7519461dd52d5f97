/** Continues after a refusal of the parser. */
import { ProtocolError } from '../../../src/util/protocol-error.ts';

/** The result of `action`; null when it throws a `ProtocolError`, so that a run can continue. Other errors are thrown. */
export function tolerate<T>(action: () => T): T | null {
  try {
    return action();
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}
