import { createServer, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { RawClient } from '../../../test/fakes/raw-client.ts';
import { loadAddon } from '../../native/addon.ts';
import type { Span } from '../feed/messages.ts';
import { DirectSender, type Image } from '../http/direct-sender.ts';
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

test('no images are made without the addon', () => {
  const hot = new HotFiles(1_000_000, null);
  const file = fileOf();
  for (let n = 0; n < 3; n += 1) expect(hot.image(file, [bytesOf('a')], SIZE)).toBeNull();
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

  /** The bytes that a client receives when `image` is sent and `meanwhile` runs before it reads. */
  async function received(image: Image, meanwhile: () => void = () => {}): Promise<string> {
    const sender = new DirectSender(addon!);
    const sent: number[] = [];
    const server = createServer((socket: Socket) => {
      sent.push(sender.sendImage(socket, 'head ', image));
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

  test('have an image from the second time on, with all their bytes', async () => {
    const hot = open();
    const file = fileOf();
    const chunks = [bytesOf('a', SIZE - 7), bytesOf('b', 7)];
    expect(hot.image(file, chunks, SIZE)).toBeNull();
    expect(hot.figures.bytes).toBe(0);
    const image = hot.image(file, chunks, SIZE);
    expect(hot.figures.bytes).toBe(SIZE);
    expect(hot.image(file, chunks, SIZE)).toBe(image);
    expect(hot.figures.bytes).toBe(SIZE);
    expect(await received(image!)).toBe(`head ${'a'.repeat(SIZE - 7)}${'b'.repeat(7)}`);
  });

  test.each([1000, 8 * 1024 * 1024 + 1])('a file of %s bytes never gets an image', (size) => {
    const hot = open(100_000_000);
    const file = fileOf(size);
    for (let n = 0; n < 3; n += 1) expect(hot.image(file, [bytesOf('a', size)], size)).toBeNull();
    expect(hot.figures.bytes).toBe(0);
  });

  test('make room when they were not requested lately; an image being sent stays unchanged', async () => {
    const hot = open(2.5 * SIZE);
    const files = [fileOf(), fileOf(), fileOf()];
    const ask = (n: number): Image | null => hot.image(files[n]!, [bytesOf('abc'[n]!)], SIZE);
    const [first] = [0, 0].map(ask).slice(1);
    const text = await received(first!, () => {
      hot.sweep();
      for (const n of [1, 1, 2, 2]) ask(n);
      expect(hot.figures).toEqual({ bytes: 2 * SIZE, images: 2, evicted: 1, refused: 0 });
    });
    expect(text).toBe(`head ${'a'.repeat(SIZE)}`);
    expect([1, 2].map((n) => ask(n) !== null)).toEqual([true, true]);
    // The first known request.
    expect(ask(0)).toBeNull();
  });

  test('stay while they are requested, and further files are refused until they are not', () => {
    const hot = open(2.5 * SIZE);
    const files = [fileOf(), fileOf(), fileOf()];
    const ask = (n: number): Image | null => hot.image(files[n]!, [bytesOf('abc'[n]!)], SIZE);
    const asked = [0, 0, 1, 1, 2, 2, 2].map((n) => ask(n) !== null);
    expect(asked).toEqual([false, true, false, true, false, false, false]);
    expect(hot.figures).toEqual({ bytes: 2 * SIZE, images: 2, evicted: 0, refused: 2 });
    hot.sweep();
    ask(1);
    expect(ask(2)).not.toBeNull();
    expect(hot.figures).toEqual({ bytes: 2 * SIZE, images: 2, evicted: 1, refused: 2 });
  });

  test('are limited by the number of descriptors', () => {
    const hot = open(1e9);
    const files = Array.from({ length: 300 }, () => fileOf());
    for (let n = 0; n < 2; n += 1) for (const file of files) hot.image(file, [bytesOf('a')], SIZE);
    expect(hot.figures).toEqual({ bytes: 256 * SIZE, images: 256, evicted: 0, refused: 44 });
  });

  test('files without requests are released', () => {
    const hot = open();
    const [asked, forgotten] = [fileOf(), fileOf()];
    for (const file of [asked, asked, forgotten, forgotten]) hot.image(file, [bytesOf('a')], SIZE);
    for (let n = 0; n < 10; n += 1) {
      hot.sweep();
      expect(hot.image(asked, [bytesOf('a')], SIZE)).not.toBeNull();
    }
    expect(hot.figures.bytes).toBe(SIZE);
    expect(hot.image(forgotten, [bytesOf('a')], SIZE)).toBeNull();
  });

  test('a closed image sends its head only, and Node.js sends the rest', async () => {
    const hot = open();
    const file = fileOf();
    const image = [0, 0].map(() => hot.image(file, [bytesOf('a')], SIZE))[1]!;
    hot.close();
    expect(hot.figures.bytes).toBe(0);
    expect(await received(image)).toBe('head ');
  });
});
