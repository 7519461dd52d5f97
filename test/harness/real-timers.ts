/** Runs before each file of those that share a process: timers that a file before left faked make later ones wait for ever, far from the cause. */
const KEY = Symbol.for('millrace.real-timers');
const shared = globalThis as { [KEY]?: readonly unknown[] };
const now = [setTimeout, setInterval, setImmediate, Date];
shared[KEY] ??= now;
if (now.some((one, at) => one !== shared[KEY]?.[at])) throw new Error('a file that ran before in this process left timers faked');
