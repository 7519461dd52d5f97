/** Reads large configuration files of a running server in a thread of its own, because reading takes 0.3 ms for each thousand characters. */
import { statSync } from 'node:fs';
import { entryFile } from '../util/entry-file.ts';
import type { LogLines } from '../util/logger.ts';
import { WorkThread, workOrHere } from '../util/work-thread.ts';
import { ConfigError, ConfigErrors, type ConfigWarning, type Place } from './problem.ts';
import { keySalt } from './schema/access-keys.ts';
import { type LoadedServer, loadServerConfig } from './server-file.ts';

/** Bytes of the file and its includes together. Less is read faster than a thread starts. */
const LARGE = 32 * 1024;
/** Five hundred applications take half a second, on a machine that has nothing else to do. */
const DEADLINE_MS = 60_000;
const IDLE_MS = 2000;
const ENTRY = entryFile('./server-file-worker', import.meta.url);

/** The file that the thread is to read. */
export interface ServerFileJob {
  readonly file: string;
  /** Keys are hashed with it. */
  readonly keySalt: string;
}

/** Where an object of the configuration was read, and its members by their keys. */
export interface ObjectPlaces {
  readonly own: Place;
  readonly members: Readonly<Record<string, Place>>;
}

/** A problem as it crosses to another thread. */
type PlainProblem = ConfigWarning;

/** The answer of the thread: the configuration, or everything that is wrong. Objects of `places` are those of the configuration. */
export type ServerFileAnswer =
  | { readonly loaded: Omit<LoadedServer, 'placeOf'>; readonly places: ReadonlyMap<object, ObjectPlaces> }
  | { readonly errors: readonly PlainProblem[]; readonly warnings: readonly PlainProblem[] };

/** Reads files of configurations. */
export type ServerFileThread = Pick<WorkThread<ServerFileJob, ServerFileAnswer>, 'run'>;

const shared: ServerFileThread = new WorkThread({ entry: ENTRY, name: 'configuration', deadline: DEADLINE_MS, idle: IDLE_MS });

/**
 * Like `loadServerConfig`, for a running server. `known`: the files that the configuration had when it was read last; their size decides
 * where it is read. `placeOf` knows the objects outside of applications, and their MPEG-TS streams; of others it has the root only.
 * `thread` is for tests.
 */
export async function reloadServerConfig(
  file: string,
  known: readonly string[],
  logger: Pick<LogLines, 'warn'>,
  thread = shared,
): Promise<LoadedServer> {
  if (sizeOf([file, ...known]) < LARGE) return loadServerConfig(file);
  let answer: ServerFileAnswer | null;
  try {
    answer = await workOrHere(thread, { file, keySalt: keySalt() }, { file, here: () => null, logger });
  } catch (error) {
    const { message } = error as Error;
    throw new ConfigErrors([new ConfigError(`The file cannot be read: ${message}`, { path: '', file })]);
  }
  if (answer === null) return loadServerConfig(file);
  if ('errors' in answer) throw new ConfigErrors(answer.errors.map(errorOf), answer.warnings);
  const { loaded, places } = answer;
  const placeOf = (owner: object, key = ''): Place => {
    const found = places.get(owner);
    return found?.members[key] ?? found?.own ?? { path: 'Server', file };
  };
  return { ...loaded, placeOf };
}

function errorOf({ message, ...place }: PlainProblem): ConfigError {
  return new ConfigError(message, place);
}

/** Bytes of the files that are there; a missing one is told by reading. */
function sizeOf(files: readonly string[]): number {
  return [...new Set(files)].reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
}
