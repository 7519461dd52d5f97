/** Reads large configuration files of a running server in a thread of its own, because reading takes 0.3 ms for each thousand characters. */
import { statSync } from 'node:fs';
import { deserialize } from 'node:v8';
import { entryFile } from '../util/entry-file.ts';
import { inSlices } from '../util/in-slices.ts';
import type { LogLines } from '../util/logger.ts';
import { WorkThread, workOrHere } from '../util/work-thread.ts';
import { ConfigError, ConfigErrors, type ConfigWarning, type Place } from './problem.ts';
import type { Resource } from './resources.ts';
import { keySalt } from './schema/access-keys.ts';
import type { ApplicationConfig } from './schema/application.ts';
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

/** An application, with the places of objects inside. */
export interface ReadApplication {
  readonly resource: Resource<ApplicationConfig>;
  readonly places: ReadonlyMap<object, ObjectPlaces>;
}

/**
 * The answer of the thread: the configuration, or everything that is wrong. Objects of `places` are those of the configuration. The
 * applications of each virtual host are apart, each a `ReadApplication` in the form of `v8.serialize`: hundreds take long to read.
 */
export type ServerFileAnswer =
  | {
      readonly loaded: Omit<LoadedServer, 'placeOf'>;
      readonly places: ReadonlyMap<object, ObjectPlaces>;
      readonly applications: readonly (readonly Uint8Array[])[];
    }
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
  const { loaded } = answer;
  const places = new Map(answer.places);
  await inSlices(putBack(answer, places));
  const placeOf = (owner: object, key = ''): Place => {
    const found = places.get(owner);
    return found?.members[key] ?? found?.own ?? { path: 'Server', file };
  };
  return { ...loaded, placeOf };
}

/** Reads the applications into their virtual hosts, and the places inside them into `places`. */
function* putBack(
  { loaded: { config, virtualHosts }, applications }: Extract<ServerFileAnswer, { readonly loaded: unknown }>,
  places: Map<object, ObjectPlaces>,
): Iterable<void, void> {
  for (const [index, all] of applications.entries()) {
    const typed = config.virtualHosts[index]?.applications as ApplicationConfig[];
    const resources = virtualHosts[index]?.applications as Resource<ApplicationConfig>[];
    for (const bytes of all) {
      const read = deserialize(bytes) as ReadApplication;
      typed.push(read.resource.typed);
      resources.push(read.resource);
      for (const [owner, place] of read.places) places.set(owner, place);
      yield;
    }
  }
}

function errorOf({ message, ...place }: PlainProblem): ConfigError {
  return new ConfigError(message, place);
}

/** Bytes of the files that are there; a missing one is told by reading. */
function sizeOf(files: readonly string[]): number {
  return [...new Set(files)].reduce((sum, file) => sum + (statSync(file, { throwIfNoEntry: false })?.size ?? 0), 0);
}
