import { TS_PACKET_LENGTH, TS_SYNC } from '../containers/mpegts/ts-buffer.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { FileBytes } from './file-bytes.ts';
import type { MediaFile } from './media-file.ts';
import { MovieFile } from './movie-file.ts';
import { TransportFile } from './transport-file.ts';
import { unsupportedStreams } from './transport-probe.ts';

const FIRST_BOXES: readonly string[] = ['ftyp', 'styp', 'moov', 'mdat', 'free', 'skip', 'wide', 'pnot'];

/**
 * Opens a media file of any container. Rejects if the file cannot be played. `foreign` opens files that are neither MP4 nor MPEG-TS or have unsupported codecs; null: such
 * tracks are left out.
 */
export async function openMediaFile(
  bytes: FileBytes,
  logger: Logger,
  foreign: (() => Promise<MediaFile>) | null = null,
): Promise<MediaFile> {
  const head = await bytes.read(0, Math.min(bytes.size, TS_PACKET_LENGTH + 1));
  if (head[0] === TS_SYNC && (head[TS_PACKET_LENGTH] ?? TS_SYNC) === TS_SYNC) {
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
