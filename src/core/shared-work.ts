/** Work that several nodes know and one of them does at a time: persistent pulls, channels, pushes. */

/** `unknown`: it is not told yet, as at the beginning. */
export type WorkState = 'ours' | 'others' | 'unknown';

/** What is done, in words that all nodes have in common. */
export interface Work {
  readonly kind: 'pull' | 'scheduled' | 'multiplex' | 'push';
  readonly vhost: string;
  readonly app: string;
  /** Of the stream, or the id of the task. */
  readonly name: string;
}

/** Tells whose a work is. Whoever would do one asks at least once a second: that is how it is known to be wanted here. */
export interface SharedWork {
  stateOf(work: Work): WorkState;
}

/** Of a server that shares nothing. */
export const OWN_WORK: SharedWork = { stateOf: () => 'ours' };
