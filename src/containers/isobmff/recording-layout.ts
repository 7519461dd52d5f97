/**
 * Layout of an MP4 recording: ftyp, 16 bytes of `free`, moov with mvex, then moof and mdat in turn. It can be played at any moment. To
 * finish it, a plain moov is appended and the `free` header becomes that of an mdat that spans everything in between: no media byte moves,
 * and one write of 16 bytes turns the fragmented file into a plain one.
 */
import { BoxWriter } from './box-writer.ts';
import { writeFileType } from './init-segment.ts';
import { type MovieTrack, writeMovieBox } from './movie-box.ts';

const BRANDS = ['isom', 'iso6', 'mp41', 'mp42'] as const;

/** Bytes kept free for the header of the spanning mdat: a large-size box header (§4.2). */
export const SPAN_HEADER_SIZE = 16;

/**
 * Timescale of the movie header, for edit lists and total duration. With milliseconds, audio would move by a fraction of a millisecond.
 */
const MOVIE_TIMESCALE = 90_000;

/** The beginning of a recording of `tracks`. */
export function buildRecordingHead(tracks: readonly MovieTrack[]): Uint8Array {
  const writer = new BoxWriter();
  writeFileType(writer, BRANDS);
  const free = writer.box('free');
  writer.zeros(SPAN_HEADER_SIZE - 8);
  writer.end(free);
  writeMovieBox(writer, tracks, { timescale: MOVIE_TIMESCALE, longDurations: true });
  return writer.copy();
}

/** Header of an mdat of `size` bytes, header included. */
export function spanHeader(size: number): Uint8Array {
  const writer = new BoxWriter();
  writer.u32(1);
  writer.fourCc('mdat');
  writer.u64(size);
  return writer.copy();
}
