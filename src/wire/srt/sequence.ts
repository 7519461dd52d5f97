/** Sequence numbers of data packets: 31 bits that wrap, draft-sharabayko-srt-01 §3.1. */

/** The largest number; its successor is 0. */
export const SEQUENCE_MASK = 0x7f_ff_ff_ff;

/** `sequence` moved by `count`, which may be negative. */
export function addSequence(sequence: number, count: number): number {
  return (sequence + count) & SEQUENCE_MASK;
}

/** Steps from `from` to `to` the shorter way round: negative if `to` precedes `from`. */
export function sequenceOffset(from: number, to: number): number {
  return ((to - from) << 1) >> 1;
}
