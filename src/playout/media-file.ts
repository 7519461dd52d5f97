/** A media file of any container, as its player sees it. */
import type { SourcePacket, SourceTrack } from '../core/ingest.ts';
import type { Timebase } from '../media/timebase.ts';
import type { Logger } from '../util/logger.ts';
import type { OpenFile } from './file-bytes.ts';

/** The next frame or change of tracks in a file. */
export type FileEvent =
  | { readonly type: 'tracks'; readonly tracks: readonly SourceTrack[] }
  /** `duration` in ticks; 0 when the file does not say. */
  | { readonly type: 'packet'; readonly packet: SourcePacket; readonly timebase: Timebase; readonly duration: number };

/** A file that is read from its beginning to its end, as often as one likes. */
export interface MediaFile {
  /** Tracks first, then packets in the order of decoding; null at the end. Rejects with `ProtocolError` or the error of the disk. */
  next(): Promise<FileEvent | null>;
  /** The next event is the first one again. */
  rewind(): void;
  /**
   * Where position 0 is, seconds in the time of the packets: the first frame of video, or of audio where there is none. Asked before anything
   * else is read, or after `rewind`.
   */
  start(): Promise<number>;
  /**
   * Tracks come next, then packets from the last keyframe on that is shown at `position` or before it, seconds behind `start`; some of the
   * other tracks may be earlier.
   */
  seek(position: number): Promise<void>;
  /**
   * Seconds from `start` to the end of presentation, by `endOfMedia`; null if only reading the whole file would show it. Rejects as `next`.
   */
  length(): Promise<number | null>;
}

/** Opens files of all other containers and codecs. */
export interface FfmpegFiles {
  /** The reader ends when the file is closed. Rejects with an error for people. */
  openFile(file: OpenFile, logger: Logger): Promise<MediaFile>;
}
