/** Tells which node does which work, as the test decides. */
import type { SharedWork, Work, WorkState } from '../../src/core/shared-work.ts';

/** States of work are in `state`, requests in `asked`. */
export class FakeWork implements SharedWork {
  state: WorkState;
  readonly asked = new Set<string>();

  constructor(state: WorkState = 'ours') {
    this.state = state;
  }

  stateOf({ kind, vhost, app, name }: Work): WorkState {
    this.asked.add(`${kind}/${vhost}/${app}/${name}`);
    return this.state;
  }
}
