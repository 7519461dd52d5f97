import { describe, expect, test } from 'vitest';
import { coverage } from './coverage.ts';
import { instrument } from './instrument.ts';
import { loadInstrumented } from './load-instrumented.ts';

const cover = coverage();

const SAME: readonly [name: string, source: string, expected: unknown][] = [
  ['branches without braces', 'const f = (a) => { if (a > 1) return 1; else if (a > 0) return 2; return 3; };', [3, 2, 1]],
  ['an if inside an if', 'function f(a) { if (a > 0) if (a > 1) return 2; else return 1; return 0; }', [0, 1, 2]],
  ['an arrow that returns an object', 'const f = (a) => ({ a });', [{ a: 0 }, { a: 1 }, { a: 2 }]],
  ['conditions in conditions', 'const f = (a) => a === 0 ? "x" : a === 1 ? "y" : "z";', ['x', 'y', 'z']],
  ['right sides of logic', 'const f = (a) => (a || 7) && (a ?? 1) + 1;', [1, 2, 3]],
  ['switches', 'function f(a) { switch (a) { case 0: case 1: { return "low"; } default: return "high"; } }', ['low', 'low', 'high']],
  [
    'loops',
    'function f(a) { let n = 0; for (let i = 0; i < a; i += 1) n += i + 1; while (n > 9) n -= 1; do n += 1; while (n < 0); return n; }',
    [1, 2, 4],
  ],
  ['defaults', 'function f(a, { b = a * 2, c = () => b } = {}) { return c(); }', [0, 2, 4]],
  ['classes', 'class A { #n; constructor(n) { this.#n = n; } get n() { return this.#n; } } const f = (a) => new A(a).n;', [0, 1, 2]],
  ['caught exceptions', 'function f(a) { try { if (a) throw a; return "no"; } catch (e) { return e; } }', ['no', 1, 2]],
  ['memory', 'const f = (a) => new Uint8Array(a).length + Buffer.alloc(a).length + Buffer.concat([Buffer.alloc(a)]).length;', [0, 3, 6]],
];

describe('instrumented code', () => {
  test.each(SAME)('does the same: %s', async (_, source, expected) => {
    const { f } = await loadInstrumented<{ f: (value: number) => unknown }>(`${source}\nexport { f };`);
    expect([0, 1, 2].map((value) => f(value))).toEqual(expected);
  });

  test('counts each executed branch', async () => {
    const { f } = await loadInstrumented<{ f: (value: number) => number }>(
      'export function f(n) { if (n > 1) return 1; for (let i = 0; i < 5; i += 1) n += i; return n; }',
    );
    const file = cover.files.at(-1)!;
    const counts = (): number[] => [...cover.counts.subarray(file.firstCounter, file.firstCounter + file.counters)];
    cover.reset();
    f(2);
    expect(counts().sort()).toEqual([0, 0, 1, 1]);
    cover.reset();
    f(0);
    expect(counts().sort()).toEqual([0, 1, 1, 5]);
  });

  test('counts the allocated bytes', async () => {
    const { f } = await loadInstrumented<{ f: (n: number) => unknown }>(
      'export const f = (n) => [new Uint8Array(n), Buffer.allocUnsafe(n)];',
    );
    cover.reset();
    f(1000);
    expect(cover.allocated).toBeGreaterThanOrEqual(2000);
  });

  test('keeps its lines, so that stack traces are right', () => {
    const source = 'const a = 1;\nif (a === 1)\n  a.b.c;\n';
    expect(instrument(source, 0).code.split('\n')).toHaveLength(source.split('\n').length);
  });

  test('collects the constants of comparisons and of the source', () => {
    const { constants } = instrument('const T = { A: 0x4a17, b: "OpusHead" }; export const f = (x) => x === 96 || x > -5 || T[x];', 0);
    expect(constants).toEqual(expect.arrayContaining([0x4a17, 'OpusHead', 96]));
  });
});
