import { ProtocolError } from '../../src/util/protocol-error.ts';

/** Code of the `ProtocolError` that `action` throws; `none` when it throws nothing. */
export function codeOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof ProtocolError) return error.code;
    throw error;
  }
  return 'none';
}
