import { Duplex } from 'node:stream';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { endAndCut } from './end-and-cut.ts';

let written: string;
/** A socket whose peer never ends its own side. */
let socket: Duplex;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  written = '';
  socket = new Duplex({
    allowHalfOpen: true,
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      written += chunk.toString();
      done();
    },
  });
});
afterEach(() => {
  vi.useRealTimers();
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

test.each([
  ['bye', 'waits bye'],
  [null, 'waits '],
])('with the last data %j, a peer that does not end its side is cut', async (last, all) => {
  socket.write('waits ');
  endAndCut(socket, last, 500);
  await turn();
  vi.advanceTimersByTime(499);
  expect([written, socket.writableFinished, socket.destroyed]).toEqual([all, true, false]);
  vi.advanceTimersByTime(1);
  expect(socket.destroyed).toBe(true);
});

test('a closed connection keeps no timer', async () => {
  endAndCut(socket, null, 500);
  socket.destroy();
  await turn();
  expect(vi.getTimerCount()).toBe(0);
  endAndCut(socket, 'bye', 500);
  expect(vi.getTimerCount()).toBe(0);
});
