import { EventEmitter } from 'node:events';
import type { Server } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ConnectionWatch } from './connection-watch.ts';

class FakeSocket extends EventEmitter {
  readonly remoteAddress = '192.0.2.1';
  readonly remotePort: number;
  destroyed = false;

  constructor(remotePort: number) {
    super();
    this.remotePort = remotePort;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

class FakeAnswer extends EventEmitter {
  writableEnded = false;
}

const server = new EventEmitter();
let watch: ConnectionWatch;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  watch = new ConnectionWatch(server as unknown as Server, { first: 100, idle: 1000, send: 500, sweep: 10 });
  watch.start();
});
afterEach(() => {
  watch.stop();
  server.removeAllListeners();
  vi.useRealTimers();
});

function connection(port: number): FakeSocket {
  const socket = new FakeSocket(port);
  server.emit('connection', socket);
  return socket;
}

test('a connection without a request is closed after the time for the first one', () => {
  const socket = connection(1);
  vi.advanceTimersByTime(100);
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(20);
  expect([socket.destroyed, watch.ended, watch.size]).toEqual([true, 1, 0]);
});

test('the idle time starts at the end of the last answer, and a request may take longer', () => {
  const socket = connection(1);
  const answer = new FakeAnswer();
  watch.began(socket, answer);
  vi.advanceTimersByTime(60_000);
  answer.emit('close');
  vi.advanceTimersByTime(1000);
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(20);
  expect(socket.destroyed).toBe(true);
});

test('an unread answer closes the connection, even while another request is in progress', () => {
  const socket = connection(1);
  const answer = new FakeAnswer();
  watch.began(socket, new FakeAnswer());
  watch.began(socket, answer);
  answer.writableEnded = true;
  vi.advanceTimersByTime(500);
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(20);
  expect(socket.destroyed).toBe(true);
});

test('ignores released and closed connections', () => {
  const [released, gone] = [connection(1), connection(2)];
  watch.release(released);
  const next = connection(2);
  gone.emit('close');
  expect(watch.size).toBe(1);
  vi.advanceTimersByTime(200);
  expect([released.destroyed, next.destroyed]).toEqual([false, true]);
});
