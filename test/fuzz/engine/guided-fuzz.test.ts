import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { coverage } from './coverage.ts';
import { type GuidedResult, guidedFuzz } from './guided-fuzz.ts';
import { guidedProcess } from './guided-process.ts';
import { loadInstrumented } from './load-instrumented.ts';

/** Far longer than any run takes: each ends with its finding. */
const LONG_MS = 45_000;

interface Parser {
  parse(input: Uint8Array): number;
}

async function fuzzed(source: string, seed: Uint8Array, milliseconds = LONG_MS): Promise<GuidedResult> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-guided-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { parse } = await loadInstrumented<Parser>(source);
  const target: FuzzTarget = {
    name: 'test',
    seeds: () => [seed],
    run: (input) => parse(input),
    expects: (error) => error instanceof SyntaxError,
  };
  const limit = Error.stackTraceLimit;
  onTestFinished(() => {
    Error.stackTraceLimit = limit;
  });
  return await guidedFuzz(target, coverage(), {
    milliseconds,
    seed: 1,
    inputFile: openSync(path.join(folder, 'input'), 'w+'),
    keeps: 'nothing',
  });
}

describe('fuzzing by coverage', () => {
  test('finds an error behind nested conditions', async () => {
    const nested = `export function parse(d) {
      if (d[0] === 0x9a) if (d[1] === 0x3c) if (d[2] === 0xe1) if (d[3] === 0x77) if (d[4] === 0x05) throw new RangeError('found');
      return 0;
    }`;
    await expect(fuzzed(nested, Buffer.alloc(8))).rejects.toThrow(/found[\s\S]*corpus line: 9a3ce17705/);
  });

  test('finds a number of the wire by the constant it is compared with', async () => {
    const magic = `const MAGIC = 0x4a17c2d9;
    export function parse(d) {
      if (d.length >= 4 && d.readUInt32BE(0) === MAGIC) throw new RangeError('found');
      return 0;
    }`;
    await expect(fuzzed(magic, Buffer.alloc(8))).rejects.toThrow(/found[\s\S]*corpus line: 4a17c2d9/);
  });

  test('finds a large allocation that a few bytes cause', async () => {
    const allocating = 'export const parse = (d) => d.length < 4 ? 0 : Buffer.alloc(d.readUInt32BE(0) & 0x3ffffff).length & 1;';
    await expect(fuzzed(allocating, Buffer.alloc(8))).rejects.toThrow(/bytes were asked for by/);
  });

  test('finds work out of proportion to the length, without using the clock', async () => {
    const slow = `export function parse(d) {
      let n = 0;
      if (d.length >= 4) for (let left = d.readUInt32BE(0) & 0xfffff; left > 0; left -= 1) n ^= left;
      return n & 1;
    }`;
    await expect(fuzzed(slow, Buffer.alloc(8))).rejects.toThrow(/blocks ran for/);
  });

  test('continues after expected errors', async () => {
    const refusing = 'export function parse(d) { if (d[0] > 0) throw new SyntaxError("no"); return 0; }';
    const result = await fuzzed(refusing, Buffer.alloc(8), 300);
    expect(result.executions).toBeGreaterThan(100);
    expect(result.blocks).toBeGreaterThan(1);
  });

  test('runs a target in a separate process', async () => {
    const result = await guidedProcess('rtp-packet', { milliseconds: 300, seed: 1, keeps: 'nothing' });
    expect(result.executions).toBeGreaterThan(100);
    expect(result.blocks).toBeGreaterThan(10);
  });

  test('refuses an unknown target', async () => {
    await expect(guidedProcess('nothing', { milliseconds: 1, seed: 1, keeps: 'nothing' })).rejects.toThrow('no target');
  });
});
