import { createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { RawClient } from '../../../test/fakes/raw-client.ts';
import { loadAddon } from '../../native/addon.ts';
import type { Span } from '../feed/messages.ts';
import { DirectSender, type MemoryFile } from '../http/direct-sender.ts';
import { HotFiles } from './hot-files.ts';

const { addon } = loadAddon();
const SIZE = 40_000;

/** All requests for a file use the same list of its bytes. */
function fileOf(length = SIZE): readonly Span[] {
  return [{ block: 1, offset: 0, length }];
}

/** Shared memory, as the delivery threads have it. */
function bytesOf(letter: string, length = SIZE): Buffer {
  return Buffer.from(new SharedArrayBuffer(length)).fill(letter);
}

test('no memory files are made without the addon', () => {
  const hot = new HotFiles(1_000_000, null);
  const file = fileOf();
  for (let n = 0; n < 3; n += 1) expect(hot.memoryFile(file, [bytesOf('a')], SIZE)).toBeNull();
  expect(hot.figures.bytes).toBe(0);
});

describe.skipIf(addon === null)('files that several viewers ask for', () => {
  const closers: (() => void)[] = [];

  afterEach(() => {
    for (const close of closers.splice(0)) close();
  });

  function open(limit = 1_000_000): HotFiles {
    const hot = new HotFiles(limit, addon);
    closers.push(() => hot.close());
    return hot;
  }

  /** The bytes that a client receives when `memoryFile` is sent and `meanwhile` runs before it reads. */
  async function received(memoryFile: MemoryFile, meanwhile: () => void = () => {}): Promise<string> {
    const sender = new DirectSender(addon!);
    const sent: number[] = [];
    const server = createServer((socket: Socket) => {
      sent.push(sender.sendMemoryFile(socket, 'head ', memoryFile));
      meanwhile();
      socket.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    const client = await RawClient.open((server.address() as { port: number }).port);
    const text = await client.end(5000);
    expect(sent).toEqual([text.length]);
    return text;
  }

  test('have a memory file from the second time on, with all their bytes', async () => {
    const hot = open();
    const file = fileOf();
    const chunks = [bytesOf('a', SIZE - 7), bytesOf('b', 7)];
    expect(hot.memoryFile(file, chunks, SIZE)).toBeNull();
    expect(hot.figures.bytes).toBe(0);
    const memoryFile = hot.memoryFile(file, chunks, SIZE);
    expect(hot.figures.bytes).toBe(SIZE);
    expect(hot.memoryFile(file, chunks, SIZE)).toBe(memoryFile);
    expect(hot.figures.bytes).toBe(SIZE);
    expect(await received(memoryFile!)).toBe(`head ${'a'.repeat(SIZE - 7)}${'b'.repeat(7)}`);
  });

  test.each([1000, 8 * 1024 * 1024 + 1])('a file of %s bytes never gets a memory file', (size) => {
    const hot = open(100_000_000);
    const file = fileOf(size);
    for (let n = 0; n < 3; n += 1) expect(hot.memoryFile(file, [bytesOf('a', size)], size)).toBeNull();
    expect(hot.figures.bytes).toBe(0);
  });

  test('make room when they were not requested lately; a memory file being sent stays unchanged', async () => {
    const hot = open(2.5 * SIZE);
    const files = [fileOf(), fileOf(), fileOf()];
    const ask = (n: number): MemoryFile | null => hot.memoryFile(files[n]!, [bytesOf('abc'[n]!)], SIZE);
    const [first] = [0, 0].map(ask).slice(1);
    const text = await received(first!, () => {
      hot.sweep();
      for (const n of [1, 1, 2, 2]) ask(n);
      expect(hot.figures).toEqual({ bytes: 2 * SIZE, memoryFiles: 2, evicted: 1, refused: 0 });
    });
    expect(text).toBe(`head ${'a'.repeat(SIZE)}`);
    expect([1, 2].map((n) => ask(n) !== null)).toEqual([true, true]);
    // The first known request.
    expect(ask(0)).toBeNull();
  });

  test('stay while they are requested, and further files are refused until they are not', () => {
    const hot = open(2.5 * SIZE);
    const files = [fileOf(), fileOf(), fileOf()];
    const ask = (n: number): MemoryFile | null => hot.memoryFile(files[n]!, [bytesOf('abc'[n]!)], SIZE);
    const asked = [0, 0, 1, 1, 2, 2, 2].map((n) => ask(n) !== null);
    expect(asked).toEqual([false, true, false, true, false, false, false]);
    expect(hot.figures).toEqual({ bytes: 2 * SIZE, memoryFiles: 2, evicted: 0, refused: 2 });
    hot.sweep();
    ask(1);
    expect(ask(2)).not.toBeNull();
    expect(hot.figures).toEqual({ bytes: 2 * SIZE, memoryFiles: 2, evicted: 1, refused: 2 });
  });

  test('are limited by the number of descriptors', () => {
    const hot = open(1e9);
    const files = Array.from({ length: 300 }, () => fileOf());
    for (let n = 0; n < 2; n += 1) for (const file of files) hot.memoryFile(file, [bytesOf('a')], SIZE);
    expect(hot.figures).toEqual({ bytes: 256 * SIZE, memoryFiles: 256, evicted: 0, refused: 44 });
  });

  test('files without requests are released', () => {
    const hot = open();
    const [asked, forgotten] = [fileOf(), fileOf()];
    for (const file of [asked, asked, forgotten, forgotten]) hot.memoryFile(file, [bytesOf('a')], SIZE);
    for (let n = 0; n < 10; n += 1) {
      hot.sweep();
      expect(hot.memoryFile(asked, [bytesOf('a')], SIZE)).not.toBeNull();
    }
    expect(hot.figures.bytes).toBe(SIZE);
    expect(hot.memoryFile(forgotten, [bytesOf('a')], SIZE)).toBeNull();
  });

  test('a closed memory file sends its head only, and Node.js sends the rest', async () => {
    const hot = open();
    const file = fileOf();
    const memoryFile = [0, 0].map(() => hot.memoryFile(file, [bytesOf('a')], SIZE))[1]!;
    hot.close();
    expect(hot.figures.bytes).toBe(0);
    expect(await received(memoryFile)).toBe('head ');
  });
});
