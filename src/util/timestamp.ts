const MS_PER_MINUTE = 60_000;

/**
 * Formats a wall clock time (ms since the epoch) as the API prints it: local time of the server
 * with milliseconds and a numeric offset, `2026-02-01T10:00:00.120+00:00`.
 */
export function formatTimestamp(epochMs: number): string {
  const offset = -new Date(epochMs).getTimezoneOffset();
  const local = new Date(epochMs + offset * MS_PER_MINUTE).toISOString().slice(0, -1);
  if (offset === 0) return `${local}+00:00`;
  const sign = offset < 0 ? '-' : '+';
  const minutes = Math.abs(offset);
  return `${local}${sign}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`;
}

function twoDigits(value: number): string {
  return value < 10 ? `0${value}` : String(value);
}
