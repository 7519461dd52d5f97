import { isDeepStrictEqual } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ReadClient, ReadSockets, socketEvents } from '../../../test/fakes/read-sockets.ts';
import { until } from '../../../test/harness/poll.ts';
import { loadAddon } from '../addon.ts';
import { Rest } from './socket-reader.ts';

const { addon: built } = loadAddon();

describe.each([
  { name: 'with the addon', addon: built },
  { name: 'without the addon', addon: null },
])('a socket reader $name, whose further data can wait for a short time', ({ addon }) => {
  let sockets: ReadSockets;

  /** Sweeps come when the test says so. */
  beforeEach(() => {
    sockets = new ReadSockets(addon);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
    sockets.close();
  });
  /** A beat is 25 ms, and its timer may be early by one. */
  const sweep = (): unknown => vi.advanceTimersByTime(26);
  /** For sweeps of all, the last reads were not just now. */
  const later = (): void => {
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 150);
  };

  /** `expect.poll` advances the clock of the sweeps. */
  const seen = <T>(look: () => T, wanted: T) => until(`${JSON.stringify(wanted)}`, () => isDeepStrictEqual(look(), wanted), { everyMs: 5 });

  async function heard({ client, bytes }: ReadClient, word: string): Promise<void> {
    client.write(word);
    await until(`'${word}' is heard`, () => bytes().toString().endsWith(word), { everyMs: 5 });
  }

  /** This many connections, which have sent `first` and were read. */
  async function connected(count: number): Promise<ReadClient[]> {
    await sockets.listen();
    sockets.rest = Rest.SHORT;
    const all: ReadClient[] = [];
    for (let index = 0; index < count; index += 1) {
      const next = await sockets.connect();
      await heard(next, 'first');
      all.push(next);
    }
    // The first ones began before there were enough of them.
    for (const { client } of all) client.write('second');
    const done = (): boolean => all.every(({ bytes }) => bytes().toString() === 'firstsecond');
    await until('data of all sockets again', () => sweep() && done(), { everyMs: 5 });
    return all;
  }

  const five = (text: string): string[] => Array.from({ length: 5 }, () => text);
  const texts = (all: readonly ReadClient[]): string[] => all.map(({ bytes }) => bytes().toString().replace('firstsecond', ''));

  it.skipIf(addon === null)('reads five sockets in each sweep, and none in between', async () => {
    const all = await connected(5);
    for (const round of [1, 2, 3]) {
      const before = texts(all);
      for (const { client } of all) client.write(`${round}`);
      await sockets.others();
      expect(texts(all)).toEqual(before);
      sweep();
      await seen(
        () => texts(all),
        before.map((text) => `${text}${round}`),
      );
      // Nothing has arrived: the sockets are waited for again. On a slow machine this sweep takes several turns.
      sweep();
      await sockets.others();
    }
  });

  it.each(addon === null ? [1, 5] : [1, 4])('reads %i sockets immediately', async (count) => {
    const all = await connected(count);
    for (const each of all) for (const word of ['a', 'b', 'c']) await heard(each, word);
    expect(vi.getTimerCount()).toBe(0);
  });

  it.skipIf(addon === null)('ends the rest of one socket at once, and leaves the others', async () => {
    const all = await connected(6);
    for (const { client } of all) client.write('later');
    await sockets.others();
    expect(texts(all)).toEqual(['', ...five('')]);
    sockets.rest = Rest.NONE;
    sockets.reader.endRest(all[0]!.socket);
    await seen(() => texts(all), ['later', ...five('')]);
    await heard(all[0]!, 'now');
    expect(texts(all)).toEqual(['laternow', ...five('')]);
    sweep();
    await seen(() => texts(all), ['laternow', ...five('later')]);
    // All are read as they come now, and there is nothing to sweep.
    expect(vi.getTimerCount()).toBe(0);
    for (const each of all) await heard(each, 'again');
  });

  it.skipIf(addon === null)('keeps sockets at rest until the next sweep of all, or for a short time, as each callback asks', async () => {
    const all = await connected(5);
    const say = (word: string): void => {
      for (const { client } of all) client.write(word);
    };
    sockets.rest = Rest.LONG;
    say('1');
    await sockets.others();
    sweep();
    await seen(() => texts(all), five('1'));
    expect(vi.getTimerCount()).toBe(0);
    say('2');
    await sockets.others();
    expect(texts(all)).toEqual(five('1'));
    sockets.rest = Rest.SHORT;
    sockets.reader.sweep();
    await seen(() => texts(all), five('12'));
    // The first connections were read on arrival while they were alone.
    say('3');
    await until('data of all sockets', () => sweep() && texts(all).every((text) => text === '123'), { everyMs: 5 });
    say('4');
    await sockets.others();
    expect(texts(all)).toEqual(five('123'));
    sweep();
    await seen(() => texts(all), five('1234'));
  });

  it.skipIf(addon === null)(
    'stops sweeping when all sockets were silent between two calls, and reads them when they send again',
    async () => {
      const all = await connected(5);
      later();
      sockets.reader.sweep();
      expect(vi.getTimerCount()).toBe(1);
      sockets.reader.sweep();
      expect(vi.getTimerCount()).toBe(0);
      for (const each of all) await heard(each, 'back');
      for (const { client } of all) client.write('later');
      await sockets.others();
      expect(texts(all)).toEqual(five('back'));
      sweep();
      await seen(() => texts(all), five('backlater'));
    },
  );

  it.skipIf(addon === null)('detects ends and resets in the sweep, and reads the remaining sockets immediately', async () => {
    const all = await connected(5);
    const told = all.map(({ socket }) => socketEvents(socket));
    all[0]!.client.end('bye');
    all[1]!.client.resetAndDestroy();
    await sockets.others();
    expect(told.flat()).toEqual([]);
    const wanted = [['end', 'close'], ['ECONNRESET', 'close'], [], [], []];
    await until('the ends are reported', () => sweep() && isDeepStrictEqual(told, wanted), { everyMs: 5 });
    expect(texts(all)).toEqual(['bye', '', '', '', '']);
    // Too few are left: from their next data on they are read on arrival.
    const left = all.slice(2);
    for (const { client } of left) client.write('still');
    await until('data of the remaining sockets', () => sweep() && texts(left).every((text) => text === 'still'), { everyMs: 5 });
    expect(vi.getTimerCount()).toBe(0);
    for (const each of left) await heard(each, 'here');
  });

  it.skipIf(addon === null)('stops sweeping when all sockets have closed', async () => {
    const all = await connected(5);
    const told = all.map(({ socket }) => socketEvents(socket));
    expect(vi.getTimerCount()).toBe(1);
    for (const { socket } of all) socket.destroy();
    await seen(
      () => told,
      all.map(() => ['close']),
    );
    expect(vi.getTimerCount()).toBe(0);
  });

  it.skipIf(addon === null)(
    'leaves data that is not needed to the next sweep of all, asks once after each read, and then sweeps again',
    async () => {
      const all = await connected(5);
      const say = (word: string): void => {
        for (const { client } of all) client.write(word);
      };
      // They were asked before.
      [sockets.neededIn, sockets.asked] = [Number.POSITIVE_INFINITY, 0];
      say('1');
      await sockets.others();
      sweep();
      await seen(() => texts(all), five('1'));
      say('2');
      await sockets.others();
      for (let n = 0; n < 3; n += 1) sweep();
      expect([texts(all), sockets.asked]).toEqual([five('1'), 5]);
      sockets.neededIn = 0;
      sweep();
      expect([texts(all), sockets.asked]).toEqual([five('1'), 5]);
      later();
      sockets.reader.sweep();
      await seen(() => texts(all), five('12'));
      say('3');
      await sockets.others();
      expect(texts(all)).toEqual(five('12'));
      sweep();
      await seen(() => texts(all), five('123'));
    },
  );

  it.skipIf(addon === null)('leaves sockets out of a sweep of all that were read just before, unless they had much', async () => {
    const all = await connected(5);
    const lengths = (): number[] => texts(all).map((text) => text.length);
    let first = 0;
    for (const size of [40_000, 58_000, 70_000]) {
      // After the last of these reads nothing is needed.
      if (size === 70_000) sockets.neededIn = Number.POSITIVE_INFINITY;
      first += size;
      for (const [index, { client }] of all.entries()) client.write(index === 0 ? 'm'.repeat(size) : '1');
      await sockets.others();
      await until('data of all sockets', () => sweep() && lengths()[0] === first && texts(all).at(-1)?.endsWith('1'), { everyMs: 5 });
    }
    for (const { client } of all) client.write('next');
    await sockets.others();
    sockets.reader.sweep();
    await seen(lengths, [first + 4, 3, 3, 3, 3]);
    sockets.reader.sweep();
    expect(lengths()).toEqual([first + 4, 3, 3, 3, 3]);
    await sockets.others();
    expect(lengths()).toEqual([first + 4, 3, 3, 3, 3]);
    later();
    sockets.reader.sweep();
    await seen(lengths, [first + 4, 7, 7, 7, 7]);
  });

  it.skipIf(addon === null)('sweeps data with a later due time from that time on', async () => {
    const all = await connected(5);
    sockets.neededIn = 60_000;
    const now = vi.spyOn(performance, 'now');
    const from = performance.now();
    now.mockImplementation(() => from);
    for (const { client } of all) client.write('1');
    await sockets.others();
    now.mockImplementation(() => from + 10);
    sweep();
    await seen(() => texts(all), five('1'));
    for (const { client } of all) client.write('2');
    await sockets.others();
    for (const passed of [10, 59_980]) {
      now.mockImplementation(() => from + 10 + passed);
      vi.advanceTimersByTime(passed - 10);
      expect(texts(all)).toEqual(five('1'));
    }
    now.mockImplementation(() => from + 60_020);
    vi.advanceTimersByTime(60);
    await seen(() => texts(all), five('12'));
    now.mockRestore();
  });

  it.skipIf(addon === null)('reads them at once at `readNow`', async () => {
    const all = await connected(5);
    for (const { client } of all) client.write('later');
    await sockets.others();
    expect(texts(all)).toEqual(five(''));
    sockets.reader.readNow();
    await seen(() => texts(all), five('later'));
    sockets.reader.sweep();
    sockets.reader.sweep();
  });
});
