import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { SignallingSocket } from './signalling-socket.ts';

/** A connection whose other end reads nothing. */
class UnreadSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;

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
