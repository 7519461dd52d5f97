/** Reads moof boxes back into runs of samples (ISO/IEC 14496-12 §8.8): for the finaliser of recordings, and to play files. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { type Box, bodyView, readBoxes } from './box-reader.ts';

const TFHD_BASE_DATA_OFFSET = 0x01;
const TFHD_DESCRIPTION_INDEX = 0x02;
const TFHD_DEFAULT_DURATION = 0x08;
const TFHD_DEFAULT_SIZE = 0x10;
const TFHD_DEFAULT_FLAGS = 0x20;
const TRUN_DATA_OFFSET = 0x001;
const TRUN_FIRST_FLAGS = 0x004;
const TRUN_DURATION = 0x100;
const TRUN_SIZE = 0x200;
const TRUN_FLAGS = 0x400;
const TRUN_COMPOSITION_OFFSET = 0x800;
const NON_SYNC = 0x0001_0000;

/** Receives the samples of a fragment one by one; times in the timescale of the track. */
export interface SampleSink {
  /** A run of samples of track `trackId` begins: the dts of its first sample, and the offset of its bytes from the start of moof. */
  run(trackId: number, baseDecodeTime: number, dataOffset: number): void;
  sample(size: number, duration: number, compositionOffset: number, keyframe: boolean): void;
}

/** Defaults of samples (trex, §8.8.3). */
export interface SampleDefaults {
  readonly duration: number;
  readonly size: number;
  readonly flags: number;
}

/** Needed for foreign files. Ours have all fields in the fragment, and offsets from its beginning. */
export interface FragmentContext {
  /** Offset of moof in the file. */
  readonly position: number;
  readonly defaults: ReadonlyMap<number, SampleDefaults>;
}

const NO_DEFAULTS: SampleDefaults = { duration: 0, size: 0, flags: 0 };
const OWN: FragmentContext = { position: 0, defaults: new Map() };

/** Passes the samples of one moof (`body` without its header) to `sink`. Throws `ProtocolError` with the byte within `body`. */
export function readMovieFragment(body: Uint8Array, sink: SampleSink, context: FragmentContext = OWN): void {
  for (const box of readBoxes(body)) {
    if (box.type === 'traf') readTrackFragment(box, sink, context);
  }
}

interface Defaults extends SampleDefaults {
  readonly trackId: number;
  /** Origin of data offsets, from the start of moof. */
  readonly base: number;
}

function readTrackFragment(traf: Box, sink: SampleSink, context: FragmentContext): void {
  let defaults: Defaults | null = null;
  let decodeTime = 0;
  for (const box of readBoxes(traf.body)) {
    if (box.type === 'tfhd') defaults = readTrackFragmentHeader(box, context);
    else if (box.type === 'tfdt') decodeTime = readDecodeTime(box);
    else if (box.type === 'trun') {
      if (defaults === null) throw new ProtocolError('ISOBMFF_FRAGMENT', 'trun before tfhd', traf.offset);
      decodeTime += readRun(box, defaults, decodeTime, sink);
    }
  }
}

function readTrackFragmentHeader(box: Box, { position, defaults }: FragmentContext): Defaults {
  const view = bodyView(box, 8);
  const flags = view.getUint32(0);
  const trackId = view.getUint32(4);
  const { duration, size, flags: sampleFlags } = defaults.get(trackId) ?? NO_DEFAULTS;
  let at = 8;
  let base = 0;
  if ((flags & TFHD_BASE_DATA_OFFSET) !== 0) {
    base = Number(bodyView(box, at + 8).getBigUint64(at)) - position;
    at += 8;
  }
  const next = (present: number, otherwise: number): number => {
    if ((flags & present) === 0) return otherwise;
    bodyView(box, at + 4);
    at += 4;
    return view.getUint32(at - 4);
  };
  next(TFHD_DESCRIPTION_INDEX, 0);
  return {
    trackId,
    base,
    duration: next(TFHD_DEFAULT_DURATION, duration),
    size: next(TFHD_DEFAULT_SIZE, size),
    flags: next(TFHD_DEFAULT_FLAGS, sampleFlags),
  };
}

function readDecodeTime(box: Box): number {
  const version = bodyView(box, 8).getUint8(0);
  return version === 1 ? Number(bodyView(box, 12).getBigUint64(4)) : bodyView(box, 8).getUint32(4);
}

/** Returns the duration of the run. */
function readRun(box: Box, defaults: Defaults, decodeTime: number, sink: SampleSink): number {
  const view = bodyView(box, 8);
  const flags = view.getUint32(0);
  const count = view.getUint32(4);
  const signed = flags >>> 24 > 0;
  let at = 8;
  let dataOffset = 0;
  if ((flags & TRUN_DATA_OFFSET) !== 0) {
    dataOffset = defaults.base + bodyView(box, at + 4).getInt32(at);
    at += 4;
  }
  let firstFlags = -1;
  if ((flags & TRUN_FIRST_FLAGS) !== 0) {
    firstFlags = bodyView(box, at + 4).getUint32(at);
    at += 4;
  }
  const width = [TRUN_DURATION, TRUN_SIZE, TRUN_FLAGS, TRUN_COMPOSITION_OFFSET].filter((bit) => (flags & bit) !== 0).length * 4;
  bodyView(box, at + count * width);
  // A run without a field per sample could claim four thousand million samples in a few bytes.
  if (width === 0 && count > 1) throw new ProtocolError('ISOBMFF_FRAGMENT', 'trun with several samples and no sizes', box.offset);
  sink.run(defaults.trackId, decodeTime, dataOffset);
  let total = 0;
  for (let i = 0; i < count; i++) {
    let { duration, size, flags: sampleFlags } = defaults;
    let compositionOffset = 0;
    if ((flags & TRUN_DURATION) !== 0) {
      duration = view.getUint32(at);
      at += 4;
    }
    if ((flags & TRUN_SIZE) !== 0) {
      size = view.getUint32(at);
      at += 4;
    }
    if ((flags & TRUN_FLAGS) !== 0) {
      sampleFlags = view.getUint32(at);
      at += 4;
    } else if (i === 0 && firstFlags >= 0) {
      sampleFlags = firstFlags;
    }
    if ((flags & TRUN_COMPOSITION_OFFSET) !== 0) {
      compositionOffset = signed ? view.getInt32(at) : view.getUint32(at);
      at += 4;
    }
    total += duration;
    sink.sample(size, duration, compositionOffset, (sampleFlags & NON_SYNC) === 0);
  }
  return total;
}
