/** Movie fragment of one track: moof + mdat header; the payload follows by reference (ISO/IEC 14496-12 §8.8, CMAF §7.5). */
import type { BoxWriter } from './box-writer.ts';

/** One sample of a fragment; times in the timescale of the track. */
export interface FragmentSample {
  readonly size: number;
  readonly duration: number;
  /** pts − dts; may be negative. */
  readonly compositionOffset: number;
  readonly keyframe: boolean;
}

/** The samples of one moof, times in ticks of the track's timescale. The caller writes the sample data after the header. */
export interface Fragment {
  readonly trackId: number;
  /** Grows by one from fragment to fragment. */
  readonly sequence: number;
  /** dts of the first sample. */
  readonly baseDecodeTime: number;
  readonly video: boolean;
  readonly samples: readonly FragmentSample[];
}

const TFHD_DEFAULT_DURATION = 0x08;
const TFHD_DEFAULT_FLAGS = 0x20;
const TFHD_DEFAULT_BASE_IS_MOOF = 0x02_0000;
const TRUN_DATA_OFFSET = 0x001;
const TRUN_DURATION = 0x100;
const TRUN_SIZE = 0x200;
const TRUN_FLAGS = 0x400;
const TRUN_COMPOSITION_OFFSET = 0x800;
/** sample_depends_on = 2: decodable alone. */
const SYNC_SAMPLE = 0x0200_0000;
/** sample_depends_on = 1, sample_is_non_sync_sample. */
const NON_SYNC_SAMPLE = 0x0101_0000;
const MDAT_HEADER_SIZE = 8;

/** Appends moof and the header of mdat to `writer`. The samples' bytes must follow in order. */
export function writeFragmentHeader(writer: BoxWriter, fragment: Fragment): void {
  const { samples } = fragment;
  const duration = commonDuration(samples);
  const moof = writer.box('moof');
  const mfhd = writer.fullBox('mfhd', 0, 0);
  writer.u32(fragment.sequence >>> 0);
  writer.end(mfhd);

  const traf = writer.box('traf');
  const tfhd = writer.fullBox('tfhd', 0, TFHD_DEFAULT_BASE_IS_MOOF | TFHD_DEFAULT_FLAGS | (duration === null ? 0 : TFHD_DEFAULT_DURATION));
  writer.u32(fragment.trackId);
  if (duration !== null) writer.u32(duration);
  writer.u32(fragment.video ? NON_SYNC_SAMPLE : SYNC_SAMPLE);
  writer.end(tfhd);
  const tfdt = writer.fullBox('tfdt', 1, 0);
  writer.u64(fragment.baseDecodeTime);
  writer.end(tfdt);
  const dataOffsetAt = writeRun(writer, fragment, duration === null);
  writer.end(traf);
  writer.end(moof);

  writer.patchU32(dataOffsetAt, writer.length - moof + MDAT_HEADER_SIZE);
  let payload = 0;
  for (const sample of samples) payload += sample.size;
  writer.u32(MDAT_HEADER_SIZE + payload);
  writer.fourCc('mdat');
}

/** Writes trun (version 1: signed offsets) and returns the position of its data_offset. */
function writeRun(writer: BoxWriter, fragment: Fragment, withDurations: boolean): number {
  const flags =
    TRUN_DATA_OFFSET | TRUN_SIZE | (withDurations ? TRUN_DURATION : 0) | (fragment.video ? TRUN_FLAGS | TRUN_COMPOSITION_OFFSET : 0);
  const trun = writer.fullBox('trun', 1, flags);
  writer.u32(fragment.samples.length);
  const dataOffsetAt = writer.length;
  writer.u32(0);
  for (const sample of fragment.samples) {
    if (withDurations) writer.u32(sample.duration);
    writer.u32(sample.size);
    if (!fragment.video) continue;
    writer.u32(sample.keyframe ? SYNC_SAMPLE : NON_SYNC_SAMPLE);
    writer.i32(sample.compositionOffset);
  }
  writer.end(trun);
  return dataOffsetAt;
}

/** The duration of all samples, if they share one, or null. */
function commonDuration(samples: readonly FragmentSample[]): number | null {
  const first = samples[0]?.duration ?? 0;
  return samples.every((sample) => sample.duration === first) ? first : null;
}
