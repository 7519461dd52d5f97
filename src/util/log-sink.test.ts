import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LogSink, MAX_QUEUED, type SinkFiles } from './log-sink.ts';

/** A descriptor that the test controls. */
class FakeFiles implements SinkFiles {
  text = '';
  /** Maximum of bytes that each write takes. */
  takes = Number.POSITIVE_INFINITY;
  /** Error code of each write; null: writes succeed. */
  fault: string | null = null;
  /** Writes that are waiting on the thread pool. */
  readonly away: (() => void)[] = [];

  write(_descriptor: number, bytes: Uint8Array, done: (error: Error | null, written: number) => void): void {
    this.away.push(() => {
      try {
        done(null, this.writeSync(0, bytes));
      } catch (error) {
        done(error as Error, 0);
      }
    });
  }

  writeSync(_descriptor: number, bytes: Uint8Array): number {
    if (this.fault !== null) throw Object.assign(new Error(this.fault), { code: this.fault });
    const taken = bytes.subarray(0, this.takes);
    this.text += Buffer.from(taken).toString('latin1');
    return taken.length;
  }
}

let files: FakeFiles;
beforeEach(() => {
  files = new FakeFiles();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function sinkOf(waits: 'never' | 'file' = 'never'): LogSink {
  const sink = new LogSink({ descriptor: 0, waits, files, onDropped: (lines) => sink.write(`${lines} dropped\n`) });
  return sink;
}

test('lines are written in order, at once, and completely even when each write takes a part', () => {
  files.takes = 3;
  const sink = sinkOf();
  for (const line of ['first\n', 'second\n', 'third\n']) sink.write(line);
  expect(files.text).toBe('first\nsecond\nthird\n');
});

test.each(['EAGAIN', 'ENOSPC', 'EPIPE', 'EIO'])('%s delays the lines, which are written after it ends', async (fault) => {
  const sink = sinkOf();
  files.fault = fault;
  for (const line of ['first\n', 'second\n']) sink.write(line);
  files.fault = null;
  await vi.advanceTimersByTimeAsync(1000);
  expect(files.text).toBe('first\nsecond\n');
});

test('a line that was cut by a full disk is finished before the next', async () => {
  const sink = sinkOf();
  files.takes = 2;
  const write = files.writeSync.bind(files);
  files.writeSync = (descriptor, bytes) => {
    const taken = write(descriptor, bytes);
    files.fault = 'ENOSPC';
    return taken;
  };
  sink.write('first\n');
  sink.write('second\n');
  expect(files.text).toBe('fi');
  files.writeSync = write;
  files.fault = null;
  await vi.advanceTimersByTimeAsync(1000);
  expect(files.text).toBe('first\nsecond\n');
});

test('lines beyond the queue are dropped, and their number is logged when the descriptor works again', async () => {
  const sink = sinkOf();
  files.fault = 'EAGAIN';
  const line = `${'x'.repeat(1023)}\n`;
  for (let count = 0; count < MAX_QUEUED / 1024 + 500; count += 1) sink.write(line);
  expect(sink.dropped).toBeGreaterThan(400);
  const { dropped } = sink;
  files.fault = null;
  await vi.advanceTimersByTimeAsync(1000);
  expect(files.text.endsWith(`x\n${dropped} dropped\n`)).toBe(true);
  sink.write('and on\n');
  expect(files.text.endsWith('dropped\nand on\n')).toBe(true);
  expect(files.text.length).toBeLessThan(MAX_QUEUED + 70_000);
});

test('a file is written by the pool, one write at a time', () => {
  const sink = sinkOf('file');
  for (const line of ['first\n', 'second\n', 'third\n']) sink.write(line);
  expect(files.text).toBe('');
  expect(files.away).toHaveLength(1);
  files.away.shift()?.();
  files.away.shift()?.();
  expect(files.text).toBe('first\nsecond\nthird\n');
  expect(files.away).toHaveLength(0);
});

test('close writes the queue before it returns, and leaves a write in the pool to finish', () => {
  const sink = sinkOf('file');
  sink.write('first\n');
  sink.write('second\n');
  sink.close();
  expect(files.text).toBe('second\n');
  files.away.shift()?.();
  expect(files.text).toBe('second\nfirst\n');
  sink.close();
  sink.write('late\n');
  expect(files.text).not.toContain('late');
});

test('close waits less than a second for a reader that does not read', () => {
  const sink = sinkOf();
  files.fault = 'EAGAIN';
  sink.write('first\n');
  const before = performance.now();
  sink.close();
  expect(performance.now() - before).toBeLessThan(1000);
});

test('idle waits until everything is written, at most for its time', async () => {
  const sink = sinkOf();
  files.fault = 'EAGAIN';
  sink.write('first\n');
  let idle = 0;
  void sink.idle(500).then(() => {
    idle += 1;
  });
  await vi.advanceTimersByTimeAsync(499);
  expect(idle).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(idle).toBe(1);
  void sink.idle(500).then(() => {
    idle += 1;
  });
  files.fault = null;
  await vi.advanceTimersByTimeAsync(100);
  expect(idle).toBe(2);
});
