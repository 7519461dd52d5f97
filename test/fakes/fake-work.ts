/** Tells which node does which work, as the test decides, and keeps what other nodes are told. */
import type { SharedWork, Work, WorkKeeper, WorkSharing, WorkState } from '../../src/core/shared-work.ts';

/** States of work are in `state`, requests in `asked`, definitions in `told`. */
export class FakeWork implements SharedWork, WorkSharing {
  readonly asked = new Set<string>();
  /** The last for each piece of work; null: it was deleted. */
  readonly told = new Map<string, object | null>();
  /** Who waits for another state than `unknown`. */
  readonly waiting = new Set<() => void>();
  readonly keepers: WorkKeeper[] = [];
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

  addKeeper(keeper: WorkKeeper): void {
    this.keepers.push(keeper);
  }

  change<T>(work: Work, change: (tell: (definition: object | null) => void) => Promise<T>): Promise<T> {
    return change((definition) => void this.told.set(textOf(work), definition));
  }

  stateOf(work: Work): WorkState {
    this.asked.add(textOf(work));
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

function textOf({ kind, vhost, app, name }: Work): string {
  return `${kind}/${vhost}/${app}/${name}`;
}
