/** Moments as schedules name them: ISO 8601 with an offset from UTC, or the time on the clocks of a place. */

const TIME =
  /^(\d{4})-(\d\d?)-(\d\d?)T(\d\d?):(\d\d?)(?::(\d\d?)(?:[.,](\d{1,9}))?)?(?:(Z)|([+-])(\d\d)(?::?(\d\d))?|\[([A-Za-z][A-Za-z0-9_+/-]*)\])$/i;
const MS_PER_SECOND = 1000;
const MS_PER_MINUTE = 60_000;
const MS_PER_HOUR = 3_600_000;
const MS_PER_DAY = 24 * MS_PER_HOUR;
const MAX_OFFSET_HOURS = 23;
const MAX_ZONES = 100;

/**
 * Milliseconds since the epoch; NaN for an invalid text. The offset is `Z`, `+hh`, `+hhmm` or `+hh:mm`, or an IANA time zone in brackets:
 * `2026-03-29T02:30:00[Europe/Berlin]`. A local time skipped by daylight saving is moved forward by the skipped interval; of a repeated one
 * the first is meant.
 */
export function parseScheduled(text: string): number {
  const match = TIME.exec(text.trim());
  if (match === null) return Number.NaN;
  const [, year, month, day, hours, minutes, seconds = '0', fraction = '0', utc, sign, offsetHours = '0', offsetMinutes = '0', zone] =
    match;
  const date = [year, month, day].map(Number);
  const time = [hours, minutes, seconds].map(Number);
  const local = wallClock(date, time);
  if (Number.isNaN(local)) return Number.NaN;
  const whole = local + Number(fraction.padEnd(3, '0').slice(0, 3));
  if (utc !== undefined) return whole;
  if (zone !== undefined) return inZone(whole, zone);
  if (Number(offsetHours) > MAX_OFFSET_HOURS || Number(offsetMinutes) > 59) return Number.NaN;
  const offset = Number(offsetHours) * MS_PER_HOUR + Number(offsetMinutes) * MS_PER_MINUTE;
  return sign === '-' ? whole + offset : whole - offset;
}

/** The zone in brackets that a text ends with, as it is written; null: none. */
export function zoneOf(text: string): string | null {
  return /\[([^[\]]*)\]\s*$/.exec(text)?.[1] ?? null;
}

/** As if the clock showed UTC; NaN for a date that does not exist. */
function wallClock([year = 0, month = 0, day = 0]: readonly number[], [hours = 0, minutes = 0, seconds = 0]: readonly number[]): number {
  if (hours > 23 || minutes > 59 || seconds > 59) return Number.NaN;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCFullYear() !== year || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return Number.NaN;
  return date.setUTCHours(hours, minutes, seconds, 0);
}

/** When the clocks of `zone` show `local`. */
function inZone(local: number, zone: string): number {
  // No zone changes its clocks twice within two days.
  const before = offsetOf(zone, local - MS_PER_DAY);
  const after = offsetOf(zone, local + MS_PER_DAY);
  if (Number.isNaN(before)) return Number.NaN;
  const candidates = [local - before, local - after].sort((a, b) => a - b);
  // If neither is right, the time lies in the gap: with the old offset it is as far behind the gap as it was in it.
  return candidates.find((moment) => local - moment === offsetOf(zone, moment)) ?? local - before;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** UTC offset of a zone, ms; NaN for an unknown zone. */
function offsetOf(zone: string, moment: number): number {
  const format = formatOf(zone);
  if (format === null) return Number.NaN;
  const name = format.formatToParts(moment).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  const [, sign, hours = '0', minutes = '0', seconds = '0'] = /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(name) ?? [];
  const offset = Number(hours) * MS_PER_HOUR + Number(minutes) * MS_PER_MINUTE + Number(seconds) * MS_PER_SECOND;
  return sign === '-' ? -offset : offset;
}

/** The format of a zone, kept because it is expensive to make; null for an unknown zone. */
function formatOf(zone: string): Intl.DateTimeFormat | null {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  try {
    const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
    if (formats.size >= MAX_ZONES) formats.clear();
    formats.set(zone, format);
    return format;
  } catch {
    return null;
  }
}
