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

/** The kinds in words, for the log. */
export const WORK_NOUNS: Readonly<Record<Work['kind'], string>> = {
  pull: 'pull',
  scheduled: 'scheduled channel',
  multiplex: 'multiplex channel',
  push: 'push',
};

/** Bytes of a definition, as JSON, that nodes share. */
export const MAX_DEFINITION_BYTES = 65_536;

/** Says which node does a piece of work. A node that would do it asks at least once a second: asking shows that it is wanted here. */
export interface SharedWork {
  stateOf(work: Work): WorkState;
  /** Asks, and resolves when the state is known, after `ms` at the latest. Never rejects. */
  decided(work: Work, ms: number): Promise<void>;
}

/** A piece of work with what other nodes need to do it. */
export interface DefinedWork {
  readonly work: Work;
  readonly definition: object;
}

/** The owner of the work of one kind on this node, which can take over definitions of other nodes. */
export interface WorkKeeper {
  readonly kind: Work['kind'];
  /** All work of a virtual host that was made through an API, this node's or another one's. That which `isKnown` may be left out. */
  definitions(vhost: string, isKnown: (work: Work) => boolean): Iterable<DefinedWork> | AsyncIterable<DefinedWork>;
  has(work: Work): boolean;
  /**
   * Defines the work here as well, or anew; does nothing if it is defined so. Resolves with false if a definition of this node alone stays
   * instead, which the keeper has logged. Rejects with the reason if this node cannot do it.
   */
  adopt(work: Work, definition: Readonly<Record<string, unknown>>): Promise<boolean>;
  /** Ends and deletes the work here. Resolves with false as `adopt` does. */
  drop(work: Work): Promise<boolean>;
}

/** Tells the other nodes what the API of this node defines and deletes. */
export interface WorkSharing {
  /**
   * Runs `change`, which may call `tell` with the definition that other nodes need, or with null after a deletion. Resolves with its result
   * once the other nodes are told, or will be even after a restart. Rejects as `change` does, or if the disk refuses.
   */
  change<T>(work: Work, change: (tell: (definition: object | null) => void) => Promise<T>): Promise<T>;
}

/** For a server without other nodes: all work is its own. */
export const OWN_WORK: SharedWork & WorkSharing = {
  stateOf: () => 'ours',
  decided: () => Promise.resolve(),
  change: (_work, change) => change(() => undefined),
};
