/**
 * Present problems of a running server. The code that detects a problem raises a condition here, and clears it when the problem is over.
 */

/** Maximum of kept conditions; further ones are only counted. */
export const MAX_CONDITIONS = 1000;

/** One for the server. Logs nothing: the owner of a condition logs the details. */
export class Conditions {
  /** Reasons by key. */
  readonly #raised = new Map<string, string>();
  /** Callbacks that return a reason, or null while nothing is wrong. */
  readonly #told: (() => string | null)[] = [];
  #unlisted = 0;

  /** Conditions that found no place since the start. */
  get unlisted(): number {
    return this.#unlisted;
  }

  /**
   * The server is degraded for `reason`, a short sentence without paths, names or addresses, because it is public. Raising the same `key`
   * again changes the reason.
   */
  raise(key: string, reason: string): void {
    if (!this.#raised.has(key) && this.#raised.size >= MAX_CONDITIONS) this.#unlisted += 1;
    else this.#raised.set(key, reason);
  }

  /** The problem is over. Does nothing for a key that is not raised. */
  clear(key: string): void {
    this.#raised.delete(key);
  }

  /**
   * Registers a callback for a condition without an event. It is called whenever reasons are read, returns null while nothing is wrong, and
   * must not throw.
   */
  ask(reason: () => string | null): void {
    this.#told.push(reason);
  }

  /** Present reasons, each once: raised ones in order, then those of callbacks. */
  get reasons(): string[] {
    const told = this.#told.map((reason) => reason()).filter((reason) => reason !== null);
    return [...new Set([...this.#raised.values(), ...told])];
  }
}
