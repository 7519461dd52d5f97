/** The moov of a finished recording: the first moov with its sample tables filled in (ISO/IEC 14496-12 §8.2). */
import { ProtocolError } from '../../util/protocol-error.ts';
import { type Box, findBox, readBoxes } from './box-reader.ts';
import type { BoxWriter } from './box-writer.ts';
import { type Edit, writeEditList } from './movie-box.ts';
import type { SampleTables } from './sample-tables.ts';

/** Offsets of timescale and duration in headers of version 1, from the start of the box body. */
const MVHD_TIMESCALE_AT = 20;
const MVHD_DURATION_AT = 24;
const TKHD_ID_AT = 20;
const TKHD_DURATION_AT = 28;
const MDHD_TIMESCALE_AT = 20;
const MDHD_DURATION_AT = 24;
const ELST_DURATION_AT = 8;
const ELST_MEDIA_TIME_AT = 16;
const EMPTY_EDIT = 0xffff_ffff;

/** Ids of the tracks of a moov (`body` without its header). */
export function trackIdsOf(body: Uint8Array): number[] {
  return readBoxes(body)
    .filter(({ type }) => type === 'trak')
    .map((trak) => u32(required(trak.body, ['tkhd']), TKHD_ID_AT));
}

/**
 * Appends moov with the tables of `tracks` (by track id). `body` is the first moov of the recording, made by `writeMovieBox` with
 * `longDurations`. A track without samples is left out.
 */
export function writeFinalMovie(writer: BoxWriter, body: Uint8Array, tracks: ReadonlyMap<number, SampleTables>): void {
  const mvhd = required(body, ['mvhd']);
  const timescale = u32(mvhd, MVHD_TIMESCALE_AT);
  const moov = writer.box('moov');
  const header = copyBox(writer, mvhd);
  let longest = 0;
  for (const trak of readBoxes(body)) {
    if (trak.type !== 'trak') continue;
    const tables = tracks.get(u32(required(trak.body, ['tkhd']), TKHD_ID_AT));
    if (tables !== undefined && tables.samples > 0) longest = Math.max(longest, writeTrack(writer, trak, tables, timescale));
  }
  writer.end(moov);
  patchU64(writer, header + MVHD_DURATION_AT, longest);
}

/** Duration in ms of a moov made by `writeFinalMovie` (`body` without its header), from the first frame of any track to the last. */
export function shownMilliseconds(body: Uint8Array): number {
  let begin = Number.POSITIVE_INFINITY;
  let end = 0;
  for (const trak of readBoxes(body)) {
    if (trak.type !== 'trak') continue;
    const elst = required(trak.body, ['edts', 'elst']);
    // An empty edit covers the time before the track begins.
    begin = Math.min(begin, u32(elst, ELST_MEDIA_TIME_AT) === EMPTY_EDIT ? u64(elst, ELST_DURATION_AT) : 0);
    end = Math.max(end, u64(required(trak.body, ['tkhd']), TKHD_DURATION_AT));
  }
  return end <= begin ? 0 : ((end - begin) * 1000) / u32(required(body, ['mvhd']), MVHD_TIMESCALE_AT);
}

/** Returns the duration of the track's presentation in the timescale of the movie. */
function writeTrack(writer: BoxWriter, trak: Box, tables: SampleTables, movieTimescale: number): number {
  const mdhd = required(trak.body, ['mdia', 'mdhd']);
  const timescale = u32(mdhd, MDHD_TIMESCALE_AT);
  const elst = findBox(trak.body, ['edts', 'elst']);
  const mediaTime = elst === null ? 0 : u64(elst, ELST_MEDIA_TIME_AT);
  const inMovie = (units: number): number => Math.round((units * movieTimescale) / timescale);
  const delay = inMovie(tables.startTime);
  // A truncated recording may end with a frame that is presented after missing frames.
  const shown = Math.max(0, inMovie(tables.presentedEnd - mediaTime));
  const edits: Edit[] = delay > 0 ? [{ duration: delay, mediaTime: -1 }] : [];
  edits.push({ duration: shown, mediaTime });

  const out = writer.box('trak');
  patchU64(writer, copyBox(writer, required(trak.body, ['tkhd'])) + TKHD_DURATION_AT, delay + shown);
  writeEditList(writer, edits);
  const mdia = writer.box('mdia');
  patchU64(writer, copyBox(writer, mdhd) + MDHD_DURATION_AT, tables.duration);
  copyBox(writer, required(trak.body, ['mdia', 'hdlr']));
  const minf = writer.box('minf');
  for (const box of readBoxes(required(trak.body, ['mdia', 'minf']).body)) {
    if (box.type !== 'stbl') copyBox(writer, box);
  }
  const stbl = writer.box('stbl');
  copyBox(writer, required(trak.body, ['mdia', 'minf', 'stbl', 'stsd']));
  tables.write(writer);
  writer.end(stbl);
  writer.end(minf);
  writer.end(mdia);
  writer.end(out);
  return delay + shown;
}

/** Appends `box` unchanged and returns where its body begins. */
function copyBox(writer: BoxWriter, box: Box): number {
  const start = writer.box(box.type);
  const body = writer.length;
  writer.bytes(box.body);
  writer.end(start);
  return body;
}

function patchU64(writer: BoxWriter, position: number, value: number): void {
  writer.patchU32(position, Math.floor(value / 0x1_0000_0000));
  writer.patchU32(position + 4, value >>> 0);
}

function required(bytes: Uint8Array, path: readonly string[]): Box {
  const box = findBox(bytes, path);
  if (box === null) throw new ProtocolError('ISOBMFF_MOVIE', `the recording has no ${path.join('/')}`, 0);
  return box;
}

function u32(box: Box, at: number): number {
  if (box.body.length < at + 4) throw new ProtocolError('ISOBMFF_TRUNCATED', `${box.type} has only ${box.body.length} bytes`, box.offset);
  return new DataView(box.body.buffer, box.body.byteOffset, box.body.byteLength).getUint32(at);
}

function u64(box: Box, at: number): number {
  return u32(box, at) * 0x1_0000_0000 + u32(box, at + 4);
}
