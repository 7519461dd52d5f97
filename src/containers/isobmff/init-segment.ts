/** CMAF header of one track: ftyp + moov without samples (ISO/IEC 14496-12 §8.2, ISO/IEC 23000-19 §7.3). */
import type { AudioTrack, VideoTrack } from '../../media/track.ts';
import { BoxWriter } from './box-writer.ts';
import { writeMovieBox } from './movie-box.ts';

const COMPATIBLE_BRANDS = ['iso6', 'cmfc', 'cmf2', 'mp41'] as const;

/** Builds the init segment of `track`; its fragments use the same `timescale`. `trackId` is the id in the file. */
export function buildInitSegment(track: VideoTrack | AudioTrack, options: { timescale: number; trackId: number }): Uint8Array {
  const writer = new BoxWriter();
  writeFileType(writer, COMPATIBLE_BRANDS);
  writeMovieBox(writer, [{ track, ...options }], { timescale: options.timescale });
  return writer.copy();
}

/** Appends ftyp (§4.3); the first brand is the major one. */
export function writeFileType(writer: BoxWriter, brands: readonly [string, ...string[]]): void {
  const ftyp = writer.box('ftyp');
  writer.fourCc(brands[0]);
  writer.u32(0);
  for (const brand of brands) writer.fourCc(brand);
  writer.end(ftyp);
}
