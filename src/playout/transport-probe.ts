import { TsDemuxer, type TsProgram } from '../containers/mpegts/ts-demuxer.ts';
import type { FileBytes } from './file-bytes.ts';

/** Tables are repeated some times a second. */
const MAX_PROBED_BYTES = 1_048_576;
const CHUNK_BYTES = 65_536;
/** Only unsupported codecs: the rest are tables, texts and private data. */
const MEDIA = /(?:video|audio)$/;

/** Video and audio of the first program in unsupported codecs, in words; empty if there are none, or no program is near. */
export async function unsupportedStreams(bytes: FileBytes): Promise<readonly string[]> {
  let program: TsProgram | null = null;
  const demuxer = new TsDemuxer({ onProgram: (found) => (program ??= found), onPes: () => {} });
  const end = Math.min(bytes.size, MAX_PROBED_BYTES);
  for (let at = 0; at < end && program === null; at += CHUNK_BYTES) demuxer.push(await bytes.read(at, Math.min(CHUNK_BYTES, end - at)));
  const streams = (program as TsProgram | null)?.streams ?? [];
  return streams.flatMap(({ kind }) => (kind.type === 'unsupported' && MEDIA.test(kind.what) ? [kind.what] : []));
}
