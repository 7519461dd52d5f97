import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { type Running, stopAll } from './running.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const wait = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

test('the last started part stops first without waiting, then the parts that keep files, and last the parts that all use', async () => {
  const told: string[] = [];
  const part = (name: string, ms: number, turn: Pick<Running, 'keeps' | 'last'> = {}): Running => ({
    ...turn,
    stop: async () => {
      told.push(name);
      await wait(ms);
      told.push(`${name} over`);
    },
  });
  const keeps = { keeps: true };
  const running = [
    part('lock', 1, { last: true }),
    part('store', 2, keeps),
    part('log', 1, keeps),
    part('recordings', 3000),
    part('receiver', 3200),
    part('door', 0),
  ];
  const stopped = stopAll(running, new RecordingLogger());
  expect(told).toEqual(['door', 'receiver', 'recordings']);
  await vi.advanceTimersByTimeAsync(3203);
  await stopped;
  expect(told.slice(3, 8)).toEqual(['door over', 'recordings over', 'receiver over', 'log', 'store']);
  expect(told.slice(8)).toEqual(['log over', 'store over', 'lock', 'lock over']);
  expect(running).toEqual([]);
});

test('a part that fails to stop, at once or later, does not keep the others running', async () => {
  const logger = new RecordingLogger();
  const stop = vi.fn(async () => undefined);
  const atOnce = (): Promise<void> => {
    throw new Error('at once');
  };
  const later = async (): Promise<void> => {
    await wait(1);
    throw new Error('later');
  };
  const stopped = stopAll([{ keeps: true, stop }, { stop }, { stop: atOnce }, { stop: later }], logger);
  await vi.advanceTimersByTimeAsync(2);
  await stopped;
  expect(stop).toHaveBeenCalledTimes(2);
  expect(logger.lines.map(({ level }) => level)).toEqual(['error', 'error']);
});

test('a part that never stops is left after 3.5 s, and parts with files are stopped nevertheless', async () => {
  const logger = new RecordingLogger();
  const stop = vi.fn(async () => undefined);
  const stopped = stopAll([{ keeps: true, stop }, { stop: () => new Promise(() => undefined) }], logger);
  await vi.advanceTimersByTimeAsync(3499);
  expect(stop).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(2);
  await stopped;
  expect(stop).toHaveBeenCalledOnce();
  expect(logger.lines.map(({ fields }) => fields)).toEqual([{ parts: 1 }]);
});
