/** Wall clock times as text, the way the API, logs and playlists print them. */

const MINUTES_PER_HOUR = 60;

/** ISO 8601 in local time with milliseconds and offset, e.g. `2026-01-11T21:10:10.123+09:00`. */
export function isoLocalTime(epochMs: number): string {
  const offset = -new Date(epochMs).getTimezoneOffset();
  const local = new Date(epochMs + offset * 60_000).toISOString().slice(0, -1);
  const minutes = Math.abs(offset);
  return `${local}${offset < 0 ? '-' : '+'}${twoDigits(Math.floor(minutes / MINUTES_PER_HOUR))}:${twoDigits(minutes % MINUTES_PER_HOUR)}`;
}

function twoDigits(value: number): string {
  return value.toString().padStart(2, '0');
}
