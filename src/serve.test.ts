import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { serve } from './serve.ts';

/** What the threads that `serve` starts are to do. */
const threads = vi.hoisted((): string[] => []);

vi.mock('node:worker_threads', () => ({
  Worker: class {
    constructor(code: string) {
      threads.push(code);
    }
  },
}));
vi.mock('./server.ts', () => ({
  ConfigProblem: class extends Error {},
  // A server that never stops.
  MillraceServer: { start: async () => ({ banner: '', stop: () => new Promise<void>(() => undefined) }) },
}));

const handlers = new Map<string | symbol, (signal: string) => void>();

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(process, 'on').mockImplementation((name, handler) => {
    handlers.set(name, handler);
    return process;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test('a stop that takes too long is cut short, and nothing is written then', async () => {
  // It writes what was compiled, which takes a second.
  const exit = vi.spyOn(process, 'exit').mockReturnValue(undefined as never);
  void serve({ command: 'serve', config: undefined, state: 'none', logFormat: 'json', logLevel: 'silent' });
  await vi.waitFor(() => expect(handlers.has('SIGTERM')).toBe(true));
  handlers.get('SIGTERM')?.('SIGTERM');
  await vi.advanceTimersByTimeAsync(4999);
  expect(threads).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(threads).toEqual([expect.stringContaining('SIGKILL')]);
  expect(exit).not.toHaveBeenCalled();
});
