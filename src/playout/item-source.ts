/** The source of an item, for any URL. */
import type { ItemSideData } from './item-side-data.ts';
import type { FileEvent } from './media-file.ts';
import type { ItemSubtitles } from './sidecars.ts';

/** The media of one item. Its opener closes it. */
export interface ItemSource {
  /** Live: packets come as they arrive, and waiting ones are lost. Otherwise the source can be read ahead. */
  readonly live: boolean;
  /** Where position 0 is, seconds in the time of the packets. */
  readonly start: number;
  /** Its subtitles, by language; absent: none. */
  readonly subtitles?: readonly ItemSubtitles[];
  /** Events and cues that wait for their time; absent: the source has none. */
  readonly sideData?: ItemSideData | undefined;
  /**
   * Tracks, then packets in the order of decoding; tracks again when they change. Null at the end. Rejects when the rest is unreadable.
   */
  next(): Promise<FileEvent | null>;
  /** Ends all waiting. Idempotent. */
  close(): void;
}

/** How an item is opened. */
export interface ItemOpening {
  /** ms. */
  readonly position: number;
  /** Aborts when the item is no longer needed. */
  readonly signal: AbortSignal;
  /** A process has to start first: it takes longer than a disk. */
  readonly onSlow: () => void;
}

/** Opens items by their URLs. */
export interface ItemSources {
  /**
   * The packets begin with the last keyframe at or before `position`. Rejects with an error for people; if the source opens after the
   * signal, the caller closes it.
   */
  open(url: string, opening: ItemOpening): Promise<ItemSource>;
}
