/** Paths of dumps that the configuration starts: macros for the stream and the time it began. */
import type { StreamAddress } from '../../../core/stream-address.ts';

const MACRO = /\$\{(\w+)\}/g;
const MINUTES_PER_HOUR = 60;

/** Values of the macros. */
export interface DumpPathValues extends StreamAddress {
  /** ms since the epoch; written in the server's local time. */
  readonly time: number;
}

/** `template` with its macros replaced; unknown ones stay. Slashes in values are replaced. */
export function expandDumpPath(template: string, { vhost, app, stream, time }: DumpPathValues): string {
  const at = new Date(time);
  const [year, month, day] = [String(at.getFullYear()).padStart(4, '0'), two(at.getMonth() + 1), two(at.getDate())];
  const [hour, minute, second] = [two(at.getHours()), two(at.getMinutes()), two(at.getSeconds())];
  const zone = offsetOf(at);
  const values: Readonly<Record<string, string>> = {
    ...{ VHostName: vhost, AppName: app, StreamName: stream },
    ...{ YYYY: year, MM: month, DD: day, hh: hour, mm: minute, ss: second, S: zone, z: zone },
    ISO8601: `${year}-${month}-${day}T${hour}:${minute}:${second}${zone}`,
  };
  return template.replaceAll(MACRO, (whole, name: string) => values[name]?.replaceAll('/', '_') ?? whole);
}

/** `+0900`. */
function offsetOf(at: Date): string {
  const minutes = -at.getTimezoneOffset();
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(size / MINUTES_PER_HOUR))}${two(size % MINUTES_PER_HOUR)}`;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
