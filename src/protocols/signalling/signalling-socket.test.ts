import { EventEmitter } from 'node:events';
import { expect, test, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { SignallingSocket } from './signalling-socket.ts';

/** A connection whose other end reads nothing. */
class UnreadSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;
  pings = 0;

  ping(): void {
    this.pings += 1;
  }

  send(text: string): void {
    this.bufferedAmount += text.length;
  }

  terminate(): void {
    this.readyState = 3;
    this.emit('close');
  }
}

test.each([
  ['words', (socket: UnreadSocket) => socket.emit('message', Buffer.from('{"command":"ping"}'), false)],
  ['offers', (socket: UnreadSocket) => socket.emit('message', Buffer.from('{"command":"request_offer"}'), false)],
  [
    'control frames',
    (socket: UnreadSocket) => {
      // The library has answered before it tells.
      socket.bufferedAmount += 20;
      socket.emit('ping');
    },
  ],
] as const)('who asks by %s and never reads loses the connection', (_name, ask) => {
  const socket = new UnreadSocket();
  const stops: string[] = [];
  const signalling = new SignallingSocket({
    socket: socket as unknown as WebSocket,
    client: '192.0.2.1',
    logger: new RecordingLogger(),
    dialogue: {
      offer: () => signalling.send({ command: 'offer', sdp: 'x'.repeat(3000) }),
      answer: () => undefined,
      candidates: () => undefined,
      other: () => false,
      stop: (reason) => stops.push(reason),
    },
  });
  for (let n = 0; n < 100_000 && socket.readyState === socket.OPEN; n += 1) ask(socket);
  expect(stops).toEqual(['the signalling connection closed']);
  expect(socket.bufferedAmount).toBeLessThan(1_100_000);
});

test('a peer that answers no pings has lost the connection, one that does keeps it', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const stops: string[] = [];
    const open = (name: string): UnreadSocket => {
      const socket = new UnreadSocket();
      const nothing = (): void => undefined;
      const dialogue = { offer: nothing, answer: nothing, candidates: nothing, other: () => false, stop: () => stops.push(name) };
      new SignallingSocket({ socket: socket as unknown as WebSocket, client: '192.0.2.1', logger: new RecordingLogger(), dialogue });
      return socket;
    };
    const [silent, alive] = [open('silent'), open('alive')];
    for (let n = 0; n < 5; n += 1) {
      vi.advanceTimersByTime(20_000);
      alive.emit('pong');
    }
    expect([silent.pings, alive.pings, stops]).toEqual([2, 5, ['silent']]);
    alive.terminate();
  } finally {
    vi.useRealTimers();
  }
});
