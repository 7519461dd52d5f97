/** Sample tables of a plain movie (stbl, ISO/IEC 14496-12 §8.5–8.7), gathered sample by sample. */
import type { BoxWriter } from './box-writer.ts';
import { Uint32List } from './uint32-list.ts';

/**
 * The tables of one track. Times are run-length encoded, sizes and sync samples take four bytes each, so a day at 30 frames per second
 * takes about 12 MB.
 */
export class SampleTables {
  readonly #sizes = new Uint32List();
  /** Pairs (count, delta). */
  readonly #deltas = new Uint32List();
  /** Pairs (count, offset as signed 32 bit). */
  readonly #offsets = new Uint32List();
  /** Sample numbers, from 1. */
  readonly #syncs = new Uint32List();
  /** Triples (position high, position low, samples). */
  readonly #chunks = new Uint32List();
  #composed = false;
  #start = -1;
  #next = 0;
  #lastDuration = 0;
  #presentedEnd = 0;
  #bytes = 0;

  /** dts of the first sample; −1 while there is none. */
  get startTime(): number {
    return this.#start;
  }

  /** Ticks from the dts of the first sample to the end of the last. */
  get duration(): number {
    return this.#start < 0 ? 0 : this.#next + this.#lastDuration - this.#start;
  }

  /**
   * End of the sample that is presented last, relative to the dts of the first: later than `duration` if frames are decoded before they are
   * presented.
   */
  get presentedEnd(): number {
    return this.#presentedEnd;
  }

  get samples(): number {
    return this.#sizes.length;
  }

  /** Bytes of all samples. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The following samples lie back to back from `position` of the file; the first has dts `decodeTime`. */
  beginChunk(position: number, decodeTime: number): void {
    this.#chunks.push(Math.floor(position / 0x1_0000_0000));
    this.#chunks.push(position >>> 0);
    this.#chunks.push(0);
    if (this.#start < 0) {
      this.#start = decodeTime;
      this.#next = decodeTime;
      return;
    }
    // The last sample of the previous run lasts until this run begins, regardless of its stored duration.
    this.#lastDuration = Math.max(0, decodeTime - this.#next);
  }

  add(size: number, duration: number, compositionOffset: number, keyframe: boolean): void {
    if (this.#sizes.length > 0) {
      countUp(this.#deltas, this.#lastDuration);
      this.#next += this.#lastDuration;
    }
    this.#lastDuration = duration;
    this.#presentedEnd = Math.max(this.#presentedEnd, this.#next - this.#start + compositionOffset + duration);
    this.#sizes.push(size);
    this.#bytes += size;
    countUp(this.#offsets, compositionOffset >>> 0);
    if (compositionOffset !== 0) this.#composed = true;
    if (keyframe) this.#syncs.push(this.#sizes.length);
    const at = this.#chunks.length - 1;
    this.#chunks.set(at, this.#chunks.at(at) + 1);
  }

  /** Whether every chunk lies within [from, to) of the file. */
  fits(from: number, to: number): boolean {
    let sample = 0;
    for (let chunk = 0; chunk < this.#chunks.length; chunk += 3) {
      const position = this.#chunks.at(chunk) * 0x1_0000_0000 + this.#chunks.at(chunk + 1);
      let end = position;
      for (let left = this.#chunks.at(chunk + 2); left > 0; left--) end += this.#sizes.at(sample++);
      if (position < from || end > to) return false;
    }
    return sample === this.#sizes.length;
  }

  /** Appends stts, ctts, stss, stsc, stsz and co64; the caller writes stsd before them. */
  write(writer: BoxWriter): void {
    this.#writeTimes(writer);
    if (this.#composed) writePairs(writer, 'ctts', 1, this.#offsets, null);
    if (this.#syncs.length < this.#sizes.length) {
      const stss = writer.fullBox('stss', 0, 0);
      writer.u32(this.#syncs.length);
      for (let i = 0; i < this.#syncs.length; i++) writer.u32(this.#syncs.at(i));
      writer.end(stss);
    }
    this.#writeSamplesOfChunks(writer);
    const stsz = writer.fullBox('stsz', 0, 0);
    writer.u32(0);
    writer.u32(this.#sizes.length);
    for (let i = 0; i < this.#sizes.length; i++) writer.u32(this.#sizes.at(i));
    writer.end(stsz);
    const co64 = writer.fullBox('co64', 0, 0);
    writer.u32(this.#chunks.length / 3);
    for (let chunk = 0; chunk < this.#chunks.length; chunk += 3) {
      writer.u32(this.#chunks.at(chunk));
      writer.u32(this.#chunks.at(chunk + 1));
    }
    writer.end(co64);
  }

  #writeTimes(writer: BoxWriter): void {
    writePairs(writer, 'stts', 0, this.#deltas, this.#sizes.length > 0 ? this.#lastDuration : null);
  }

  #writeSamplesOfChunks(writer: BoxWriter): void {
    const stsc = writer.fullBox('stsc', 0, 0);
    const countAt = writer.length;
    writer.u32(0);
    let entries = 0;
    let last = -1;
    for (let chunk = 0; chunk < this.#chunks.length; chunk += 3) {
      const samples = this.#chunks.at(chunk + 2);
      if (samples === last) continue;
      writer.u32(chunk / 3 + 1);
      writer.u32(samples);
      writer.u32(1);
      entries += 1;
      last = samples;
    }
    writer.patchU32(countAt, entries);
    writer.end(stsc);
  }
}

function countUp(pairs: Uint32List, value: number): void {
  const at = pairs.length - 2;
  if (at >= 0 && pairs.at(at + 1) === value) {
    pairs.set(at, pairs.at(at) + 1);
    return;
  }
  pairs.push(1);
  pairs.push(value);
}

/** `last` is the value of one more sample after the pairs. */
function writePairs(writer: BoxWriter, type: string, version: 0 | 1, pairs: Uint32List, last: number | null): void {
  const box = writer.fullBox(type, version, 0);
  writer.u32(pairs.length / 2 + (last === null ? 0 : 1));
  for (let i = 0; i < pairs.length; i++) writer.u32(pairs.at(i));
  if (last !== null) {
    writer.u32(1);
    writer.u32(last);
  }
  writer.end(box);
}
