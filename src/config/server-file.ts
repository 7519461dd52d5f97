/** `Server.xml` and the files it includes to the typed tree of the server. */
import { globSync, readFileSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../util/message-of.ts';
import { type MacroSource, processMacros } from './macros.ts';
import { sharedMpegtsPort } from './mpegts-ports.ts';
import { ConfigError, ConfigErrors, type ConfigWarning, type Place } from './problem.ts';
import { type Echo, type EchoObject, readObject } from './reader.ts';
import { type ReadOptions, type VirtualHostResource, withApplications } from './resources.ts';
import { type ServerConfig, ServerSchema } from './schema/server.ts';
import type { Reading } from './source.ts';
import { parseXml, type XmlElement } from './xml.ts';
import { XmlSource } from './xml-source.ts';

/** How a configuration file is read. */
export interface FileOptions extends ReadOptions {
  /** Default: the environment of this process. */
  readonly macros?: MacroSource;
}

/** A configuration without errors, with which a server can be started. Warnings are for the log. */
export interface LoadedServer {
  readonly config: ServerConfig;
  /** In the order of the file. */
  readonly virtualHosts: readonly VirtualHostResource[];
  readonly warnings: readonly ConfigWarning[];
  /** The file and its included files, absolute paths. */
  readonly files: readonly string[];
  /** Where an object of `config`, or its member `key`, was read; the root for defaults. */
  readonly placeOf: (owner: object, key?: string) => Place;
}

const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** The configuration file that comes with the package. */
export const defaultServerFile: string = fileURLToPath(new URL('../../conf/Server.xml', import.meta.url));

/** Text of the configuration that is used when there is no file. */
export function defaultServerXml(): string {
  return readFileSync(defaultServerFile, 'utf8');
}

/**
 * Loads a configuration file. Relative paths in it start at its directory unless `options` says otherwise.
 * Throws `ConfigErrors` with everything that is wrong.
 */
export function loadServerConfig(file: string, options: FileOptions = {}): LoadedServer {
  return parseServerConfig(readText(file), file, { directory: dirname(resolve(file)), ...options });
}

/** Like `loadServerConfig`, for a text; `file` is its name in messages and where includes start. */
export function parseServerConfig(xml: string, file: string, options: FileOptions = {}): LoadedServer {
  const places = new WeakMap<object, Place>();
  const memberPlaces = new WeakMap<object, ReadonlyMap<string, Place>>();
  const reading: Reading = { errors: [], warnings: [], places, memberPlaces, macros: processMacros(), ...options };
  const root = orThrow(() => parseXml(xml, file));
  if (root.name !== 'Server') {
    throw new ConfigErrors([
      new ConfigError(`The root element must be <Server>, but is <${root.name}>`, { path: root.name, file, line: root.line }),
    ]);
  }
  const files = new Set([resolve(file)]);
  const include = (pattern: string, from: XmlElement): readonly XmlElement[] => {
    const found = includeFiles(pattern, from);
    for (const each of found) files.add(resolve(each.file));
    return found;
  };
  const { typed, echo } = readObject(ServerSchema, new XmlSource(root, 'Server', { reading, include }), reading);
  for (const problems of [reading.errors, reading.warnings]) problems.sort(byPlace(file));
  if (reading.errors.length > 0) throw new ConfigErrors(reading.errors, reading.warnings);
  const config = typed as ServerConfig;
  const users = config.virtualHosts.flatMap(({ name, applications }) => applications.map((each) => ({ vhost: name, config: each })));
  const shared = sharedMpegtsPort(users);
  if (shared !== null) {
    const place = places.get(shared.entry) ?? { path: 'Server/VirtualHosts', file };
    throw new ConfigErrors([new ConfigError(shared.message, place)], reading.warnings);
  }
  const echoes = echo['virtualHosts'] as Echo[] | undefined;
  const virtualHosts = config.virtualHosts.map((host, index) =>
    withApplications({ typed: host, echo: (echoes?.[index] ?? {}) as EchoObject }),
  );
  const placeOf = (owner: object, key = ''): Place => memberPlaces.get(owner)?.get(key) ?? places.get(owner) ?? { path: 'Server', file };
  return { config, virtualHosts, warnings: reading.warnings, files: [...files], placeOf };
}

/** Problems of the main file first, each file from top to bottom. */
function byPlace(main: string): (a: Place, b: Place) => number {
  const rank = ({ file }: Place) => (file === main ? '' : (file ?? ''));
  return (a, b) => rank(a).localeCompare(rank(b)) || (a.line ?? 0) - (b.line ?? 0);
}

function orThrow<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw error instanceof ConfigError ? new ConfigErrors([error]) : error;
  }
}

function readText(file: string): string {
  try {
    if (statSync(file).size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    const reason = messageOf(error);
    throw new ConfigErrors([new ConfigError(`The file cannot be read: ${reason}`, { path: '', file })]);
  }
}

function includeFiles(pattern: string, from: XmlElement): readonly XmlElement[] {
  const files = globSync(pattern, { cwd: dirname(resolve(from.file)) }).sort();
  return files.map((name) => {
    const file = resolve(dirname(resolve(from.file)), name);
    try {
      return parseXml(readText(file), file);
    } catch (error) {
      throw error instanceof ConfigErrors ? (error.errors[0] ?? error) : error;
    }
  });
}
