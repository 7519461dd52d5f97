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
