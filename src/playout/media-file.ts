/** Opens a media file of any container. */
import type { SourcePacket, SourceTrack } from '../core/ingest.ts';
import type { Timebase } from '../media/timebase.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { FileBytes, OpenFile } from './file-bytes.ts';
import { MovieFile } from './movie-file.ts';
import { TransportFile } from './transport-file.ts';
import { unsupportedStreams } from './transport-probe.ts';

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

const TS_SYNC = 0x47;
const TS_PACKET = 188;
const FIRST_BOXES: readonly string[] = ['ftyp', 'styp', 'moov', 'mdat', 'free', 'skip', 'wide', 'pnot'];

/** Opens files of all other containers and codecs. */
export interface FfmpegFiles {
  /** The reader ends when the file is closed. Rejects with an error for people. */
  openFile(file: OpenFile, logger: Logger): Promise<MediaFile>;
}

/**
 * Rejects if the file cannot be played. `foreign` opens files that are neither MP4 nor MPEG-TS or have unsupported codecs; null: such
 * tracks are left out.
 */
export async function openMediaFile(
  bytes: FileBytes,
  logger: Logger,
  foreign: (() => Promise<MediaFile>) | null = null,
): Promise<MediaFile> {
  const head = await bytes.read(0, Math.min(bytes.size, TS_PACKET + 1));
  if (head[0] === TS_SYNC && (head[TS_PACKET] ?? TS_SYNC) === TS_SYNC) {
    const unsupported = foreign === null ? [] : await unsupportedStreams(bytes);
    return await openAs(unsupported, foreign, logger, async () => new TransportFile(bytes, logger));
  }
  if (FIRST_BOXES.includes(String.fromCharCode(...head.subarray(4, 8)))) {
    const unsupported = foreign === null ? [] : await MovieFile.unsupportedTracks(bytes);
    return await openAs(unsupported, foreign, logger, () => MovieFile.open(bytes, logger));
  }
  if (foreign === null || bytes.size === 0) throw new Error('the file is neither MP4 nor MPEG-TS');
  return await foreign();
}

/** `own` is for files without `strange` codecs, and for files that no other reader supports. */
async function openAs(
  unsupported: readonly string[],
  foreign: (() => Promise<MediaFile>) | null,
  logger: Logger,
  own: () => Promise<MediaFile>,
): Promise<MediaFile> {
  if (unsupported.length === 0 || foreign === null) return await own();
  try {
    return await foreign();
  } catch (error) {
    logger.warn({ err: error }, `${unsupported.join(', ')} cannot be read: ${messageOf(error)}`);
    return await own();
  }
}
