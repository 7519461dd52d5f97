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

/** Told in the order of what viewers see; `item` is the very object that was cued. */
export interface PlayoutListener {
  /** The first packet of it has gone out. */
  onAir(item: CuedItem): void;
  /**
   * It is known to end at `endsAt` (wall clock, ms), at least a second before it does where the source can tell: the moment to cue what follows.
   * `mediaEnd`: it ends with its media, at this position in the source, ms; null: it is cut before.
   */
  onEnding(item: CuedItem, endsAt: number, mediaEnd: number | null): void;
  /** Its last packet has gone out and nothing was cued behind it. */
  onEnded(item: CuedItem): void;
  /** It cannot be opened, read or decoded, lacks a track, or its live packets stayed away for too long. `reason` is for people. Nothing of it follows. */
  onFailed(item: CuedItem, reason: string): void;
}

/** Plays one item after the other on a stream whose tracks and timestamps never break. */
export interface Playout {
  /** Milliseconds into the source of what is on air; null: nothing is. */
  readonly position: number | null;
  readonly onAir: CuedItem | null;
  /**
   * What is on air next: opened at once, put on air at `item.at`, when what is on air is cut. One item can be cued; another takes its place.
   * Null takes it back.
   */
  cue(item: CuedItem | null): void;
  /** Changes when what is on air has to end, ms since the epoch. */
  endAt(until: number): void;
  /** Takes the current item off air at once; the cued item stays. */
  stop(): void;
  /** Ends all sending and all callbacks. Idempotent. */
  close(): void;
}
