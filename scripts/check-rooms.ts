/**
 * Holds the order of the rooms of `src/` (`docs/design.md`, *Rooms*): a room imports itself and the rooms above it in the table, `config/` of
 * them only `util/`, `client/` none, a service never imports another service, and `wire/` opens no socket and keeps no time. What HLS runs in different threads meets in one folder only.
 * Part of `npm run check`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folders and files of `src/`, each may import those before it. */
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
  'server.ts',
  'index.ts',
  'client',
  'ctl',
  'program',
  'main.ts',
  'console',
];

/**
/**
 * Rooms that import less than those above them: a configuration is read whatever carries media, and services read their own options; pages are
 * texts that know nothing of the server, and the client and the console run in browsers.
 */
const ONLY: Readonly<Record<string, readonly string[]>> = {
  config: ['util'],
  pages: [],
  client: [],
  ctl: ['util', 'config', 'state', 'client'],
  console: ['client'],
};

/** What `wire/` may not touch: it maps bytes to objects and back, whoever carries them. */
const FORBIDDEN_IN_WIRE = [
  // Whether a text is an IP address is no matter of sockets.
  /from 'node:(dgram|https?|http2|tls|timers|fs|os|child_process|worker_threads)|(?<!isIP\w* )\} from 'node:net/,
  /\bset(Timeout|Interval|Immediate)\(/,
  /util\/(logger|clock)\.ts'/,
];

/**
 * Folders of `services/hls/`, each with those it may import besides itself: `view` runs in a delivery thread, `wire` there and in the main
 * thread, the others in the main thread.
 */
const HLS_FOLDERS: Readonly<Record<string, readonly string[]>> = {
  wire: [],
  view: ['wire'],
  dvr: [],
  packager: ['wire', 'dvr'],
  dump: ['wire', 'packager'],
};

const SRC = path.join(path.dirname(path.dirname(fileURLToPath(import.meta.url))), 'src');
const IMPORT = /(?:from|import)\s*\(?\s*'(\.\.?\/[^']+)'/g;

/** Path of every source file under a folder, relative to `src/`; tests may import what they like. */
function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /\.(ts|js)$/.test(file) && !/\.test\.ts$/.test(file));
}

function roomOf(file: string): number {
  const [first = ''] = file.split(path.sep);
  return ROOMS.indexOf(first);
}

function serviceOf(file: string): string | undefined {
  const [room, service] = file.split(path.sep);
  // What lies beside the services is for all of them.
  return room === 'services' && service?.endsWith('.ts') !== true ? service : undefined;
}

/** The folder of the HLS service that a file is in; null for other files. */
function hlsFolderOf(file: string): string | null {
  const [room, service, folder = ''] = file.split(path.sep);
  return room === 'services' && service === 'hls' && folder in HLS_FOLDERS ? folder : null;
}

/** One sentence for each rule that a file breaks. */
function problemsOf(file: string): string[] {
  const text = readFileSync(path.join(SRC, file), 'utf8');
  const room = roomOf(file);
  if (room < 0) return [`${file}: not in a room of the table`];
  const problems: string[] = [];
  for (const [, specifier = ''] of text.matchAll(IMPORT)) {
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
  if (ROOMS[room] === 'wire' && FORBIDDEN_IN_WIRE.some((pattern) => pattern.test(text))) {
    problems.push(`${file}: 'wire' may not use sockets, files, threads, timers, logs, clocks or the machine`);
  }
  if (ROOMS[room] === 'client' && /(?:from|import)\s*\(?\s*'[^.]/.test(text)) {
    problems.push(`${file}: 'client' may use no package and nothing of Node.js: browsers load it as it is`);
  }
  return problems;
}

const problems = sources(SRC).flatMap(problemsOf);
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
