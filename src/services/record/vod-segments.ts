/** Pieces of a recorded file for players: each begins with a keyframe. They are found by reading the file once. */
import type { FileHandle } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readMovieFragment } from '../../containers/isobmff/fragment-reader.ts';
import { readMovie } from '../../containers/isobmff/movie-reader.ts';
import { PTS_WRAP, readTimestamp } from '../../containers/mpegts/timestamp.ts';
import { TS_PACKET_LENGTH, TS_SYNC } from '../../containers/mpegts/ts-buffer.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { RecordContainerName } from './record-container.ts';

/** A piece of a file. */
export interface VodSegment {
  readonly offset: number;
  readonly length: number;
  /** Seconds. */
  readonly duration: number;
}

/** How a file is played in pieces. */
export interface VodLayout {
  readonly segments: readonly VodSegment[];
  /** The head of an MP4 file, as two consecutive ranges; null for MPEG-TS. */
  readonly init: readonly { readonly offset: number; readonly length: number }[] | null;
}

/** Where a piece may begin. */
interface Joint {
  readonly offset: number;
  /** Seconds. */
  readonly at: number;
}

/** Minimum length of pieces, seconds. MP4 runs with a keyframe are this far apart (`Mp4Container`): more would join two. */
const TARGET_S = 3.5;
const MAX_JOINTS = 1_000_000;
const BOX_HEADER = 8;
const LARGE_HEADER = 16;
const MAX_MOOF = 16 * 1024 * 1024;
const MAX_MOOV = 1024 * 1024;
/** Yields to the event loop after this many fragments. */
const MAX_AT_ONCE = 100;

const CHUNK = TS_PACKET_LENGTH * 4096;
const RANDOM_ACCESS = 0x40;
const CLOCK = 90_000;
/** Duration of the last frame, which is not stored, seconds. */
const LAST_FRAME_S = 0.04;

/** Reads the structure of a recorded file. Throws `ProtocolError` if the file is not a recording of this server. */
export async function layOut(file: FileHandle, container: RecordContainerName, size: number): Promise<VodLayout> {
  return container === 'mp4' ? await layOutMovie(file, size) : { segments: await layOutTransport(file, size), init: null };
}

/** The fragments that were written while it was recorded are still there, whether it has been finished or not (`recording-layout.ts`). */
async function layOutMovie(file: FileHandle, size: number): Promise<VodLayout> {
  const ftyp = await boxAt(file, 0, size);
  const span = ftyp.type === 'ftyp' ? await boxAt(file, ftyp.end, size) : null;
  if (span === null || (span.type !== 'free' && span.type !== 'mdat'))
    throw new ProtocolError('RECORDING_HEAD', 'not a recording of this server', 0);
  const moov = await boxAt(file, ftyp.end + LARGE_HEADER, size);
  if (moov.type !== 'moov' || moov.end - moov.body > MAX_MOOV)
    throw new ProtocolError('RECORDING_HEAD', 'no moov behind the head', ftyp.end);
  const movie = readMovie(await read(file, moov.body, moov.end - moov.body));
  const leader = movie.tracks.find(({ description }) => description.type === 'video') ?? movie.tracks[0];
  if (leader === undefined) throw new ProtocolError('RECORDING_HEAD', 'no track that can be played', 0);
  // Behind the fragments is the moov of the finished file.
  const limit = span.type === 'mdat' ? Math.min(span.end, size) : size;
  const joints: Joint[] = [];
  let end = 0;
  let at = moov.end;
  for (let count = 1; at + BOX_HEADER <= limit; count += 1) {
    if (count % MAX_AT_ONCE === 0) await nextTurn();
    const moof = await boxAt(file, at, limit).catch(() => null);
    if (moof === null || moof.type !== 'moof' || moof.end > limit || moof.end - moof.body > MAX_MOOF) break;
    const mdat = await boxAt(file, moof.end, limit).catch(() => null);
    if (mdat === null || mdat.type !== 'mdat' || mdat.end > limit) break;
    let isLeader = false;
    let isFirst = true;
    const start = at;
    readMovieFragment(await read(file, moof.body, moof.end - moof.body), {
      run: (trackId, dts) => {
        isLeader = trackId === leader.trackId;
        if (isLeader) end = Math.max(end, dts);
      },
      sample: (_size, duration, _offset, keyframe) => {
        if (!isLeader) return;
        if (isFirst && (keyframe || leader.description.type !== 'video')) joints.push({ offset: start, at: end / leader.timescale });
        isFirst = false;
        end += duration;
      },
    });
    if (joints.length > MAX_JOINTS) throw new ProtocolError('RECORDING_LENGTH', 'the file is too long to be played in pieces');
    at = mdat.end;
  }
  const init = [
    { offset: 0, length: ftyp.end },
    { offset: ftyp.end + LARGE_HEADER, length: moov.end - ftyp.end - LARGE_HEADER },
  ];
  // Audio may come before the first frame.
  const [first, ...others] = joints;
  const all = first === undefined ? [] : [{ ...first, offset: moov.end }, ...others];
  return { segments: segmentsOf(all, at, end / leader.timescale), init };
}

interface BoxPlace {
  readonly type: string;
  readonly body: number;
  readonly end: number;
}

async function boxAt(file: FileHandle, at: number, size: number): Promise<BoxPlace> {
  const head = await read(file, at, Math.min(LARGE_HEADER, size - at));
  if (head.length < BOX_HEADER) throw new ProtocolError('ISOBMFF_TRUNCATED', 'the file ends inside a box header', at);
  const type = head.toString('latin1', 4, BOX_HEADER);
  const short = head.readUInt32BE(0);
  const isLarge = short === 1 && head.length === LARGE_HEADER;
  const length = isLarge ? Number(head.readBigUInt64BE(BOX_HEADER)) : short;
  const header = isLarge ? LARGE_HEADER : BOX_HEADER;
  if (length < header || !Number.isSafeInteger(length)) throw new ProtocolError('ISOBMFF_BOX_SIZE', `a box of ${length} bytes`, at);
  return { type, body: at + header, end: at + length };
}

async function read(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(Math.max(0, length));
  const { bytesRead } = await file.read(buffer, 0, buffer.length, offset);
  return buffer.subarray(0, bytesRead);
}

/** Tables precede each keyframe (`TsContainer`): a piece begins with them. */
async function layOutTransport(file: FileHandle, size: number): Promise<VodSegment[]> {
  const video: Joint[] = [];
  const audio: Joint[] = [];
  const clock = new Unwrapped();
  let tables = -1;
  let until = 0;
  for (let from = 0; from + TS_PACKET_LENGTH <= size; from += CHUNK) {
    const chunk = await read(file, from, Math.min(CHUNK, size - from));
    for (let at = 0; at + TS_PACKET_LENGTH <= chunk.length; at += TS_PACKET_LENGTH) {
      if (chunk[at] !== TS_SYNC) throw new ProtocolError('TS_SYNC', 'not a recording of this server', from + at);
      if (((chunk[at + 1] ?? 0) & 0x40) === 0) continue;
      const pid = (((chunk[at + 1] ?? 0) & 0x1f) << 8) | (chunk[at + 2] ?? 0);
      if (pid === 0) tables = from + at;
      const unit = pid === 0 ? null : unitAt(chunk, at);
      if (unit === null) continue;
      const seconds = clock.seconds(unit.pts);
      until = Math.max(until, seconds + LAST_FRAME_S);
      const joints = unit.isVideo ? video : audio;
      if (tables >= 0 && (unit.randomAccess || !unit.isVideo)) joints.push({ offset: tables, at: seconds });
      tables = unit.isVideo || video.length === 0 ? -1 : tables;
      if (joints.length > MAX_JOINTS) throw new ProtocolError('RECORDING_LENGTH', 'the file is too long to be played in pieces');
    }
  }
  return segmentsOf(video.length > 0 ? video : audio, size - (size % TS_PACKET_LENGTH), until);
}

/** Times of 33 bits on one line, which begins with the first. */
class Unwrapped {
  #first: number | null = null;
  #last = 0;

  seconds(pts: number): number {
    this.#first ??= pts;
    let ticks = pts - this.#first;
    while (ticks - this.#last < -PTS_WRAP / 2) ticks += PTS_WRAP;
    this.#last = Math.max(this.#last, ticks);
    return ticks / CLOCK;
  }
}

/** The beginning of a PES packet of video or audio; null for anything else. */
function unitAt(chunk: Buffer, at: number): { readonly pts: number; readonly isVideo: boolean; readonly randomAccess: boolean } | null {
  const control = chunk[at + 3] ?? 0;
  const adaptation = (control & 0x20) === 0 ? 0 : 1 + (chunk[at + 4] ?? 0);
  const randomAccess = adaptation > 1 && ((chunk[at + 5] ?? 0) & RANDOM_ACCESS) !== 0;
  const pes = at + 4 + adaptation;
  if (pes + 14 > at + TS_PACKET_LENGTH || chunk[pes] !== 0 || chunk[pes + 1] !== 0 || chunk[pes + 2] !== 1) return null;
  const id = chunk[pes + 3] ?? 0;
  const isVideo = id >= 0xe0 && id <= 0xef;
  const isAudio = (id >= 0xc0 && id <= 0xdf) || id === 0xbd;
  if ((!isVideo && !isAudio) || ((chunk[pes + 7] ?? 0) & 0x80) === 0) return null;
  return { pts: readTimestamp(chunk, pes + 9), isVideo, randomAccess };
}

/** Joins short pieces. `end`: end of the last piece in bytes; `until`: in seconds. */
function segmentsOf(joints: readonly Joint[], end: number, until: number): VodSegment[] {
  const segments: VodSegment[] = [];
  let open: Joint | undefined;
  const close = (offset: number, at: number): void => {
    if (open === undefined) return;
    segments.push({ offset: open.offset, length: offset - open.offset, duration: Math.max(0, at - open.at) });
    open = undefined;
  };
  for (const joint of joints) {
    if (open !== undefined && joint.at - open.at >= TARGET_S) close(joint.offset, joint.at);
    open ??= joint;
  }
  close(end, until);
  return segments;
}
