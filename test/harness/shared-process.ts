/**
 * Runs around each file of a shared process. A file that leaves the process changed fails, and the change is undone: a faked timer would
 * make hundreds of later files hang.
 */
import { afterAll, vi } from 'vitest';

/** The state of the process before its first file. */
interface Before {
  readonly globals: Readonly<Record<string, unknown>>;
  readonly now: () => number;
  readonly variables: NodeJS.ProcessEnv;
  readonly folder: string;
}

const KEY = Symbol.for('millrace.shared-process');
const shared = globalThis as typeof globalThis & { [KEY]?: Before };

shared[KEY] ??= {
  globals: {
    ...{ setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, queueMicrotask },
    ...{ Date, Promise, performance, fetch, WebSocket, document: undefined, window: undefined },
  },
  now: performance.now,
  variables: { ...process.env },
  folder: process.cwd(),
};
const before = shared[KEY];

afterAll(() => {
  const left = changes();
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  for (const change of changes()) change.undo();
  if (left.length > 0) throw new Error(`this file leaves its process changed: ${left.map(({ name }) => name).join(', ')}`);
});

function changes(): { readonly name: string; readonly undo: () => void }[] {
  const found: { name: string; undo: () => void }[] = [];
  for (const [name, value] of Object.entries(before.globals)) {
    if (Reflect.get(globalThis, name) !== value) found.push({ name, undo: () => Reflect.set(globalThis, name, value) });
  }
  if (performance.now !== before.now) found.push({ name: 'performance.now', undo: () => Reflect.set(performance, 'now', before.now) });
  for (const name of new Set([...Object.keys(before.variables), ...Object.keys(process.env)])) {
    // The runner changes its own variables from file to file.
    if (name.startsWith('VITEST')) continue;
    const value = before.variables[name];
    if (process.env[name] !== value) {
      const undo = (): void => void (value === undefined ? delete process.env[name] : Object.assign(process.env, { [name]: value }));
      found.push({ name: `process.env.${name}`, undo });
    }
  }
  if (process.cwd() !== before.folder) found.push({ name: 'its folder', undo: () => process.chdir(before.folder) });
  return found;
}
