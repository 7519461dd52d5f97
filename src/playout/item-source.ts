/** The source of an item, whatever its URL names. */
import type { ItemSideData } from './item-side-data.ts';
import type { FileEvent } from './media-file.ts';
import type { ItemSubtitles } from './sidecars.ts';

/** The media of one item. Whoever opened it closes it. */
export interface ItemSource {
  /** It brings packets as they come, from now on: what is left waiting is lost. Else it is read as far ahead as one likes. */
  readonly live: boolean;
  /** Where position 0 is, seconds in the time of the packets. */
  readonly start: number;
  /** Its subtitles, by language; absent: none. */
  readonly subtitles?: readonly ItemSubtitles[];
  /** Events and cues that wait for their time; absent: the source has none. */
  readonly sideData?: ItemSideData | undefined;
  /** Tracks, then packets in the order of decoding; tracks again when they change. Null at the end. Rejects when it can be read no more. */
  next(): Promise<FileEvent | null>;
  /** Ends all waiting. Idempotent. */
  close(): void;
}

/** How an item is opened. */
export interface ItemOpening {
  /** ms. */
  readonly position: number;
  /** Nobody waits for it any more. */
  readonly signal: AbortSignal;
  /** A process has to start first: it takes longer than a disk. */
  readonly onSlow: () => void;
}

/** Opens items by their URLs. */
export interface ItemSources {
  /**
   * The first packets are those from the last keyframe on that lies at `position` or before it. Rejects with an error for people; a
   * source that comes after the signal is closed by whoever opened it.
   */
  open(url: string, opening: ItemOpening): Promise<ItemSource>;
}
