/** Plays MP4, plain and fragmented, of any writer. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readMovieFragment } from '../containers/isobmff/fragment-reader.ts';
import { type FileMovie, readMovie, type TrakBox } from '../containers/isobmff/movie-reader.ts';
import { durationOfSamples, type FileSample, SampleCursor, sampleAt, syncSampleBefore } from '../containers/isobmff/sample-cursor.ts';
import type { SourceTrack } from '../core/ingest.ts';
import { AudioCodec, BitstreamFormat, VideoCodec } from '../media/codec.ts';
import { endOfMedia } from '../media/media-end.ts';
import type { Logger } from '../util/logger.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import type { FileBytes } from './file-bytes.ts';
import type { FileEvent, MediaFile } from './media-file.ts';

/** More would not be a film but an attack: a moov has some bytes per sample, a moof lasts for seconds. */
const MAX_MOOV_BYTES = 67_108_864;
const MAX_MOOF_BYTES = 1_048_576;
const MAX_SAMPLE_BYTES = 16_777_216;
/** Boxes in a row that bring no sample. */
const MAX_EMPTY_BOXES = 10_000;
/** Fragments of one track may come this much before those of the others, seconds. */
const MAX_AHEAD_S = 10;
/** Limit of fragment samples that wait for those of other tracks: half an hour of audio. */
const MAX_WAITING = 100_000;
/** Samples in a row that are not played: hours of audio that an edit list cuts off. */
const MAX_SKIPPED = 1_000_000;
/** The reader yields to the event loop after this many samples, because samples in memory are read without waiting. */
const MAX_SAMPLES_AT_ONCE = 1000;
/** Keyframes that are tried from a place backwards: frames that are shown so much later than they are decoded are in no film. */
const MAX_KEYFRAMES_BACK = 1000;
/** Positions are whole milliseconds, keyframes are in ticks: a keyframe later by less than this, in seconds, matches. */
const ROUNDING_S = 0.001;
const BOX_HEADER = 8;
const LARGE_BOX_HEADER = 16;

interface BoxPlace {
  readonly type: string;
  readonly body: number;
  readonly end: number;
}

/** A track with the known next samples. */
class TrackReader {
  readonly track: TrakBox;
  /** Id of the track in the stream. */
  readonly id: number;
  readonly #cursor: SampleCursor;
  #ahead: FileSample | null = null;
  /** Samples of fragments, in their order. */
  readonly #queue: FileSample[] = [];
  /** Where the samples of fragments end, ticks. */
  fragmentEnd = 0;

  constructor(track: TrakBox, id: number) {
    this.track = track;
    this.id = id;
    this.#cursor = new SampleCursor(track.tables);
  }

  /** The next sample; null when none is known. */
  peek(): FileSample | null {
    this.#ahead ??= this.#cursor.next() ?? this.#queue.shift() ?? null;
    return this.#ahead;
  }

  take(): void {
    this.#ahead = null;
  }

  add(sample: FileSample): void {
    this.#queue.push(sample);
  }

  get isVideo(): boolean {
    return this.track.description.type === 'video';
  }

  /** The next sample is the last keyframe that is shown at second `target` or before; the second at which it is. Rejects where none is near. */
  async seekKeyframe(target: number): Promise<number> {
    const { tables } = this.track;
    const ticks = target * this.track.timescale - this.track.shift;
    for (let sample = sampleAt(tables, ticks), tried = 1; ; tried += 1) {
      // Each costs a walk through the tables.
      if (tried > 1) await nextTurn();
      if (tried > MAX_KEYFRAMES_BACK) {
        throw new ProtocolError('ISOBMFF_SAMPLE', `${MAX_KEYFRAMES_BACK} keyframes that are shown later than what is decoded behind them`);
      }
      const key = syncSampleBefore(tables, sample);
      this.seekSample(key);
      const found = this.peek();
      if (found === null) return target;
      const shown = found.dts + found.compositionOffset;
      if (key === 0 || shown <= ticks) return this.seconds(shown);
      sample = key - 1;
    }
  }

  /** Moves to the sample that is decoded at second `target`, or to the preceding one. */
  seekTime(target: number): void {
    this.seekSample(sampleAt(this.track.tables, target * this.track.timescale - this.track.shift));
  }

  seekSample(sample: number): void {
    this.#cursor.seek(sample);
    this.#ahead = null;
  }

  /** Audio encoders' priming samples before the beginning are not part of the presentation. */
  isPriming({ dts, duration }: FileSample): boolean {
    return this.track.description.type === 'audio' && dts + this.track.shift + duration <= 0;
  }

  /** Seconds of the presentation at which `dts` lies. */
  seconds(dts: number): number {
    return (dts + this.track.shift) / this.track.timescale;
  }

  /** Samples of fragments that wait. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Seconds of samples that wait. */
  get ahead(): number {
    const first = this.#queue[0];
    const last = this.#queue.at(-1);
    return first === undefined || last === undefined ? 0 : (last.dts - first.dts) / this.track.timescale;
  }
}

/** Hands out samples of all tracks in decoding order. The bytes stay the caller's, who closes them. */
export class MovieFile implements MediaFile {
  readonly #bytes: FileBytes;
  readonly #movie: FileMovie;
  readonly #tracks: readonly TrakBox[];
  /** Where the boxes behind moov begin. */
  readonly #start: number;
  #readers: readonly TrackReader[] = [];
  #at = 0;
  #told = false;
  #startsAt: number | null = null;
  /** Samples read, including earlier rounds. */
  #taken = 0;

  private constructor(bytes: FileBytes, movie: FileMovie, tracks: readonly TrakBox[], start: number) {
    this.#bytes = bytes;
    this.#movie = movie;
    this.#tracks = tracks;
    this.#start = start;
    this.rewind();
  }

  /** Rejects with `ProtocolError` when there is nothing to play. */
  static async open(bytes: FileBytes, logger: Logger): Promise<MovieFile> {
    const { movie, end } = await movieOf(bytes);
    const tracks = movie.tracks.filter(({ description }) => description.type !== 'unsupported');
    const left = unsupportedIn(movie);
    if (left.length > 0) logger.warn({ unsupported: left }, `tracks left out: ${left.join(', ')}`);
    if (tracks.length === 0) throw new ProtocolError('ISOBMFF_MOVIE', 'the file has no video or audio that can be played');
    return new MovieFile(bytes, movie, tracks, end);
  }

  /**
   * Sample entries of video and audio in unsupported codecs. Encrypted entries are not listed, because they cannot be played at all.
   * Rejects as `open`.
   */
  static async unsupportedTracks(bytes: FileBytes): Promise<readonly string[]> {
    const { movie } = await movieOf(bytes);
    return unsupportedIn(movie).filter((what) => !ENCRYPTED.includes(what));
  }

  rewind(): void {
    this.#readers = this.#tracks.map((track, index) => new TrackReader(track, index));
    this.#at = this.#start;
    this.#told = false;
  }

  async next(): Promise<FileEvent | null> {
    if (!this.#told) {
      this.#told = true;
      return { type: 'tracks', tracks: this.#readers.flatMap(({ track, id }) => sourceTrack(track, id) ?? []) };
    }
    for (let skipped = 0; ; skipped += 1) {
      // A few bytes of tables can describe thousands of millions of samples.
      if (skipped > MAX_SKIPPED) throw new ProtocolError('ISOBMFF_SAMPLE', `more than ${MAX_SKIPPED} samples without anything to play`);
      this.#taken += 1;
      if (this.#taken % MAX_SAMPLES_AT_ONCE === 0) await nextTurn();
      const reader = await this.#earliest();
      const sample = reader?.peek();
      if (reader === null || sample === null || sample === undefined) return null;
      reader.take();
      const { track, id } = reader;
      const dts = sample.dts + track.shift;
      if (reader.isPriming(sample) || sample.size === 0) continue;
      const data = await this.#read(sample);
      const packet = { trackId: id, pts: dts + sample.compositionOffset, dts, keyframe: sample.keyframe, data };
      return { type: 'packet', packet, timebase: { num: 1, den: track.timescale }, duration: sample.duration };
    }
  }

  async start(): Promise<number> {
    this.#startsAt ??= await this.#findStart();
    return this.#startsAt;
  }

  async seek(position: number): Promise<void> {
    this.rewind();
    const target = (await this.start()) + position + ROUNDING_S;
    this.rewind();
    if (this.#movie.fragmented) await this.#seekFragments(target);
    else await this.#seekTables(target);
  }

  async length(): Promise<number | null> {
    this.rewind();
    const start = await this.start();
    const ends = this.#movie.fragmented ? await this.#endsOfFragments() : this.#endsOfTables(start);
    this.rewind();
    const end = endOfMedia(ends.video, ends.audio);
    return Number.isFinite(end) ? Math.max(0, end - start) : null;
  }

  /** The track that decides where a file begins and can be joined. */
  get #leader(): TrackReader | undefined {
    return this.#readers.find(({ isVideo }) => isVideo) ?? this.#readers[0];
  }

  async #findStart(): Promise<number> {
    await this.#earliest();
    const leader = this.#leader;
    for (let skipped = 0; leader !== undefined; skipped += 1) {
      const sample = leader.peek();
      if (sample === null || skipped > MAX_SKIPPED) break;
      if (!leader.isPriming(sample)) return leader.seconds(sample.dts + sample.compositionOffset);
      leader.take();
      if (skipped % MAX_SAMPLES_AT_ONCE === MAX_SAMPLES_AT_ONCE - 1) await nextTurn();
      await this.#earliest();
    }
    return 0;
  }

  async #seekTables(target: number): Promise<void> {
    const leader = this.#leader;
    if (leader === undefined) return;
    const from = leader.isVideo ? await leader.seekKeyframe(target) : target;
    for (const reader of this.#readers) if (reader !== leader || !leader.isVideo) reader.seekTime(from);
  }

  /** Fragments have no tables: they are read up to the place, once to find the keyframe and once to get there. */
  async #seekFragments(target: number): Promise<void> {
    let from = Number.NEGATIVE_INFINITY;
    await this.#walk((reader, sample) => {
      if (reader.seconds(sample.dts) > target) return false;
      const isJoint = sample.keyframe && reader.seconds(sample.dts + sample.compositionOffset) <= target;
      if (reader === this.#leader && isJoint) from = reader.seconds(sample.dts);
      return true;
    });
    this.rewind();
    await this.#walk((reader, sample) => reader.seconds(sample.dts) < from);
  }

  #endsOfTables(start: number): { video: number; audio: number } {
    const ends = { video: Number.NEGATIVE_INFINITY, audio: Number.NEGATIVE_INFINITY };
    for (const { track, isVideo } of this.#readers) {
      const ticks = durationOfSamples(track.tables);
      if (isVideo) ends.video = Math.max(ends.video, start + ticks / track.timescale);
      else ends.audio = Math.max(ends.audio, (ticks + track.shift) / track.timescale);
    }
    return ends;
  }

  async #endsOfFragments(): Promise<{ video: number; audio: number }> {
    const ends = { video: Number.NEGATIVE_INFINITY, audio: Number.NEGATIVE_INFINITY };
    await this.#walk((reader, { dts, compositionOffset, duration }) => {
      const kind = reader.isVideo ? 'video' : 'audio';
      ends[kind] = Math.max(ends[kind], reader.seconds(dts + compositionOffset + duration));
      return true;
    });
    return ends;
  }

  /** Passes samples in their order as long as `passes` says so; the server gets its turns. */
  async #walk(passes: (reader: TrackReader, sample: FileSample) => boolean): Promise<void> {
    for (let walked = 1; ; walked += 1) {
      if (walked % MAX_SAMPLES_AT_ONCE === 0) await nextTurn();
      const reader = await this.#earliest();
      const sample = reader?.peek();
      if (reader === null || sample === null || sample === undefined || !passes(reader, sample)) return;
      reader.take();
    }
  }

  async #read({ offset, size }: FileSample): Promise<Uint8Array> {
    if (size > MAX_SAMPLE_BYTES) throw new ProtocolError('ISOBMFF_SAMPLE', `a sample of ${size} bytes`, offset);
    if (offset < 0 || offset + size > this.#bytes.size) {
      throw new ProtocolError('ISOBMFF_SAMPLE', `a sample of ${size} bytes lies beyond the end of the file`, offset);
    }
    return await this.#bytes.read(offset, size);
  }

  /** The track whose next sample is to be decoded first; null when all have ended. */
  async #earliest(): Promise<TrackReader | null> {
    if (this.#movie.fragmented) await this.#fill();
    let best: TrackReader | null = null;
    let bestAt = Number.POSITIVE_INFINITY;
    for (const reader of this.#readers) {
      const sample = reader.peek();
      if (sample === null || reader.seconds(sample.dts) >= bestAt) continue;
      best = reader;
      bestAt = reader.seconds(sample.dts);
    }
    return best;
  }

  /** Reads fragments until every track has a sample, or has certainly ended. */
  async #fill(): Promise<void> {
    for (let empty = 0; this.#at < this.#bytes.size; empty += 1) {
      if (this.#readers.every((reader) => reader.peek() !== null) || this.#readers.some(({ ahead }) => ahead > MAX_AHEAD_S)) return;
      if (empty > MAX_EMPTY_BOXES) throw new ProtocolError('ISOBMFF_FRAGMENT', `${empty} boxes without a sample`, this.#at);
      const position = this.#at;
      const box = await boxAt(this.#bytes, position);
      this.#at = box.end;
      if (box.type !== 'moof') continue;
      this.#addFragment(await readBody(this.#bytes, box, MAX_MOOF_BYTES), position);
      const waiting = this.#readers.reduce((sum, reader) => sum + reader.waiting, 0);
      if (waiting > MAX_WAITING) throw new ProtocolError('ISOBMFF_FRAGMENT', `${waiting} samples that wait for another track`, position);
    }
  }

  #addFragment(body: Uint8Array, position: number): void {
    let reader: TrackReader | undefined;
    let offset = 0;
    let dts = 0;
    const sink = {
      run: (trackId: number, baseDecodeTime: number, dataOffset: number) => {
        reader = this.#readers.find(({ track }) => track.trackId === trackId);
        // Without an offset the data of a run follows that of the run before; without a time its samples do.
        if (dataOffset !== 0) offset = position + dataOffset;
        dts = baseDecodeTime === 0 ? (reader?.fragmentEnd ?? 0) : baseDecodeTime;
      },
      sample: (size: number, duration: number, compositionOffset: number, keyframe: boolean) => {
        reader?.add({ offset, size, dts, compositionOffset, duration, keyframe });
        offset += size;
        dts += duration;
        if (reader !== undefined) reader.fragmentEnd = dts;
      },
    };
    readMovieFragment(body, sink, { position, defaults: this.#movie.defaults });
  }
}

/** The moov of a file, and where it ends. */
async function movieOf(bytes: FileBytes): Promise<{ readonly movie: FileMovie; readonly end: number }> {
  for (let at = 0; at < bytes.size; ) {
    const box = await boxAt(bytes, at);
    at = box.end;
    if (box.type === 'moov') return { movie: readMovie(await readBody(bytes, box, MAX_MOOV_BYTES)), end: at };
  }
  throw new ProtocolError('ISOBMFF_MOVIE', 'the file has no moov: it is not complete');
}

/** Sample entries of encrypted tracks. */
const ENCRYPTED: readonly string[] = ['encv', 'enca'];

function unsupportedIn({ tracks }: FileMovie): string[] {
  return tracks.flatMap(({ description }) => (description.type === 'unsupported' ? [description.what] : []));
}

/** The box that begins at `at`. */
async function boxAt(bytes: FileBytes, at: number): Promise<BoxPlace> {
  if (bytes.size - at < BOX_HEADER) throw new ProtocolError('ISOBMFF_TRUNCATED', 'the file ends inside a box header', at);
  const head = Buffer.from(await bytes.read(at, Math.min(LARGE_BOX_HEADER, bytes.size - at)));
  const type = head.toString('latin1', 4, BOX_HEADER);
  let size = head.readUInt32BE(0);
  let header = BOX_HEADER;
  if (size === 1 && head.length === LARGE_BOX_HEADER) {
    size = Number(head.readBigUInt64BE(BOX_HEADER));
    header = LARGE_BOX_HEADER;
  } else if (size === 0) size = bytes.size - at;
  if (size < header) throw new ProtocolError('ISOBMFF_BOX_SIZE', `a box of ${size} bytes`, at);
  return { type, body: at + header, end: at + size };
}

async function readBody(bytes: FileBytes, { type, body, end }: BoxPlace, limit: number): Promise<Uint8Array> {
  if (end > bytes.size) throw new ProtocolError('ISOBMFF_TRUNCATED', `the file ends inside ${type}: it is not complete`, body);
  if (end - body > limit) throw new ProtocolError('ISOBMFF_BOX_SIZE', `${type} of ${end - body} bytes, at most ${limit} expected`, body);
  return await bytes.read(body, end - body);
}

function sourceTrack({ description, timescale, language }: TrakBox, id: number): SourceTrack | null {
  const base = { id, timebase: { num: 1, den: timescale }, bitrateConf: 0, ...(language !== '' && { language }) };
  switch (description.type) {
    case 'unsupported':
      return null;
    case 'video':
      return { ...base, ...description, format: videoFormat(description.codec), framerateConf: 0 };
    case 'audio':
      return { ...base, ...description, format: description.codec === AudioCodec.AAC ? BitstreamFormat.AAC_RAW : BitstreamFormat.RAW };
  }
}

function videoFormat(codec: VideoCodec): BitstreamFormat {
  if (codec === VideoCodec.H264 || codec === VideoCodec.H265) return BitstreamFormat.LENGTH_PREFIXED;
  return codec === VideoCodec.AV1 ? BitstreamFormat.OBU : BitstreamFormat.RAW;
}
