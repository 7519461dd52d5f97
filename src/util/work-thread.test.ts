import { execFileSync } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { Worker } from 'node:worker_threads';
import { afterEach, expect, test, vi } from 'vitest';
import type { WorkOrder } from './work-answer.ts';
import { WorkThread, WorkThreadLost } from './work-thread.ts';

const NAMES = { entry: new URL('file:///nowhere'), name: 'doubles' };

/** A thread that answers when the test says so. */
class FakeWorker extends EventEmitter {
  readonly jobs: unknown[] = [];
  readonly #ids = new Map<unknown, number>();
  ended = false;

  postMessage({ id, job }: WorkOrder<unknown>): void {
    this.jobs.push(job);
    this.#ids.set(job, id);
  }

  answer(job: number, result: number): void {
    this.emit('message', { id: this.#ids.get(job), result });
  }

  unref(): void {}

  async terminate(): Promise<number> {
    this.ended = true;
    return 1;
  }
}

function fakes(more: { readonly deadline?: number; readonly idle?: number; readonly most?: number } = {}) {
  const workers: FakeWorker[] = [];
  const start = () => {
    const worker = new FakeWorker();
    workers.push(worker);
    return worker as unknown as Worker;
  };
  const thread = new WorkThread<number, number>({ ...NAMES, deadline: 1000, idle: 500, ...more, start });
  return { workers, thread };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

afterEach(() => {
  vi.useRealTimers();
});

/** Answers a number with its double, refuses 13, and ends at 0. */
const DOUBLES = `const { parentPort } = require('node:worker_threads');
  parentPort.on('message', ({ id, job }) => {
    if (job === 0) process.exit(7);
    parentPort.postMessage(job === 13 ? { id, refused: { message: 'not 13' } } : { id, result: 2 * job });
  });`;

function real(): { readonly thread: WorkThread<number, number>; readonly made: Worker[] } {
  const made: Worker[] = [];
  const start = () => {
    const worker = new Worker(DOUBLES, { eval: true });
    made.push(worker);
    return worker;
  };
  return { thread: new WorkThread({ ...NAMES, deadline: 20_000, idle: 20_000, start }), made };
}

test('one thread does all work in the order of the calls, and refuses with its own words', async () => {
  const { thread, made } = real();
  const order: string[] = [];
  const told = (job: number) =>
    thread.run(job).then(
      (result) => order.push(`${job}=${result}`),
      (error: Error) => order.push(`${job}: ${error.message}`),
    );
  await Promise.all([told(1), told(13), told(3)]);
  expect(order).toEqual(['1=2', '13: not 13', '3=6']);
  expect(made).toHaveLength(1);
  await made[0]?.terminate();
});

test('a thread that ends loses the work that runs, and a new one does the rest', async () => {
  const { thread, made } = real();
  const lost = thread.run(0);
  const next = thread.run(4);
  await expect(lost).rejects.toThrow(WorkThreadLost);
  await expect(lost).rejects.toThrow("the thread 'doubles' ended: exit code 7");
  expect(await next).toBe(8);
  expect(made).toHaveLength(2);
  await made[1]?.terminate();
});

test('a thread that cannot be started or throws loses its work only', async () => {
  let starts = 0;
  const worker = new FakeWorker();
  const start = () => {
    starts += 1;
    if (starts === 1) throw new Error('no room for a thread');
    return worker as unknown as Worker;
  };
  const thread = new WorkThread<number, number>({ ...NAMES, deadline: 1000, idle: 500, start });
  const [first, second] = [thread.run(1), thread.run(2)];
  await expect(first).rejects.toThrow('no room for a thread');
  worker.emit('error', new Error('out of memory'));
  await expect(second).rejects.toThrow('out of memory');
  expect(worker.ended).toBe(true);
});

test('the next piece of work is given to the thread when it has answered', async () => {
  const { thread, workers } = fakes();
  const both = [thread.run(1), thread.run(2)];
  expect(workers[0]?.jobs).toEqual([1]);
  workers[0]?.answer(1, 10);
  expect(workers[0]?.jobs).toEqual([1, 2]);
  workers[0]?.answer(2, 20);
  expect(await Promise.all(both)).toEqual([10, 20]);
});

test('a thread that may have two pieces of work answers them in its own order', async () => {
  const { thread, workers } = fakes({ most: 2 });
  const all = [thread.run(1), thread.run(2), thread.run(3)];
  const [worker] = workers;
  expect(worker?.jobs).toEqual([1, 2]);
  worker?.answer(2, 20);
  expect(await all[1]).toBe(20);
  expect(worker?.jobs).toEqual([1, 2, 3]);
  worker?.answer(3, 30);
  worker?.answer(1, 10);
  expect(await Promise.all(all)).toEqual([10, 20, 30]);
  expect(workers).toHaveLength(1);
});

test('a thread that ends loses all that it has, and what waits gets a new one', async () => {
  const { thread, workers } = fakes({ most: 2 });
  const [first, second, third] = [thread.run(1), thread.run(2), thread.run(3)];
  workers[0]?.emit('exit', 9);
  for (const lost of [first, second]) await expect(lost).rejects.toThrow("the thread 'doubles' ended: exit code 9");
  expect(workers[1]?.jobs).toEqual([3]);
  workers[1]?.answer(3, 30);
  expect(await third).toBe(30);
});

test('a piece of work that takes too long loses the work beside it', async () => {
  vi.useFakeTimers();
  const { thread, workers } = fakes({ most: 2 });
  const late = thread.run(1).catch((error: Error) => error);
  vi.advanceTimersByTime(600);
  const beside = thread.run(2).catch((error: Error) => error);
  vi.advanceTimersByTime(400);
  expect((await late) as Error).not.toBeInstanceOf(WorkThreadLost);
  expect(await beside).toBeInstanceOf(WorkThreadLost);
  expect(workers.map(({ ended }) => ended)).toEqual([true]);
  expect(vi.getTimerCount()).toBe(0);
});

test('work without a deadline takes as long as it takes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const worker = new FakeWorker();
  const thread = new WorkThread<number, number>({ ...NAMES, idle: 500, start: () => worker as unknown as Worker });
  const slow = thread.run(1);
  vi.advanceTimersByTime(24 * 3600 * 1000);
  worker.answer(1, 10);
  expect(await slow).toBe(10);
});

test('work beyond the deadline is refused, its thread ended and its late answer ignored', async () => {
  vi.useFakeTimers();
  const { thread, workers } = fakes();
  const first = thread.run(1).catch((error: Error) => error);
  const second = thread.run(2);
  vi.advanceTimersByTime(1000);
  expect(workers[0]?.ended).toBe(true);
  workers[0]?.answer(1, 99);
  workers[0]?.emit('exit', 1);
  workers[1]?.answer(2, 20);
  expect(await second).toBe(20);
  const error = await first;
  expect(error).toMatchObject({ message: "it took longer than 1 s in the thread 'doubles'" });
  expect(error).not.toBeInstanceOf(WorkThreadLost);
  expect(workers).toHaveLength(2);
});

test('a thread without work ends after a while, and not while it works', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { thread, workers } = fakes();
  const first = thread.run(1);
  vi.advanceTimersByTime(900);
  workers[0]?.answer(1, 10);
  await first;
  vi.advanceTimersByTime(499);
  expect(workers[0]?.ended).toBe(false);
  vi.advanceTimersByTime(1);
  expect(workers[0]?.ended).toBe(true);
  workers[0]?.emit('exit', 1);
  const later = thread.run(2);
  await settled();
  workers[1]?.answer(2, 20);
  expect(await later).toBe(20);
});

test('the thread keeps no process alive, neither while it works nor afterwards', () => {
  const file = JSON.stringify(new URL('./work-thread.ts', import.meta.url));
  const script = `import { Worker } from 'node:worker_threads';
    const { WorkThread } = await import(${file});
    const start = () => new Worker(${JSON.stringify(DOUBLES)}, { eval: true, execArgv: [] });
    const thread = new WorkThread({ entry: new URL('file:///nowhere'), name: 'doubles', deadline: 600000, idle: 600000, start });
    const held = setTimeout(() => {}, 60_000);
    console.log(await thread.run(21));
    clearTimeout(held);
    void thread.run(1);`;
  const args = ['--input-type=module', '-e', script];
  expect(execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 30_000 })).toBe('42\n');
});
