/** Texts of times: what the API prints, and what keys and policies contain. */

const MS_PER_SECOND = 1000;
const MS_PER_MINUTE = 60_000;
/** Seconds whose text is kept, a power of two: an answer about many streams repeats the same few seconds. */
const SLOTS = 256;

/** The common text of all times within a second. */
interface SecondText {
  readonly second: number;
  /** Text up to the point before the milliseconds. */
  readonly head: string;
  /** The offset from UTC. */
  readonly offset: string;
}

/** A date, or a date with a time and its zone (RFC 3339). */
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/;

const seconds: (SecondText | undefined)[] = new Array<SecondText | undefined>(SLOTS).fill(undefined);

/**
 * Formats a wall clock time (ms since the epoch) as the API prints it: local time of the server
 * with milliseconds and a numeric offset, `2026-02-01T10:00:00.120+00:00`.
 */
export function formatTimestamp(epochMs: number): string {
  const whole = Math.trunc(epochMs);
  const second = Math.floor(whole / MS_PER_SECOND);
  const slot = second & (SLOTS - 1);
  let text = seconds[slot];
  if (text?.second !== second) {
    text = secondText(second);
    seconds[slot] = text;
  }
  const milliseconds = whole - second * MS_PER_SECOND;
  const zeros = milliseconds < 10 ? '00' : milliseconds < 100 ? '0' : '';
  return `${text.head}${zeros}${milliseconds}${text.offset}`;
}

/** The time of a text, ms since the epoch; NaN for an invalid text. A date begins at midnight UTC. */
export function timeOf(text: string): number {
  return TIME.test(text) ? Date.parse(text) : Number.NaN;
}

/** Throws `RangeError` for an invalid time, as `Date` does. */
function secondText(second: number): SecondText {
  const epochMs = second * MS_PER_SECOND;
  const offset = -new Date(epochMs).getTimezoneOffset();
  // Without the milliseconds and `Z`.
  const head = new Date(epochMs + offset * MS_PER_MINUTE).toISOString().slice(0, -4);
  const minutes = Math.abs(offset);
  return { second, head, offset: `${offset < 0 ? '-' : '+'}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}` };
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : String(value);
}
