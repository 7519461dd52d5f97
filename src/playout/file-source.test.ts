import { expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { FailedAttempts } from '../util/failed-attempts.ts';
import { messageOf } from '../util/message-of.ts';
import { FileSource, lengthOfBytes } from './file-source.ts';

const TS_PACKET = 188;
const MIB = 1_048_576;

/** A file of empty transport packets, which counts the reads. */
class EmptyPackets {
  readonly size: number;
  readonly identity: string;
  readonly descriptor = -1;
  readonly #closing = new AbortController();
  bytesRead = 0;

  constructor(size = 64 * 1024 * MIB, identity = '1') {
    this.size = size;
    this.identity = identity;
  }

  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    this.closed.throwIfAborted();
    this.bytesRead += length;
    if (this.bytesRead > 200 * MIB) throw new Error('it is read to its end');
    const bytes = new Uint8Array(length).fill(0xff);
    for (let at = (TS_PACKET - (offset % TS_PACKET)) % TS_PACKET; at < length; at += TS_PACKET) bytes.set([0x47, 0x1f, 0xff, 0x10], at);
    return bytes;
  }

  async close(): Promise<void> {
    this.#closing.abort();
  }
}

type Opened = Parameters<typeof lengthOfBytes>[0];
type Root = Parameters<typeof FileSource.open>[1]['root'];

it('a large file without a start is not read to its end', async () => {
  const bytes = new EmptyPackets();
  await expect(lengthOfBytes(bytes as unknown as Opened, new RecordingLogger())).rejects.toThrow(
    'nothing that can be played begins in the first 67108864 bytes',
  );
  expect(bytes.bytesRead).toBeLessThan(70 * MIB);
});

it('a cancelled item is read no further, and its file is closed', async () => {
  const bytes = new EmptyPackets();
  const nobody = new AbortController();
  const { promise: reading, resolve: hangs } = Promise.withResolvers<void>();
  const { promise: closed, reject } = Promise.withResolvers<Uint8Array>();
  bytes.closed.addEventListener('abort', () => reject(new Error('closed')));
  bytes.read = () => {
    hangs();
    return closed;
  };
  const opening = FileSource.open('file://a.ts', {
    ...{ root: { open: async () => bytes } as unknown as Root, foreign: null, logger: new RecordingLogger() },
    ...{ position: 5000, signal: nobody.signal, onSlow: () => undefined },
  });
  await reading;
  nobody.abort();
  await expect(opening).rejects.toThrow('closed');
});

it('a file without playable media is refused, and skipped for a while unless it changes', async () => {
  const clock = new ManualClock();
  const attempts = new FailedAttempts(clock);
  const open = async (identity: string): Promise<{ read: number; closed: boolean; fault: string }> => {
    const bytes = new EmptyPackets(2 * MIB, identity);
    const fault = await FileSource.open('file://a.ts', {
      ...{ root: { open: async () => bytes } as unknown as Root, foreign: null, logger: new RecordingLogger(), attempts },
      ...{ position: 0, signal: new AbortController().signal, onSlow: () => undefined },
    }).then(
      () => 'none',
      (error: unknown) => messageOf(error),
    );
    return { read: bytes.bytesRead, closed: bytes.closed.aborted, fault };
  };
  const fault = 'there is nothing in it that can be played';
  expect(await open('1')).toEqual({ read: expect.toSatisfy((read) => read > MIB), closed: true, fault });
  clock.advance(1999);
  expect(await open('1')).toEqual({ read: 0, closed: true, fault });
  expect((await open('2')).read).toBeGreaterThan(MIB);
  clock.advance(1);
  expect((await open('1')).read).toBeGreaterThan(MIB);
  clock.advance(3999);
  expect((await open('1')).read).toBe(0);
});

it('a cancelled file does not count as failed', async () => {
  const attempts = new FailedAttempts(new ManualClock());
  const nobody = new AbortController();
  const bytes = new EmptyPackets(2 * MIB, '1');
  const opening = FileSource.open('file://a.ts', {
    ...{ root: { open: async () => bytes } as unknown as Root, foreign: null, logger: new RecordingLogger(), attempts },
    ...{ position: 0, signal: nobody.signal, onSlow: () => undefined },
  });
  nobody.abort();
  await expect(opening).rejects.toThrow();
  expect(attempts.reasonOf('1')).toBeNull();
});

it('a file cancelled after a long search is skipped for a while', async () => {
  const clock = new ManualClock();
  const attempts = new FailedAttempts(clock);
  const nobody = new AbortController();
  const bytes = new EmptyPackets();
  const read = bytes.read.bind(bytes);
  bytes.read = (offset, length) => {
    if (bytes.bytesRead > 8 * MIB) nobody.abort();
    return read(offset, length);
  };
  const root = { open: async () => bytes } as unknown as Root;
  const options = { root, foreign: null, logger: new RecordingLogger(), attempts, position: 0, onSlow: () => undefined };
  await expect(FileSource.open('file://a.ts', { ...options, signal: nobody.signal })).rejects.toThrow();
  expect(bytes.bytesRead).toBeLessThan(9 * MIB);
  const again = new EmptyPackets();
  const opening = { ...options, root: { open: async () => again } as unknown as Root, signal: new AbortController().signal };
  await expect(FileSource.open('file://a.ts', opening)).rejects.toThrow('it takes too long to find where it is to be joined');
  expect(again.bytesRead).toBe(0);
  clock.advance(2000);
  expect(attempts.reasonOf('1')).toBeNull();
});
