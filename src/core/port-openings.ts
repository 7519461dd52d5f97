/** Opens the ports at the start, and reports all unavailable ones together. */
import { messageOf } from '../util/message-of.ts';

/** Error codes of addresses that cannot be bound; threads and the addon pass on only their text. */
const REFUSALS = /EADDRINUSE|EADDRNOTAVAIL|EACCES|EPERM|address already in use|cannot assign requested address|permission denied/i;

/** The server cannot start for a reason that the operator can fix; the message is complete. */
export class StartProblem extends Error {
  override readonly name = 'StartProblem';
}

/** Collects refused ports during one start; after `check` a refusal is an ordinary error. */
export class PortOpenings {
  readonly #refused: string[] = [];
  #isChecked = false;

  /**
   * Runs `start`, which opens the ports of `what`. Resolves with null if the system refuses and `check` will report it. Rejects with any
   * other error.
   */
  async open<T>(what: string, start: () => Promise<T>): Promise<T | null> {
    try {
      return await start();
    } catch (error) {
      const text = messageOf(error);
      if (this.#isChecked || !REFUSALS.test(text)) throw new Error(`${what} cannot be opened: ${text}`, { cause: error });
      this.#refused.push(`${what} cannot be opened: ${text}`);
      return null;
    }
  }

  /** Throws `StartProblem` when a port was refused. */
  check(): void {
    this.#isChecked = true;
    if (this.#refused.length > 0) throw new StartProblem(this.#refused.join('; '));
  }
}
