/** A board that can be followed live: it numbers entries and keeps the newest. */

/** An entry of a board. */
export interface Posted<N> {
  readonly id: string;
  readonly notice: N;
  /** One line, without secrets. */
  readonly json: string;
}

/** Followers keep the number of the entry that they have read; the board keeps nothing for each. */
export interface FollowedBoard<N> {
  /** Number of the newest; 0 before the first. */
  readonly newest: number;
  /** Number of the oldest that is kept; `newest + 1` when none is. */
  readonly oldest: number;
  at(number: number): Posted<N> | undefined;
  /** Unique among all runs of the server. */
  idOf(number: number): string;
  /** The number behind an id of this run; null for all others. */
  numberOf(id: string): number | null;
  /** `value` as one line, without secrets. */
  textOf(value: object): string;
  /** `watcher` is called whenever something was added, and must neither throw nor wait. Returns what ends that. */
  watch(watcher: () => void): () => void;
}
