/** Runs before each file of those that share a process: with timers that a file before left faked, later ones would wait for ever, far from the cause. */
import { vi } from 'vitest';

const KEY = Symbol.for('millrace.real-timers');
const shared = globalThis as { [KEY]?: object };

vi.useRealTimers();
shared[KEY] ??= { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, Date };
Object.assign(globalThis, shared[KEY]);
