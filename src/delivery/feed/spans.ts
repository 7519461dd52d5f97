/** Operations on lists of spans. */
import type { Span } from './messages.ts';

/** The part of `spans` that holds `length` bytes from `offset` on. */
export function sliceSpans(spans: readonly Span[], offset: number, length: number): Span[] {
  const part: Span[] = [];
  let skip = offset;
  let left = length;
  for (const span of spans) {
    if (left === 0) break;
    if (skip >= span.length) {
      skip -= span.length;
      continue;
    }
    const taken = Math.min(span.length - skip, left);
    part.push({ block: span.block, offset: span.offset + skip, length: taken });
    left -= taken;
    skip = 0;
  }
  return part;
}

/** Bytes of all `spans` together. */
export function spansLength(spans: readonly Span[]): number {
  let length = 0;
  for (let n = 0; n < spans.length; n += 1) length += spans[n]?.length ?? 0;
  return length;
}

/** Adds `span`; merges spans that are adjacent in memory. */
export function appendSpan(spans: Span[], span: Span): void {
  const last = spans.at(-1);
  if (last !== undefined && last.block === span.block && last.offset + last.length === span.offset) {
    spans[spans.length - 1] = { block: last.block, offset: last.offset, length: last.length + span.length };
  } else spans.push(span);
}
