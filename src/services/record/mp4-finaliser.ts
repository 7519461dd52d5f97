/** Turns an MP4 recording, however it ended, into a plain seekable MP4 in place. */
import { type FileHandle, open } from 'node:fs/promises';
import { findBox } from '../../containers/isobmff/box-reader.ts';
import { BoxWriter } from '../../containers/isobmff/box-writer.ts';
import { shownMilliseconds, trackIdsOf, writeFinalMovie } from '../../containers/isobmff/final-movie.ts';
import { readMovieFragment, type SampleSink } from '../../containers/isobmff/fragment-reader.ts';
import { SPAN_HEADER_SIZE, spanHeader } from '../../containers/isobmff/recording-layout.ts';
import { SampleTables } from '../../containers/isobmff/sample-tables.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { syncSemaphore } from '../../util/semaphore.ts';

/** The result for a file, for the log and the counters of its task. */
export interface Finalised {
  /** `already`: the file was finished before; `empty`: it holds no sample and was left as it is. */
  readonly outcome: 'finalised' | 'already' | 'empty';
  readonly samples: number;
  /** Duration of the file, ms. */
  readonly durationMs: number;
  /** Bytes cut off the end: a fragment that was not written to its end. */
  readonly truncated: number;
}

const EMPTY: Finalised = { outcome: 'empty', samples: 0, durationMs: 0, truncated: 0 };
/** Size and type. */
const BOX_HEADER = 8;
/** A box header with a 64-bit size. */
const HEADER_SIZE = 16;
/** Larger than most moof boxes, so one read brings a moof and the header of its mdat. */
const READ_AHEAD = 4096;
/** A moof larger than this is not ours. */
const MAX_MOOF = 16 * 1024 * 1024;
const MAX_MOOV = 1024 * 1024;

/**
 * Finishes the recording at `path`. Media is never moved: the new moov is written after it, read back and checked, and then one write of 16
 * bytes makes it valid. Safe to repeat after a crash at any point. Throws `ProtocolError` if the file is not a recording of this server,
 * and file system errors.
 */
export async function finaliseMp4(path: string): Promise<Finalised> {
  const file = await open(path, 'r+');
  try {
    return await finalise(file);
  } finally {
    await file.close();
  }
}

interface BoxAt {
  readonly type: string;
  readonly offset: number;
  readonly headerSize: number;
  readonly size: number;
}

async function finalise(file: FileHandle): Promise<Finalised> {
  const { size: fileSize } = await file.stat();
  const ftyp = await boxAt(file, 0, fileSize);
  if (ftyp?.type !== 'ftyp') throw new ProtocolError('RECORDING_HEAD', 'the file does not begin with ftyp', 0);
  const span = await boxAt(file, ftyp.size, fileSize);
  if (span?.type === 'mdat') {
    const moov = await boxAt(file, span.offset + span.size, fileSize);
    if (moov?.type !== 'moov') throw new ProtocolError('RECORDING_HEAD', 'no moov behind the media', span.offset + span.size);
    return { outcome: 'already', samples: 0, durationMs: shownMilliseconds(await bodyOf(file, moov)), truncated: 0 };
  }
  if (span?.type !== 'free' || span.size !== SPAN_HEADER_SIZE) {
    throw new ProtocolError('RECORDING_HEAD', 'ftyp is not followed by the free box of a recording', ftyp.size);
  }
  const moov = await boxAt(file, span.offset + span.size, fileSize);
  if (moov === null) return EMPTY;
  if (moov.type !== 'moov' || moov.size > MAX_MOOV) throw new ProtocolError('RECORDING_HEAD', 'no moov behind the free box', moov.offset);
  const movie = await bodyOf(file, moov);
  const gathered = new Gathered(trackIdsOf(movie));
  const end = await gather(file, moov.offset + moov.size, fileSize, gathered);
  if (gathered.samples === 0) return EMPTY;

  const writer = new BoxWriter();
  writeFinalMovie(writer, movie, gathered.tables);
  const from = moov.offset + moov.size;
  for (const tables of gathered.tables.values()) {
    if (!tables.fits(from, end)) throw new ProtocolError('RECORDING_TABLES', 'a sample lies outside the media of the file', from);
  }
  const bytes = writer.view();
  await file.truncate(end);
  try {
    await writeAll(file, bytes, end);
    await syncSemaphore.take(() => file.datasync());
    await verify(file, bytes, end);
  } catch (error) {
    // Half a moov behind the fragments would only confuse players.
    await file.truncate(end);
    throw error;
  }
  await writeAll(file, spanHeader(end - span.offset), span.offset);
  await syncSemaphore.take(() => file.datasync());
  const durationMs = shownMilliseconds(bytes.subarray(BOX_HEADER));
  return { outcome: 'finalised', samples: gathered.samples, durationMs, truncated: fileSize - end };
}

class Gathered implements SampleSink {
  readonly tables: Map<number, SampleTables>;
  samples = 0;
  #moof = 0;
  #current: SampleTables | null = null;

  constructor(trackIds: readonly number[]) {
    this.tables = new Map(trackIds.map((id) => [id, new SampleTables()]));
  }

  fragmentAt(offset: number): void {
    this.#moof = offset;
    this.#current = null;
  }

  run(trackId: number, baseDecodeTime: number, dataOffset: number): void {
    this.#current = this.tables.get(trackId) ?? null;
    if (this.#current === null) throw new ProtocolError('RECORDING_FRAGMENT', `track ${trackId} is not in moov`, this.#moof);
    this.#current.beginChunk(this.#moof + dataOffset, baseDecodeTime);
  }

  sample(size: number, duration: number, compositionOffset: number, keyframe: boolean): void {
    this.#current?.add(size, duration, compositionOffset, keyframe);
    this.samples += 1;
  }
}

/** Reads fragments from `offset` on and returns where the last whole one ends. */
async function gather(file: FileHandle, offset: number, fileSize: number, gathered: Gathered): Promise<number> {
  let buffer = Buffer.allocUnsafe(READ_AHEAD);
  let at = offset;
  while (at < fileSize) {
    let { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    const moof = parseHeader(buffer, bytesRead, at);
    if (moof === null || moof.type !== 'moof' || moof.size > MAX_MOOF) break;
    const needed = moof.size + HEADER_SIZE;
    if (needed > bytesRead && at + moof.size < fileSize) {
      if (needed > buffer.length) buffer = Buffer.allocUnsafe(needed * 2);
      ({ bytesRead } = await file.read(buffer, 0, buffer.length, at));
    }
    const mdat = parseHeader(buffer.subarray(moof.size), bytesRead - moof.size, at + moof.size);
    if (mdat === null || mdat.type !== 'mdat' || mdat.offset + mdat.size > fileSize) break;
    const body = buffer.subarray(moof.headerSize, moof.size);
    if (!isReadable(body)) break;
    gathered.fragmentAt(at);
    readMovieFragment(body, gathered);
    at = mdat.offset + mdat.size;
  }
  return at;
}

const NOWHERE: SampleSink = { run: () => {}, sample: () => {} };

/** A torn moof ends the recording there; half of its samples must not get into the tables. */
function isReadable(moof: Uint8Array): boolean {
  try {
    readMovieFragment(moof, NOWHERE);
    return true;
  } catch (error) {
    if (error instanceof ProtocolError) return false;
    throw error;
  }
}

async function boxAt(file: FileHandle, offset: number, fileSize: number): Promise<BoxAt | null> {
  const header = Buffer.allocUnsafe(HEADER_SIZE);
  const { bytesRead } = await file.read(header, 0, HEADER_SIZE, offset);
  const box = parseHeader(header, bytesRead, offset);
  return box === null || box.offset + box.size > fileSize ? null : box;
}

function parseHeader(bytes: Buffer, available: number, offset: number): BoxAt | null {
  if (available < 8) return null;
  const type = bytes.toString('latin1', 4, 8);
  const size = bytes.readUInt32BE(0);
  if (size !== 1) return size < 8 ? null : { type, offset, headerSize: 8, size };
  if (available < HEADER_SIZE) return null;
  const large = Number(bytes.readBigUInt64BE(8));
  return large < HEADER_SIZE ? null : { type, offset, headerSize: HEADER_SIZE, size: large };
}

async function bodyOf(file: FileHandle, box: BoxAt): Promise<Buffer> {
  return readExactly(file, box.size - box.headerSize, box.offset + box.headerSize);
}

async function readExactly(file: FileHandle, length: number, position: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) throw new ProtocolError('RECORDING_TRUNCATED', `the file ends ${length - done} bytes early`, position + done);
    done += bytesRead;
  }
  return bytes;
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Reads the appended moov back: it must be identical, and a valid movie. */
async function verify(file: FileHandle, expected: Uint8Array, position: number): Promise<void> {
  const written = await readExactly(file, expected.length, position);
  if (!written.equals(expected) || findBox(written, ['moov', 'trak', 'mdia', 'minf', 'stbl', 'stsz']) === null) {
    throw new ProtocolError('RECORDING_TABLES', 'the appended moov cannot be read back', position);
  }
}
