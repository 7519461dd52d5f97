import { EventEmitter } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import type { WebSocket } from 'ws';
import { HeldTurns } from '../../../../test/fakes/held-turns.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { OfferDialogue, type OfferedSession, type Refusal } from './offer-dialogue.ts';

/** The server's end of a connection; the test is the other. */
class PeerSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  bufferedAmount = 0;
  readonly heard: { readonly command?: string; readonly id?: number; readonly code?: number; readonly error?: string }[] = [];

  send(text: string): void {
    this.heard.push(JSON.parse(text));
  }

  close(): void {
    this.readyState = 2;
  }

  terminate(): void {
    this.readyState = 3;
    this.emit('close');
  }

  says(message: object): void {
    this.emit('message', Buffer.from(JSON.stringify(message)), false);
  }

  answers(sdp: string): void {
    this.says({ command: 'answer', id: this.heard[0]?.id, sdp: { sdp } });
  }
}

function dialogue() {
  const turns = new HeldTurns();
  const socket = new PeerSocket();
  const told: string[] = [];
  const session: OfferedSession = {
    ended: false,
    offer: () => 'v=0',
    candidates: () => [],
    answered: (sdp) => {
      if (sdp === 'bad') throw new ProtocolError('SDP', 'made up');
      told.push(`answered ${sdp}`);
    },
    announced: () => undefined,
    close: (reason) => told.push(`closed: ${reason}`),
  };
  new OfferDialogue({
    socket: socket as unknown as WebSocket,
    target: { vhost: 'default', app: 'app', stream: 'live', playlist: '' },
    client: '192.0.2.1',
    iceServers: null,
    logger: new RecordingLogger(),
    turns,
    peer: 'publisher',
    open: () => session,
    isRefusal: (error): error is Refusal => error instanceof ProtocolError,
    onAnswered: () => told.push('begun'),
  });
  onTestFinished(() => socket.terminate());
  const ask = (): void => {
    socket.says({ command: 'request_offer' });
    turns.waiting.splice(0).at(-1)?.enter();
  };
  ask();
  return { turns, socket, told, ask };
}

test('an offer is made when it is the turn of its peer; one that asks twice gets one', () => {
  const { turns, socket, told } = dialogue();
  const offers = () => socket.heard.filter(({ command }) => command === 'offer').length;
  expect(offers()).toBe(1);
  socket.says({ command: 'request_offer' });
  socket.says({ command: 'request_offer' });
  expect([offers(), turns.waiting.map(({ client }) => client), turns.left]).toEqual([1, ['192.0.2.1', '192.0.2.1'], 1]);
  turns.waiting[1]?.enter();
  expect([offers(), told]).toEqual([2, ['closed: the publisher asked for another offer']]);
  socket.says({ command: 'request_offer' });
  turns.waiting[2]?.refused('there is no room');
  expect(socket.heard.at(-1)).toEqual({ code: 503, error: 'there is no room' });
});

test('an answer is taken when it is the turn of its peer', () => {
  const { turns, socket, told } = dialogue();
  socket.answers('good');
  expect([turns.waiting.map(({ client }) => client), told]).toEqual([['192.0.2.1'], []]);
  turns.waiting[0]?.enter();
  expect(told).toEqual(['answered good', 'begun']);
});

test('an answer that is refused when its turn comes is answered so, and one without room to wait, too', () => {
  const [late, full] = [dialogue(), dialogue()];
  late.socket.answers('bad');
  late.turns.waiting[0]?.enter();
  expect(late.socket.heard.at(-1)).toEqual({ code: 403, error: 'Forbidden' });
  full.socket.answers('good');
  full.turns.waiting[0]?.refused('there is no room');
  expect(full.socket.heard.at(-1)).toEqual({ code: 503, error: 'there is no room' });
  expect([late.told, full.told]).toEqual([['closed: Forbidden'], ['closed: there is no room']]);
});

test('a peer that goes, or asks for another offer, waits no longer', () => {
  const { turns, socket, told, ask } = dialogue();
  socket.answers('good');
  ask();
  expect(turns.left).toBe(1);
  socket.answers('better');
  socket.terminate();
  expect(turns.left).toBe(2);
  turns.waiting[0]?.enter();
  expect(told).toEqual(['closed: the publisher asked for another offer', 'closed: the signalling connection closed']);
});
