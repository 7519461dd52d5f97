/** The paths of a recording: macros of the configured paths, and their base folder. */
import { randomInt } from 'node:crypto';
import { basename, dirname, extname, join } from 'node:path';
import { PathRefused, refuseStrange } from '../../util/allowed-folders.ts';
import { fitName } from './final-name.ts';
import type { RecordContainerName } from './record-container.ts';

const NAME = '${TransactionId}_${VirtualHost}_${Application}_${Stream}';

/** Paths of a publisher without `FilePath` and `InfoPath`, below its folder for recordings. */
export const DEFAULT_FILE_PATH = `/${NAME}_\${StartTime:YYYYMMDDhhmmss}_\${EndTime:YYYYMMDDhhmmss}.ts`;
/** The default for information files. */
export const DEFAULT_INFO_PATH = `/${NAME}.xml`;

/** Limit of an id in the name of a file, characters. */
const MAX_TASK = 40;
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** Another container under this extension would mislead users. */
const UNWRITTEN = '.webm';
const END_TIME = /\$\{EndTime(?::[^}]*)?\}/g;
const MACRO = /\$\{(\w+)(?::([^}]*))?\}/g;

/** Values of the macros. */
export interface PathValues {
  readonly transactionId: string;
  readonly id: string;
  readonly vhost: string;
  readonly app: string;
  /** Name of the inbound stream. */
  readonly sourceStream: string;
  readonly stream: string;
  readonly sequence: number;
  /** ms since the epoch. */
  readonly startTime: number;
  /** ms since the epoch; null while unknown: its macro stays. */
  readonly endTime: number | null;
}

/** `template` with its macros replaced; unknown ones stay. Slashes in values are replaced. */
export function expandPath(template: string, values: PathValues): string {
  return template.replaceAll(MACRO, (whole, name: string, format: string | undefined) => {
    const value = macroValue(name, format, values);
    return value === null ? whole : value.replaceAll('/', '_');
  });
}

function macroValue(name: string, format: string | undefined, values: PathValues): string | null {
  switch (name) {
    case 'TransactionId':
      return values.transactionId;
    case 'Id':
      return values.id;
    case 'VirtualHost':
      return values.vhost;
    case 'Application':
      return values.app;
    case 'SourceStream':
      return values.sourceStream;
    case 'Stream':
      return values.stream;
    case 'Sequence':
      return String(values.sequence);
    case 'StartTime':
      return formatTime(values.startTime, format ?? 'YYYYMMDDhhmmss');
    case 'EndTime':
      return values.endTime === null ? null : formatTime(values.endTime, format ?? 'YYYYMMDDhhmmss');
    default:
      return null;
  }
}

/** The folder and the possible names of a file by `template`, for any end time and number; null if the folder depends on the end time. */
export function namesOf(
  template: string,
  values: Omit<PathValues, 'endTime'>,
): { readonly folder: string; readonly pattern: RegExp } | null {
  // No path contains the character that replaces unknown values.
  const path = expandPath(template.replaceAll(END_TIME, '\0'), { ...values, endTime: 0 });
  const folder = dirname(path);
  if (folder.includes('\0')) return null;
  const extension = extname(path);
  const expressionOf = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&').replaceAll('\0', '.*');
  return { folder, pattern: new RegExp(`^${expressionOf(basename(path, extension))}(?:_\\d+)?${expressionOf(extension)}$`, 's') };
}

/**
 * The path of the file while it is recorded: `tmp_<task>_<name>` in the folder it is to have, or in the last one above that has no
 * end time in its name.
 */
export function temporaryPath(template: string, values: Omit<PathValues, 'endTime'>): string {
  const path = expandPath(template.replaceAll(END_TIME, '\0'), { ...values, endTime: null });
  let folder = dirname(path);
  while (folder.includes('\0')) folder = dirname(folder);
  const extension = extname(path).replaceAll('\0', '');
  // The part before the end time.
  const name = basename(path, extname(path))
    .replaceAll('\0', '')
    .replace(/[-_. ]+$/, '');
  const task = values.id.replaceAll(/[^\p{L}\p{N}_.-]/gu, '_').slice(0, MAX_TASK);
  return fitName(join(folder, `tmp_${task}_${name}${extension}`));
}

/** Local time by the letters `YYYY MM DD hh mm ss` in any arrangement; 0 is the epoch in UTC. */
function formatTime(time: number, format: string): string {
  const at = time === 0 ? new Date(new Date(0).getTimezoneOffset() * 60_000) : new Date(time);
  const two = (value: number): string => String(value).padStart(2, '0');
  return format
    .replaceAll('YYYY', String(at.getFullYear()).padStart(4, '0'))
    .replaceAll('MM', two(at.getMonth() + 1))
    .replaceAll('DD', two(at.getDate()))
    .replaceAll('hh', two(at.getHours()))
    .replaceAll('mm', two(at.getMinutes()))
    .replaceAll('ss', two(at.getSeconds()));
}

/** The absolute path of `path` below `root`. Throws `PathRefused` for a path that leads upwards. */
export function belowRoot(root: string, path: string): string {
  refuseStrange(path);
  return join(root, path);
}

/** The container by the extension of the path. */
export function containerOf(path: string): RecordContainerName {
  return extname(path).toLowerCase() === '.mp4' ? 'mp4' : 'ts';
}

/** Throws `PathRefused` for the extension of a container that is not written. */
export function refuseContainer(path: string): void {
  if (extname(path).toLowerCase() === UNWRITTEN)
    throw new PathRefused(`${JSON.stringify(path)} asks for WebM, which is not written: use .mp4 or .ts`);
}

/** `length` random letters and digits. */
export function randomName(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}
