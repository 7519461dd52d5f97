/** EXT-X-PROGRAM-DATE-TIME (rfc8216bis §4.4.4.6). */

const TAG = '#EXT-X-PROGRAM-DATE-TIME';

/** `time` in ms since the epoch; printed in local time with its offset, as the reference does. */
export function serializeProgramDateTime(time: number): string {
  return `${TAG}:${formatLocalTime(time)}\n`;
}

/** ISO 8601 in local time with milliseconds and `±hh:mm`. */
export function formatLocalTime(time: number): string {
  const rounded = Math.round(time);
  const offset = -new Date(rounded).getTimezoneOffset();
  const local = new Date(rounded + offset * 60_000).toISOString().slice(0, -1);
  const minutes = Math.abs(offset);
  const hh = String(Math.floor(minutes / 60)).padStart(2, '0');
  const mm = String(minutes % 60).padStart(2, '0');
  return `${local}${offset < 0 ? '-' : '+'}${hh}:${mm}`;
}
