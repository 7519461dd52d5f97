/** Work that several nodes know and one of them does at a time: persistent pulls, channels, pushes. */

/** `unknown`: the nodes have not decided yet, for example at the start. */
export type WorkState = 'ours' | 'others' | 'unknown';

/** A piece of work, identified alike on all nodes. */
export interface Work {
  readonly kind: 'pull' | 'scheduled' | 'multiplex' | 'push';
  readonly vhost: string;
  readonly app: string;
  /** Name of the stream, or id of the task. */
  readonly name: string;
}

/** Says which node does a piece of work. A node that would do it asks at least once a second: asking shows that it is wanted here. */
export interface SharedWork {
  stateOf(work: Work): WorkState;
  /** Asks, and resolves when the state is known, after `ms` at the latest. Never rejects. */
  decided(work: Work, ms: number): Promise<void>;
}

/** For a server without other nodes: all work is its own. */
export const OWN_WORK: SharedWork = { stateOf: () => 'ours', decided: () => Promise.resolve() };
