/**
 * Enforces the order of the rooms of `src/` (`docs/design.md`, *Rooms*). A room imports itself and the rooms above it in the table, except
 * that `config/` imports only `util/`, `client/` nothing, a service no other service, and `wire/` neither sockets nor time. The threads of
 * HLS share one folder only, and code that runs outside the main thread loads nothing of it. Part of `npm run check`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { tokenizer } from 'acorn';

/** Folders and files of `src/` in order: each may import the earlier ones. */
const ROOMS: readonly string[] = [
  'util',
  'media',
  'codecs',
  'containers',
  'playlist',
  'wire',
  'config',
  'state',
  'core',
  'cluster',
  'access',
  'transcoder',
  'native',
  'transport',
  'pages',
  'ingest',
  'playout',
  'delivery',
  'services',
  'delivery-views.ts',
  'delivery-worker.ts',
  'monitoring',
  'hooks',
  'findings',
  'api',
  'reload',
  'server',
  'server.ts',
  'index.ts',
  'client',
  'ctl',
  'program',
  'main.ts',
  'console',
];

/**
 * Rooms that import less than the rooms above them. A configuration does not depend on the protocols, and services read their own options;
 * pages are texts; the client and the console run in browsers.
 */
const ONLY: Readonly<Record<string, readonly string[]>> = {
  config: ['util'],
  pages: [],
  client: [],
  ctl: ['util', 'config', 'state', 'client'],
  console: ['client'],
};

/** Modules of Node.js that `wire/` may import: none that opens, waits or keeps time, because `wire/` maps bytes to objects and back. */
const NODE_IN_WIRE = ['node:crypto', 'node:zlib'];
/** Files of `util/` that `wire/` may import: none of them knows a clock, a log or a file. */
const UTIL_IN_WIRE = [
  ...['address-bytes', 'address-rate-limiter', 'bit-reader', 'byte-writer', 'client-address', 'guarded', 'hidden-characters'],
  ...['keyed-hash', 'protocol-error', 'slab', 'token-bucket', 'wrong-protocol'],
];
/** Checks of IP addresses need no socket. */
const IP_ADDRESSES = /^import \{ (?:isIP(?:v4|v6)?(?:, )?)+ \} from 'node:net';$/gm;
/** Globals that `wire/` may not name. Searched in the words of a file, without its comments and texts. */
const FORBIDDEN_IN_WIRE = [
  ...[/\b(?:set|clear)(?:Timeout|Interval|Immediate)\b/, /\b(?:queueMicrotask|AbortSignal|performance|process|console)\b/],
  ...[/\b(?:fetch|WebSocket|EventSource|XMLHttpRequest|BroadcastChannel|MessageChannel|Worker|navigator)\b/],
  ...[/\b(?:require|globalThis|global|eval|Function|Atomics)\b/],
  // A date of a peer is one, and its type; what time it is now is not.
  ...[/(?<!\bnew|\binstanceof|:|\|) Date\b/, /\bnew Date\b(?! \( (?!\)))/, /\bDate (?:\??\.|\[ (?!\]))/],
].map((pattern) => new RegExp(`(?<!\\. )${pattern.source}`));

/**
 * Folders of `services/hls/`, each with the folders that it may import besides itself: `view` runs in a delivery thread, `wire` there and
 * in the main thread, the others in the main thread.
 */
const HLS_FOLDERS: Readonly<Record<string, readonly string[]>> = {
  wire: [],
  view: ['wire'],
  dvr: [],
  packager: ['wire', 'dvr'],
  dump: ['wire', 'packager'],
};

/** The file of `services/` that is in no service's folder: what every service is. */
const BESIDE_SERVICES = 'service.ts';

/**
 * Code that runs outside the main thread, by its first file, with everything that it may load there. Types are never loaded. `*` is one
 * folder or file.
 */
const APART: Readonly<Record<string, readonly string[]>> = {
  'delivery-worker.ts': [
    ...['util', 'media', 'playlist', 'wire', 'access', 'pages', 'native/addon.ts', 'transport/proxy', 'transport/tcp'],
    ...['delivery-views.ts', 'delivery/http', 'delivery/thread', 'delivery/feed', 'delivery/tls', 'delivery/*.ts'],
    ...['services/*/view', 'services/*/wire'],
    // Files of names and texts shared by all threads.
    ...['core/drain.ts', 'core/host-name-table.ts', 'core/kinds.ts', 'core/stream-address.ts', 'core/unknown-stream.ts'],
  ],
  'transcoder/process/child.ts': ['util', 'media', 'codecs', 'transcoder', 'core/transcoding.ts'],
  'services/record/mp4-finaliser-worker.ts': ['util', 'media', 'codecs', 'containers', 'services/record'],
  'config/server-file-worker.ts': ['util', 'config'],
  'config/xml-worker.ts': ['util', 'config'],
  'services/schedule/definition-worker.ts': ['util', 'config', 'services/schedule', 'core/pull.ts', 'core/stream-address.ts'],
};

/** Never loaded by the main thread, except that without delivery threads it imports `delivery-views.ts` at run time. */
const NEVER_ON_MAIN = ['delivery/http', 'delivery/thread', 'services/*/view', 'transcoder/process'];

const SRC = path.join(path.dirname(path.dirname(fileURLToPath(import.meta.url))), 'src');
/** Ends words after which a text is the name of a file. */
const ASKS_FOR_FILE = / (?:from|import|(?<!\. )(?:import|require) \()(?: `)? $/;
/** Asks for a file whose name is made at run time: no rule can tell which. */
const MADE_UP_IMPORT = /(?<!\. )\bimport \( (?!'' |` '' ` )/;
/** Statements that load a file; `import type` is removed before anything runs. */
const LOADED = /^(?:import|export) (?!type )(?:[^';]*\bfrom )?'(\.\.?\/[^']+)'/gm;

/** Paths of all source files in a folder, relative to `src/`; tests may import anything. */
function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /\.(ts|js)$/.test(file) && !/\.test\.ts$/.test(file));
}

function roomOf(file: string): number {
  const [first = ''] = file.split(path.sep);
  return ROOMS.indexOf(first);
}

/** The service that a file is of; undefined for files of other rooms and for the one beside the services, which is for all of them. */
function serviceOf(file: string): string | undefined {
  const [room, service] = file.split(path.sep);
  return room === 'services' && service !== BESIDE_SERVICES ? service : undefined;
}

/** Whether a file is in no folder of `services/`, or in none that the service of HLS has. */
function isHomeless(file: string): boolean {
  const [room, service = '', folder = '', ...rest] = file.split(path.sep);
  if (room !== 'services') return false;
  if (folder === '') return service !== BESIDE_SERVICES;
  return service === 'hls' && rest.length > 0 && !(folder in HLS_FOLDERS);
}

/** The folder of the HLS service that a file is in; null for other files. */
function hlsFolderOf(file: string): string | null {
  const [room, service, folder = ''] = file.split(path.sep);
  return room === 'services' && service === 'hls' && folder in HLS_FOLDERS ? folder : null;
}

/** Whether a file is in the list, or in a listed folder. */
function isAmong(file: string, places: readonly string[]): boolean {
  return places.some((place) => {
    const steps = file.split(path.sep).slice(0, place.split('/').length);
    return place.split('/').every((part, n) => (part.startsWith('*') ? steps[n]?.endsWith(part.slice(1)) === true : part === steps[n]));
  });
}

/** Imported and required files of a source text, and its words with a space after each: a text is `''`, a comment nothing. */
function wordsOf(text: string): { readonly imported: readonly string[]; readonly words: string } {
  const imported: string[] = [];
  let words = ' ';
  for (const { type, start, end } of tokenizer(text, { ecmaVersion: 'latest', sourceType: 'module' })) {
    const word = text.slice(start, end);
    const isString = type.label === 'string';
    const isWhole = isString || (type.label === 'template' && text[end] === '`');
    if (isWhole && ASKS_FOR_FILE.test(words.slice(-20))) imported.push(isString ? word.slice(1, -1) : word);
    words += isString || type.label === 'template' ? "'' " : `${word} `;
  }
  return { imported, words };
}

/** Whether a text of `wire/` has what it may not. */
function isMoreThanBytes(text: string): boolean {
  const { imported, words } = wordsOf(text.replaceAll(IP_ADDRESSES, ''));
  const isForeign = (name: string): boolean => {
    const helper = /\/util\/(.+)\.\w+$/.exec(name)?.[1];
    return helper === undefined ? !name.startsWith('.') && !NODE_IN_WIRE.includes(name) : !UTIL_IN_WIRE.includes(helper);
  };
  return imported.some(isForeign) || FORBIDDEN_IN_WIRE.some((pattern) => pattern.test(words));
}

/** One sentence for each rule that a file (its path below `src/`) with this text breaks. */
export function problemsOf(file: string, text: string): string[] {
  const room = roomOf(file);
  if (room < 0) return [`${file}: not in a room of the table`];
  const problems: string[] = [];
  if (isHomeless(file)) problems.push(`${file}: in no folder of a service that the check knows`);
  const { imported: all, words } = wordsOf(text);
  if (MADE_UP_IMPORT.test(words)) problems.push(`${file}: imports a file whose name is made at run time`);
  for (const specifier of all.filter((name) => name.startsWith('.'))) {
    const imported = path.join(path.dirname(file), specifier);
    const [own = '', other = ''] = [ROOMS[room], ROOMS[roomOf(imported)]];
    if (roomOf(imported) > room || (own !== other && ONLY[own]?.includes(other) === false)) {
      problems.push(`${file}: '${own}' may not import '${imported}'`);
    }
    const [from, to] = [serviceOf(file), serviceOf(imported)];
    if (from !== undefined && to !== undefined && from !== to) problems.push(`${file}: service '${from}' may not import '${imported}'`);
    const [part, otherPart] = [hlsFolderOf(file), hlsFolderOf(imported)];
    if (part !== null && otherPart !== null && part !== otherPart && HLS_FOLDERS[part]?.includes(otherPart) !== true) {
      problems.push(`${file}: '${part}' of HLS may not import '${imported}'`);
    }
  }
  if (ROOMS[room] === 'wire' && isMoreThanBytes(text)) {
    problems.push(`${file}: 'wire' may not use sockets, files, threads, timers, logs, clocks, packages or the machine`);
  }
  if (ROOMS[room] === 'client' && all.some((name) => !name.startsWith('.'))) {
    problems.push(`${file}: 'client' may use no package and nothing of Node.js: browsers load it as it is`);
  }
  return problems;
}

/** Files that a file loads, by its text, without types and imports at run time. */
function loadedBy(file: string, text: string): string[] {
  return [...text.matchAll(LOADED)].map(([, specifier = '']) => path.join(path.dirname(file), specifier));
}

/** Everything that is loaded with a file, each with the first file that imported it. */
function loadedWith(entry: string, textOf: (file: string) => string): Map<string, string> {
  const found = new Map([[entry, '']]);
  for (const file of found.keys()) {
    for (const loaded of loadedBy(file, textOf(file))) if (!found.has(loaded)) found.set(loaded, file);
  }
  return found;
}

/** One sentence for each file that is loaded where it must not run. */
export function strayed(textOf: (file: string) => string): string[] {
  const problems: string[] = [];
  for (const [entry, places] of Object.entries(APART)) {
    for (const [file, by] of loadedWith(entry, textOf)) {
      if (file !== entry && !isAmong(file, places)) problems.push(`${by}: '${entry}' may not load '${file}'`);
    }
  }
  for (const [file, by] of loadedWith('server.ts', textOf)) {
    if (isAmong(file, NEVER_ON_MAIN)) problems.push(`${by}: the main thread may not load '${file}'`);
  }
  return problems;
}

if (import.meta.main) {
  const textOf = (file: string): string => readFileSync(path.join(SRC, file), 'utf8');
  const problems = [...sources(SRC).flatMap((file) => problemsOf(file, textOf(file))), ...strayed(textOf)];
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}
