/** A board that can be followed live: it numbers entries and keeps the newest. */

/** An entry of a board. */
export interface Posted<N> {
  readonly id: string;
  readonly notice: N;
  /** One line, without secrets. */
  readonly json: string;
}

/** A board for followers, each of which keeps its own position; the board keeps nothing for them. */
export interface FollowedBoard<N> {
  /** Number of the newest entry; 0 before the first. */
  readonly newest: number;
  /** Number of the oldest kept entry; `newest + 1` without any. */
  readonly oldest: number;
  at(number: number): Posted<N> | undefined;
  /** Unique among all runs of the server. */
  idOf(number: number): string;
  /** The number of an id of this run; null for other ids. */
  numberOf(id: string): number | null;
  /** `value` as one line, without secrets. */
  textOf(value: object): string;
  /** `watcher` is called whenever an entry was added, and must neither throw nor wait. Returns a function that ends this. */
  watch(watcher: () => void): () => void;
}
