/** The playout of items on one stream, as its controller (a schedule, a stand-in) sees it. */

/** An item with its place on the wall clock. */
export interface CuedItem {
  /** `file://` under the media root, or `stream://<vhost>/<app>/<stream>`. */
  readonly url: string;
  /** Position in the source that is on air at `at`, ms. Of no meaning for a live stream. */
  readonly from: number;
  /** Wall clock, ms since the epoch. In the past: the source is joined where it would be by now. */
  readonly at: number;
  /** Wall clock at which it ends at the latest, ms since the epoch; Infinity: with its media. */
  readonly until: number;
}

/** Called in the order in which viewers see the items; `item` is the very object that was cued. */
export interface PlayoutListener {
  /** The first packet of it has gone out. */
  onAir(item: CuedItem): void;
  /**
   * It is known to end at `endsAt` (wall clock, ms), called at least a second before it does if the source allows: the moment to cue the
   * next item.
   * `mediaEnd`: it ends with its media, at this position in the source, ms; null: it is cut before.
   */
  onEnding(item: CuedItem, endsAt: number, mediaEnd: number | null): void;
  /** Its last packet has gone out and nothing was cued behind it. */
  onEnded(item: CuedItem): void;
  /**
   * It cannot be opened, read or decoded, lacks a track, or its live packets stayed away for too long. `reason` is for the log. None of its
   * media follows.
   */
  onFailed(item: CuedItem, reason: string): void;
}

/** Plays one item after the other on a stream whose tracks and timestamps never break. */
export interface Playout {
  /** Position of the item on air in its source, ms; null: no item is on air. */
  readonly position: number | null;
  readonly onAir: CuedItem | null;
  /**
   * The next item: opened at once, put on air at `item.at`, when the item on air is cut. One item can be cued; another replaces it.
   * Null withdraws it.
   */
  cue(item: CuedItem | null): void;
  /** Changes when the item on air must end, ms since the epoch. */
  endAt(until: number): void;
  /** Takes the current item off air at once; the cued item stays. */
  stop(): void;
  /** Ends all sending and all callbacks. Idempotent. */
  close(): void;
}
