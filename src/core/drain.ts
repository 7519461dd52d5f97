/** Drain mode: a server that is about to stop keeps its present clients and refuses new ones. */

/** The error for encoders and viewers that come during a drain. */
export const DRAINING = 'the server is being drained: go to another one';

/** One for the server. Starts inactive. */
export class Drain {
  readonly #followers: ((active: boolean) => void)[] = [];
  #active = false;

  /** New clients are refused. */
  get active(): boolean {
    return this.#active;
  }

  /** Starts or ends draining. No effect if nothing changes. */
  set(active: boolean): void {
    if (this.#active === active) return;
    this.#active = active;
    for (const follower of this.#followers) follower(active);
  }

  /** `follower` is called on every change; it must not throw. */
  follow(follower: (active: boolean) => void): void {
    this.#followers.push(follower);
  }
}
