import { describe, expect, test } from 'vitest';
import type { Span } from '../feed/messages.ts';
import { sliceSpans, spansLength } from '../feed/spans.ts';
import { BlockTable } from '../thread/block-table.ts';
import type { ToThread } from '../thread-protocol.ts';
import { SharedArena } from './shared-arena.ts';

const KIB = 1024;

/** An arena with threads that follow it at once, as if messages took no time. */
function arenaWith(threads: number[], maxFreeBytes = 1024 * KIB) {
  const tables = new Map<number, BlockTable>();
  const late: ToThread[] = [];
  const apply = (message: ToThread): void => {
    for (const table of tables.values()) {
      if (message.type === 'block-add') table.add(message.block, message.buffer);
      if (message.type === 'block-retire') table.retire(message.block);
    }
  };
  // Unless a test says otherwise, each block lasts for two seconds.
  const time = { now: 0, step: 2000 };
  const arena = new SharedArena({
    ...{ post: apply, postLate: (message) => late.push(message), threads: () => threads, maxFreeBytes },
    now: () => {
      time.now += time.step;
      return time.now;
    },
  });
  for (const thread of threads) tables.set(thread, new BlockTable((block) => arena.acknowledge(thread, block)));
  const flush = (): void => {
    for (const message of late.splice(0)) apply(message);
  };
  const table = (thread: number): BlockTable => tables.get(thread)!;
  return { arena, flush, table, time };
}

function text(table: BlockTable, spans: readonly Span[]): string {
  const bytes = Buffer.concat(table.acquire(spans) ?? []).toString('latin1');
  table.release(spans);
  return bytes;
}

describe('shared arena', () => {
  test('chunks are stored back to back in one span, or in several when a block ends', () => {
    const { arena, table } = arenaWith([1]);
    const writer = arena.writer(0);
    const small = writer.store([Buffer.from('abc'), Buffer.alloc(0), Buffer.from('def')]);
    expect(small).toEqual([{ block: 1, offset: 0, length: 6 }]);
    const large = writer.store([Buffer.alloc(100 * KIB, 'x')]);
    expect(large).toHaveLength(2);
    expect(spansLength(large)).toBe(100 * KIB);
    expect(text(table(1), small)).toBe('abcdef');
    expect(text(table(1), large)).toBe('x'.repeat(100 * KIB));
    expect(text(table(1), sliceSpans(large, 65_529, 3))).toBe('xxx');
    expect(writer.store([])).toEqual([]);
  });

  test('the first block is small, the others fit the bitrate', () => {
    const { arena } = arenaWith([1]);
    const writer = arena.writer(700_000);
    writer.store([Buffer.alloc(KIB)]);
    expect(arena.usage.used).toBe(64 * KIB);
    writer.store([Buffer.alloc(64 * KIB)]);
    expect(arena.usage.used).toBe(64 * KIB + 1024 * KIB);
  });

  test('blocks grow to a second of the actual bitrate, up to 1 MB, and shrink again', () => {
    const { arena, time } = arenaWith([1]);
    time.step = 0;
    const writer = arena.writer(0);
    const write = (seconds: number, kibPerSecond: number): void => {
      for (let tenth = 0; tenth < 10 * seconds; tenth += 1) {
        writer.release(writer.store([Buffer.alloc((kibPerSecond * KIB) / 10)]));
        time.now += 100;
      }
    };
    write(10, 320);
    expect(arena.usage.used).toBe(512 * KIB);
    write(10, 20_000);
    expect(arena.usage.used).toBe(1024 * KIB);
    write(200, 20);
    expect(arena.usage.used).toBe(128 * KIB);
  });

  test('a block is reused when all is released and every thread has confirmed', () => {
    const { arena, flush, table } = arenaWith([1, 2]);
    const writer = arena.writer(0);
    const first = writer.store([Buffer.alloc(64 * KIB, 'a')]);
    const second = writer.store([Buffer.alloc(64 * KIB, 'b')]);
    const inFlight = table(2).acquire(first)!;
    writer.release(first);
    flush();
    expect(table(1).size).toBe(1);
    expect(arena.usage).toEqual({ used: 64 * KIB, retiring: 64 * KIB, free: 0 });
    expect(table(1).acquire(first)).toBeNull();
    expect(table(2).acquire(first)).toBeNull();
    // While thread 2 sends, new bytes go elsewhere.
    const third = writer.store([Buffer.alloc(64 * KIB, 'c')]);
    expect(Buffer.concat(inFlight).toString()).toBe('a'.repeat(64 * KIB));
    table(2).release(first);
    expect(arena.usage).toEqual({ used: 128 * KIB, retiring: 0, free: 64 * KIB });
    const fourth = writer.store([Buffer.alloc(64 * KIB, 'd')]);
    expect(arena.usage.free).toBe(0);
    expect([second, third, fourth].map((spans) => text(table(1), spans)[0])).toEqual(['b', 'c', 'd']);
  });

  test('memory stays flat while a stream runs', () => {
    const { arena, flush } = arenaWith([1, 2]);
    const writer = arena.writer(250_000);
    writer.store([Buffer.alloc(800)]);
    const listed: (readonly Span[])[] = [];
    let most = 0;
    for (let part = 0; part < 5000; part += 1) {
      listed.push(writer.store([Buffer.alloc(100), Buffer.alloc(90_000 + (part % 50) * 1000)]));
      if (listed.length > 60) writer.release(listed.shift()!);
      flush();
      const { used, retiring, free } = arena.usage;
      most = Math.max(most, used + retiring + free);
    }
    const media = listed.reduce((sum, spans) => sum + spansLength(spans), 0);
    expect(most).toBeLessThan(media * 1.3 + 3_000_000);
  });

  test('a sixth of the memory in use is kept free, and given up when less is in use', () => {
    const { arena, flush } = arenaWith([1], 128 * KIB);
    const [writer, other] = [arena.writer(0), arena.writer(0)];
    writer.store([Buffer.alloc(6 * 1024 * KIB)]);
    other.store([Buffer.alloc(2 * 1024 * KIB)]);
    other.close();
    flush();
    expect(arena.usage).toEqual({ used: 6 * 1024 * KIB, retiring: 0, free: 1024 * KIB });
    writer.close();
    flush();
    expect(arena.usage).toEqual({ used: 0, retiring: 0, free: 128 * KIB });
  });

  test('closing a writer frees all its blocks, and free memory is bounded', () => {
    const { arena, flush } = arenaWith([1], 128 * KIB);
    const writer = arena.writer(0);
    const spans = writer.store([Buffer.alloc(640 * KIB)]);
    writer.close();
    writer.close();
    flush();
    expect(arena.usage).toEqual({ used: 0, retiring: 0, free: 128 * KIB });
    writer.release(spans);
    expect(() => writer.store([Buffer.alloc(1)])).toThrow(TypeError);
  });

  test('a dead thread does not delay the reuse of a block', () => {
    const { arena, flush, table } = arenaWith([1, 2]);
    const writer = arena.writer(0);
    const spans = writer.store([Buffer.alloc(64 * KIB)]);
    table(2).acquire(spans);
    writer.close();
    flush();
    expect(arena.usage.retiring).toBe(64 * KIB);
    arena.threadGone(2);
    expect(arena.usage).toEqual({ used: 0, retiring: 0, free: 64 * KIB });
  });

  test('releasing twice is an error, not a corruption', () => {
    const { arena } = arenaWith([1]);
    const writer = arena.writer(0);
    const spans = writer.store([Buffer.alloc(10)]);
    writer.release(spans);
    expect(() => writer.release(spans)).toThrow('released twice');
  });

  test('replays the listed blocks to a starting thread', () => {
    const { arena, flush } = arenaWith([1]);
    const writer = arena.writer(0);
    const first = writer.store([Buffer.alloc(64 * KIB)]);
    writer.store([Buffer.alloc(64 * KIB, 'b')]);
    writer.store([Buffer.alloc(1)]);
    writer.release(first);
    flush();
    expect([...arena.replay()].map((message) => (message.type === 'block-add' ? message.block : message.type))).toEqual([2, 3]);
  });
});

describe('slicing spans', () => {
  const spans = [
    { block: 1, offset: 10, length: 5 },
    { block: 2, offset: 0, length: 5 },
  ];
  test.each([
    [0, 10, spans],
    [0, 0, []],
    [2, 2, [{ block: 1, offset: 12, length: 2 }]],
    [5, 5, [{ block: 2, offset: 0, length: 5 }]],
    [
      4,
      3,
      [
        { block: 1, offset: 14, length: 1 },
        { block: 2, offset: 0, length: 2 },
      ],
    ],
  ])('from %i, %i bytes', (offset, length, expected) => {
    expect(sliceSpans(spans, offset, length)).toEqual(expected);
  });
});
