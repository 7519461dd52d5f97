/** Present problems of a running server: the code that detects one raises it here, and clears it when it is over. */

/** Maximum of kept conditions; further ones are only counted. */
export const MAX_CONDITIONS = 1000;

/** The server has one. Logs nothing: the owner of a condition logs the details. */
export class Conditions {
  /** Reasons by key. */
  readonly #raised = new Map<string, string>();
  /** Returns its reason when asked; null while nothing is wrong. */
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

  /** It is over. Does nothing for a key that is not raised. */
  clear(key: string): void {
    this.#raised.delete(key);
  }

  /** Calls `reason` whenever reasons are read, for conditions without an event. It returns null while all is well, and never throws. */
  ask(reason: () => string | null): void {
    this.#told.push(reason);
  }

  /** Present reasons, each once: raised ones in order, then those of callbacks. */
  get reasons(): string[] {
    const told = this.#told.map((reason) => reason()).filter((reason) => reason !== null);
    return [...new Set([...this.#raised.values(), ...told])];
  }
}
