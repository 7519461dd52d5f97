import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { KeyUses } from './key-uses.ts';

let stateFolder: string;
let times: Map<string, number>;
let logger: RecordingLogger;
const made = (): KeyUses => new KeyUses({ stateFolder, logger, times: () => times });
const file = (): string => join(stateFolder, 'key-uses.json');

beforeEach(() => {
  stateFolder = mkdtempSync(join(tmpdir(), 'millrace-key-uses-'));
  times = new Map();
  logger = new RecordingLogger();
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(stateFolder, { recursive: true, force: true });
});

test('times are restored, and nothing is written without a use', async () => {
  const first = made();
  expect(await first.load()).toEqual(new Map());
  await first.stop();
  expect(existsSync(file())).toBe(false);
  times.set('a', 1000).set('b', 2000);
  await first.stop();
  const second = made();
  expect(await second.load()).toEqual(new Map([...times]));
  const { mtimeNs, ino } = statSync(file(), { bigint: true });
  await second.stop();
  expect([statSync(file(), { bigint: true }).ino, statSync(file(), { bigint: true }).mtimeNs]).toEqual([ino, mtimeNs]);
  times.delete('b');
  await second.stop();
  expect(await made().load()).toEqual(new Map([['a', 1000]]));
  expect(logger.lines).toEqual([]);
});

test('a thousand uses are a write a minute', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const uses = made();
  const saved = vi.spyOn(uses, 'save');
  await uses.load();
  uses.start();
  uses.start();
  for (let use = 0; use < 1000; use += 1) {
    times.set('a', use);
    vi.advanceTimersByTime(60);
  }
  expect(saved).toHaveBeenCalledTimes(1);
  await saved.mock.results[0]?.value;
  expect(JSON.parse(readFileSync(file(), 'utf8'))).toEqual({ a: 999 });
  await uses.stop();
  vi.advanceTimersByTime(600_000);
  expect(saved).toHaveBeenCalledTimes(2);
});

test.each(['', '{"a":', 'null', '[]', '{"a":"soon","b":null}'])('a file with %j is read as empty, and rewritten', async (text) => {
  writeFileSync(file(), text);
  const uses = made();
  expect(await uses.load()).toEqual(new Map());
  times.set('a', 7);
  await uses.stop();
  expect(await made().load()).toEqual(times);
});

test('a start that fails before it has read the file leaves it alone', async () => {
  writeFileSync(file(), '{"a":1}');
  await made().stop();
  expect(readFileSync(file(), 'utf8')).toBe('{"a":1}');
});

test('an error of the disk is logged once', async () => {
  const uses = made();
  await uses.load();
  rmSync(stateFolder, { recursive: true });
  for (const time of [1, 2, 3]) {
    times.set('a', time);
    await uses.save();
  }
  expect(
    logger.lines.filter(({ message }) => message.startsWith('the times of the last uses of access keys cannot be saved: ')),
  ).toHaveLength(1);
});
