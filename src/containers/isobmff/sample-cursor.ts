/** Walks the sample tables of a track (ISO/IEC 14496-12 §8.6, §8.7) without expanding them: a film has half a million samples. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { type Box, bodyView, readBoxes } from './box-reader.ts';

/** One sample of a file; times in the timescale of its track. */
export interface FileSample {
  /** The offset of its bytes in the file. */
  readonly offset: number;
  readonly size: number;
  readonly dts: number;
  readonly compositionOffset: number;
  readonly duration: number;
  readonly keyframe: boolean;
}

/** A box of equal entries after their count. */
interface Table {
  readonly view: DataView;
  readonly count: number;
  /** Position of entry 0. */
  readonly start: number;
}

/** The tables of one track, as views of the bytes that were read. */
export interface ReadSampleTables {
  readonly sampleCount: number;
  /** Bytes of every sample; 0: each sample has its size in `sizes`. */
  readonly sampleSize: number;
  readonly sizes: Table & { readonly bits: 4 | 8 | 16 | 32 };
  readonly durations: Table;
  readonly compositions: (Table & { readonly signed: boolean }) | null;
  readonly chunks: Table;
  readonly chunkOffsets: Table & { readonly wide: boolean };
  /** Null: every sample is a sync sample. */
  readonly syncSamples: Table | null;
}

/** Reads stbl (`body` without its header). Throws `ProtocolError` if a table is missing or longer than its box. */
export function readSampleTables(body: Uint8Array): ReadSampleTables {
  const boxes = new Map(readBoxes(body).map((box) => [box.type, box]));
  const required = (...types: string[]): Box => {
    const box = types.map((type) => boxes.get(type)).find((found) => found !== undefined);
    if (box === undefined) throw new ProtocolError('ISOBMFF_TABLE', `stbl without ${types.join(' or ')}`);
    return box;
  };
  const size = required('stsz', 'stz2');
  const offsets = required('stco', 'co64');
  const wide = offsets.type === 'co64';
  const composition = boxes.get('ctts');
  const sync = boxes.get('stss');
  return {
    ...sizesOf(size),
    durations: table(required('stts'), 8),
    compositions: composition === undefined ? null : { ...table(composition, 8), signed: composition.body[0] === 1 },
    chunks: table(required('stsc'), 12),
    chunkOffsets: { ...table(offsets, wide ? 8 : 4), wide },
    syncSamples: sync === undefined ? null : table(sync, 4),
  };
}

function sizesOf(box: Box): Pick<ReadSampleTables, 'sampleCount' | 'sampleSize' | 'sizes'> {
  const view = bodyView(box, 12);
  const sampleCount = view.getUint32(8);
  const common = { view, count: sampleCount, start: 12 };
  if (box.type === 'stsz') {
    const sampleSize = view.getUint32(4);
    if (sampleSize === 0) bodyView(box, 12 + sampleCount * 4);
    return { sampleCount, sampleSize, sizes: { ...common, bits: 32 } };
  }
  const bits = view.getUint8(7);
  if (bits !== 4 && bits !== 8 && bits !== 16) throw new ProtocolError('ISOBMFF_TABLE', `stz2 with sizes of ${bits} bits`, box.offset);
  bodyView(box, 12 + Math.ceil((sampleCount * bits) / 8));
  return { sampleCount, sampleSize: 0, sizes: { ...common, bits } };
}

function table(box: Box, width: number): Table {
  const count = bodyView(box, 8).getUint32(4);
  return { view: bodyView(box, 8 + count * width), count, start: 8 };
}

/** Ticks of all samples together. */
export function durationOfSamples({ durations: { view, count, start }, sampleCount }: ReadSampleTables): number {
  let ticks = 0;
  let left = sampleCount;
  for (let entry = 0; entry < count && left > 0; entry += 1) {
    const at = start + entry * 8;
    const samples = Math.min(left, view.getUint32(at));
    ticks += samples * view.getUint32(at + 4);
    left -= samples;
  }
  return ticks;
}

/** Index of the sample decoded at `dts` (ticks), from 0, or of the preceding sample. */
export function sampleAt({ durations: { view, count, start }, sampleCount }: ReadSampleTables, dts: number): number {
  let sample = 0;
  let at = 0;
  for (let entry = 0; entry < count; entry += 1) {
    const samples = view.getUint32(start + entry * 8);
    const delta = view.getUint32(start + entry * 8 + 4);
    if (delta > 0 && at + samples * delta > dts) return Math.max(0, Math.min(sampleCount - 1, sample + Math.floor((dts - at) / delta)));
    sample += samples;
    at += samples * delta;
  }
  return Math.max(0, sampleCount - 1);
}

/** The last sync sample at or before `sample`, both counted from 0; 0 if there is none. */
export function syncSampleBefore({ syncSamples }: ReadSampleTables, sample: number): number {
  if (syncSamples === null) return sample;
  const { view, count, start } = syncSamples;
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (view.getUint32(start + middle * 4) <= sample + 1) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : view.getUint32(start + (low - 1) * 4) - 1;
}

/** The samples of a track, one after the other. */
export class SampleCursor {
  readonly #tables: ReadSampleTables;
  #sample = 0;
  #dts = 0;
  /** An entry of a run-length table, and the number of its samples that are left. */
  #duration = { entry: -1, left: 0 };
  #composition = { entry: -1, left: 0 };
  #run = -1;
  #chunk = 0;
  #leftInChunk = 0;
  #offset = 0;
  #sync = 0;

  constructor(tables: ReadSampleTables) {
    this.#tables = tables;
  }

  /** Moves to `sample`, counted from 0. Throws `ProtocolError` if the tables contradict each other. */
  seek(sample: number): void {
    const { sampleCount, durations, compositions } = this.#tables;
    this.#sample = Math.min(sample, sampleCount);
    this.#dts = 0;
    this.#duration = { entry: -1, left: 0 };
    this.#composition = { entry: -1, left: 0 };
    this.#sync = 0;
    this.#leftInChunk = 0;
    if (this.#sample >= sampleCount) return;
    this.#dts = this.#skip(durations, this.#duration, 'stts');
    if (compositions !== null) this.#skip(compositions, this.#composition, 'ctts');
    this.#seekChunk();
  }

  /** Moves to the entry of the next sample; returns the sum over the samples before it, each with the value of its entry. */
  #skip({ view, count, start }: Table, run: { entry: number; left: number }, type: string): number {
    let sum = 0;
    let left = this.#sample;
    for (let entry = 0; entry < count; entry += 1) {
      const at = start + entry * 8;
      const samples = view.getUint32(at);
      if (left < samples) {
        run.entry = entry;
        run.left = samples - left;
        return sum + left * view.getUint32(at + 4);
      }
      left -= samples;
      sum += samples * view.getUint32(at + 4);
    }
    throw new ProtocolError('ISOBMFF_TABLE', `${type} ends before sample ${this.#sample}`);
  }

  #seekChunk(): void {
    const { chunks, sampleSize } = this.#tables;
    let before = 0;
    for (let run = 0; run < chunks.count; run += 1) {
      const at = chunks.start + run * 12;
      const first = chunks.view.getUint32(at) - 1;
      const perChunk = chunks.view.getUint32(at + 4);
      const last = run + 1 < chunks.count ? chunks.view.getUint32(at + 12) - 1 : Number.POSITIVE_INFINITY;
      const inRun = perChunk === 0 ? 0 : Math.max(0, last - first) * perChunk;
      if (before + inRun <= this.#sample) {
        before += inRun;
        continue;
      }
      const whole = Math.floor((this.#sample - before) / perChunk);
      this.#run = run;
      this.#chunk = first + whole;
      this.#nextChunk();
      const wanted = this.#sample;
      const inChunk = wanted - before - whole * perChunk;
      this.#leftInChunk -= inChunk;
      if (sampleSize > 0) this.#offset += inChunk * sampleSize;
      else for (this.#sample = wanted - inChunk; this.#sample < wanted; this.#sample += 1) this.#offset += this.#size();
      return;
    }
    throw new ProtocolError('ISOBMFF_TABLE', `no chunk for sample ${this.#sample}`);
  }

  /** The next sample, or null after the last one. Throws `ProtocolError` if the tables contradict each other. */
  next(): FileSample | null {
    const { sampleCount, durations, compositions } = this.#tables;
    if (this.#sample >= sampleCount) return null;
    const size = this.#size();
    const offset = this.#place(size);
    const duration = durations.view.getUint32(this.#enter(durations, this.#duration, 'stts') + 4);
    const sample: FileSample = {
      offset,
      size,
      dts: this.#dts,
      compositionOffset: compositions === null ? 0 : this.#compositionOffset(compositions),
      duration,
      keyframe: this.#isSync(),
    };
    this.#sample += 1;
    this.#dts += duration;
    return sample;
  }

  #size(): number {
    const { sampleSize, sizes } = this.#tables;
    if (sampleSize > 0) return sampleSize;
    const { view, start, bits } = sizes;
    const index = this.#sample;
    if (bits === 32) return view.getUint32(start + index * 4);
    if (bits === 16) return view.getUint16(start + index * 2);
    if (bits === 8) return view.getUint8(start + index);
    const pair = view.getUint8(start + (index >> 1));
    return index % 2 === 0 ? pair >> 4 : pair & 0x0f;
  }

  /** Position of the next sample: the samples of a chunk lie back to back. */
  #place(size: number): number {
    while (this.#leftInChunk === 0) this.#nextChunk();
    this.#leftInChunk -= 1;
    this.#offset += size;
    return this.#offset - size;
  }

  #nextChunk(): void {
    const { chunks, chunkOffsets } = this.#tables;
    if (this.#chunk >= chunkOffsets.count) throw new ProtocolError('ISOBMFF_TABLE', `no chunk for sample ${this.#sample}`);
    const next = this.#run + 1;
    // Chunks are counted from 1 in stsc.
    if (next < chunks.count && chunks.view.getUint32(chunks.start + next * 12) <= this.#chunk + 1) this.#run = next;
    if (this.#run < 0) throw new ProtocolError('ISOBMFF_TABLE', 'stsc does not begin with the first chunk');
    this.#leftInChunk = chunks.view.getUint32(chunks.start + this.#run * 12 + 4);
    const { view, start, wide } = chunkOffsets;
    this.#offset = wide ? Number(view.getBigUint64(start + this.#chunk * 8)) : view.getUint32(start + this.#chunk * 4);
    this.#chunk += 1;
  }

  #compositionOffset(compositions: NonNullable<ReadSampleTables['compositions']>): number {
    const at = this.#enter(compositions, this.#composition, 'ctts') + 4;
    // Many writers use negative offsets in version 0, too; offsets of more than 2³¹ ticks do not occur.
    return compositions.signed ? compositions.view.getInt32(at) : compositions.view.getUint32(at) | 0;
  }

  /** Moves to the run-length entry of the next sample, and returns its position. */
  #enter({ view, count, start }: Table, run: { entry: number; left: number }, type: string): number {
    while (run.left === 0) {
      run.entry += 1;
      if (run.entry >= count) throw new ProtocolError('ISOBMFF_TABLE', `${type} ends before sample ${this.#sample}`);
      run.left = view.getUint32(start + run.entry * 8);
    }
    run.left -= 1;
    return start + run.entry * 8;
  }

  #isSync(): boolean {
    const { syncSamples } = this.#tables;
    if (syncSamples === null) return true;
    const { view, count, start } = syncSamples;
    const wanted = this.#sample + 1;
    while (this.#sync < count && view.getUint32(start + this.#sync * 4) < wanted) this.#sync += 1;
    return this.#sync < count && view.getUint32(start + this.#sync * 4) === wanted;
  }
}
