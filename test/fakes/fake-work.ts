/** Tells which node does which work, as the test decides. */
import type { SharedWork, Work, WorkState } from '../../src/core/shared-work.ts';

/** States of work are in `state`, requests in `asked`. */
export class FakeWork implements SharedWork {
  readonly asked = new Set<string>();
  /** Who waits for another state than `unknown`. */
  readonly waiting = new Set<() => void>();
  #state: WorkState;

  constructor(state: WorkState = 'ours') {
    this.#state = state;
  }

  get state(): WorkState {
    return this.#state;
  }

  set state(state: WorkState) {
    this.#state = state;
    if (state !== 'unknown') for (const resolve of this.waiting) resolve();
  }

  stateOf({ kind, vhost, app, name }: Work): WorkState {
    this.asked.add(`${kind}/${vhost}/${app}/${name}`);
    return this.#state;
  }

  async decided(work: Work, ms: number): Promise<void> {
    if (this.stateOf(work) !== 'unknown') return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const late = setTimeout(resolve, ms);
    this.waiting.add(resolve);
    await promise;
    this.waiting.delete(resolve);
    clearTimeout(late);
  }
}
