/** Opens a media file, whatever its container. */
import type { SourcePacket, SourceTrack } from '../core/ingest.ts';
import type { Timebase } from '../media/timebase.ts';
import type { Logger } from '../util/logger.ts';
import type { FileBytes } from './file-bytes.ts';
import { MovieFile } from './movie-file.ts';
import { TransportFile } from './transport-file.ts';

/** What comes next in a file. */
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
}

const TS_SYNC = 0x47;
const TS_PACKET = 188;
const FIRST_BOXES: readonly string[] = ['ftyp', 'styp', 'moov', 'mdat', 'free', 'skip', 'wide', 'pnot'];

/** Rejects when the file is none of those that can be played. */
export async function openMediaFile(bytes: FileBytes, logger: Logger): Promise<MediaFile> {
  const head = await bytes.read(0, Math.min(bytes.size, TS_PACKET + 1));
  if (head[0] === TS_SYNC && (head[TS_PACKET] ?? TS_SYNC) === TS_SYNC) return new TransportFile(bytes, logger);
  if (FIRST_BOXES.includes(String.fromCharCode(...head.subarray(4, 8)))) return await MovieFile.open(bytes, logger);
  throw new Error('the file is neither MP4 nor MPEG-TS');
}
