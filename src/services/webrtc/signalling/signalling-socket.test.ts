import { EventEmitter } from 'node:events';
import { expect, test, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { SignallingSocket } from './signalling-socket.ts';

/** A connection whose other end reads nothing. */
class UnreadSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;
  pings = 0;
  closed = '';

  ping(): void {
    this.pings += 1;
  }

  /** Its other end never closes. */
  close(code: number, reason: string): void {
    this.readyState = 2;
    this.closed = `${code} ${reason}`;
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
      // The library answers a ping before it emits the event.
      socket.bufferedAmount += 20;
      socket.emit('ping');
    },
  ],
] as const)('a peer that sends %s and never reads is disconnected', (_name, ask) => {
  const socket = new UnreadSocket();
  const stops: string[] = [];
  const signalling = new SignallingSocket({
    socket: socket as unknown as WebSocket,
    client: '192.0.2.1',
    logger: new RecordingLogger(),
    dialogue: {
      engaged: true,
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

test('a peer that answers no pings is disconnected, a peer that answers is kept', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const stops: string[] = [];
    const open = (name: string): UnreadSocket => {
      const socket = new UnreadSocket();
      const nothing = (): void => undefined;
      const dialogue = {
        engaged: true,
        offer: nothing,
        answer: nothing,
        candidates: nothing,
        other: () => false,
        stop: () => stops.push(name),
      };
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

test('a connection without a session is closed despite its messages, and terminated when the peer ignores that', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });
  try {
    const open = (engaged: boolean) => {
      const socket = new UnreadSocket();
      const nothing = (): void => undefined;
      const dialogue = { engaged, offer: nothing, answer: nothing, candidates: nothing, other: () => false, stop: nothing };
      new SignallingSocket({ socket: socket as unknown as WebSocket, client: '192.0.2.1', logger: new RecordingLogger(), dialogue });
      return { socket, dialogue };
    };
    const [useless, used] = [open(false), open(true)];
    for (let second = 0; second < 15; second += 1) {
      vi.advanceTimersByTime(1000);
      for (const { socket } of [useless, used]) {
        socket.emit('pong');
        socket.emit('message', Buffer.from('{"command":"ping"}'), false);
      }
    }
    expect([useless.socket.closed, used.socket.closed]).toEqual(['1008 nothing was asked for', '']);
    vi.advanceTimersByTime(5000);
    expect([useless.socket.readyState, used.socket.readyState]).toEqual([3, 1]);
    used.dialogue.engaged = false;
    vi.advanceTimersByTime(15_000);
    expect(used.socket.closed).toBe('1008 nothing was asked for');
    used.socket.terminate();
  } finally {
    vi.useRealTimers();
  }
});

test('a failure while an offer is prepared is answered with an error', async () => {
  const socket = new UnreadSocket();
  const logger = new RecordingLogger();
  const nothing = (): void => undefined;
  const sent = vi.spyOn(socket, 'send');
  const signalling: SignallingSocket = new SignallingSocket({
    socket: socket as unknown as WebSocket,
    client: '192.0.2.1',
    logger,
    dialogue: {
      engaged: true,
      offer: () => signalling.after(Promise.reject(new Error('the origin failed')), nothing),
      answer: nothing,
      candidates: nothing,
      other: () => false,
      stop: nothing,
    },
  });
  socket.emit('message', Buffer.from('{"command":"request_offer"}'), false);
  await expect.poll(() => sent).toHaveBeenCalledWith('{"code":500,"error":"Internal Server Error"}');
  expect(logger.matching('signalling failed')).toHaveLength(1);
  socket.terminate();
});
