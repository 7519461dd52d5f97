import { EventEmitter } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { DENIED, FakeLease } from '../../../../test/fakes/fake-gatekeeper.ts';
import { HeldTurns } from '../../../../test/fakes/held-turns.ts';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { type Admitted, OPEN, type Verdict } from '../../../access/access-check.ts';
import { NO_TURNS } from '../../../util/newcomer-turns.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { type DialogueOptions, OfferDialogue, type OfferedSession, type OfferRefusal } from './offer-dialogue.ts';

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

function dialogue({
  admit = () => OPEN,
  ...more
}: Partial<Pick<DialogueOptions<OfferedSession>, 'admit' | 'prepare' | 'turns' | 'targetOf'>> = {}) {
  const turns = new HeldTurns();
  const socket = new PeerSocket();
  const told: string[] = [];
  let onEnded: (reason: string) => void = () => undefined;
  const session: OfferedSession & { ended: boolean } = {
    ended: false,
    offer: () => 'v=0',
    candidates: () => [],
    answered: (sdp) => {
      if (sdp === 'bad') throw new ProtocolError('SDP', 'made up');
      told.push(`answered ${sdp}`);
    },
    announced: () => undefined,
    close: (reason, code) => told.push(`closed: ${reason}${code === undefined ? '' : ` (${code})`}`),
  };
  new OfferDialogue({
    socket: socket as unknown as WebSocket,
    target: { vhost: 'default', app: 'app', stream: 'live', playlist: '' },
    client: '192.0.2.1',
    admit,
    iceServers: null,
    logger: new RecordingLogger(),
    turns,
    peer: 'publisher',
    open: (request) => {
      onEnded = request.onEnded;
      return session;
    },
    isRefusal: (error): error is OfferRefusal => error instanceof ProtocolError,
    onAnswered: () => told.push('begun'),
    ...more,
  });
  onTestFinished(() => socket.terminate());
  const ask = (): void => {
    socket.says({ command: 'request_offer' });
    turns.waiting.splice(0).at(-1)?.enter();
  };
  ask();
  /** The session ends by itself. */
  const end = (): void => {
    session.ended = true;
    onEnded('it has ended');
  };
  return { turns, socket, told, ask, end };
}

test('an offer is made in its turn; two requests of a peer get one offer', () => {
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

test('an answer is accepted in its turn', () => {
  const { turns, socket, told } = dialogue();
  socket.answers('good');
  expect([turns.waiting.map(({ client }) => client), told]).toEqual([['192.0.2.1'], []]);
  turns.waiting[0]?.enter();
  expect(told).toEqual(['answered good', 'begun']);
});

test('an answer refused in its turn is answered 403, and one beyond the queue 503', () => {
  const [late, full] = [dialogue(), dialogue()];
  late.socket.answers('bad');
  late.turns.waiting[0]?.enter();
  expect(late.socket.heard.at(-1)).toEqual({ code: 403, error: 'Forbidden' });
  full.socket.answers('good');
  full.turns.waiting[0]?.refused('there is no room');
  expect(full.socket.heard.at(-1)).toEqual({ code: 503, error: 'there is no room' });
  expect([late.told, full.told]).toEqual([['closed: Forbidden'], ['closed: there is no room']]);
});

test('a peer that leaves, or asks for another offer, leaves the queue', () => {
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

const settled = (): Promise<void> => new Promise(setImmediate);

function judged(options: NonNullable<Parameters<typeof dialogue>[0]>) {
  return dialogue({ turns: NO_TURNS, ...options });
}

test('a refused peer gets the error that players check for, and nothing is prepared for it', () => {
  const prepared: string[] = [];
  const { socket } = judged({
    admit: () => DENIED,
    prepare: ({ stream }) => {
      prepared.push(stream);
      return null;
    },
  });
  expect(socket.heard).toEqual([{ code: 404, error: 'Cannot create offer' }]);
  expect([socket.readyState, prepared]).toEqual([2, []]);
});

test('a peer waits for its verdict: a repeated request is not asked about again, and gets one offer', async () => {
  const { promise, resolve } = Promise.withResolvers<Verdict>();
  let asked = 0;
  const { socket } = judged({
    admit: () => {
      asked += 1;
      return promise;
    },
  });
  socket.says({ command: 'request_offer' });
  expect([asked, socket.heard]).toEqual([1, []]);
  resolve(OPEN);
  await settled();
  expect(socket.heard.map(({ command }) => command)).toEqual(['offer']);
});

test.each<readonly [what: string, leave: (socket: PeerSocket) => void]>([
  ['leaves', (socket) => socket.terminate()],
  ['breaks the protocol', (socket) => socket.says({ command: 'nonsense' })],
])('a peer that %s before its verdict gets no offer, and its lease ends', async (_what, leave) => {
  const { promise, resolve } = Promise.withResolvers<Verdict>();
  const { socket } = judged({ admit: () => promise });
  leave(socket);
  const stay = new FakeLease();
  resolve(stay);
  await settled();
  expect([stay.closes, socket.heard.some(({ command }) => command === 'offer')]).toEqual([1, false]);
});

test('a peer that stops while its stream is fetched gets no session after the end of its lease', async () => {
  const fetched = Promise.withResolvers<void>();
  const stays: FakeLease[] = [];
  const { socket } = dialogue({
    admit: () => {
      stays.push(new FakeLease());
      return stays.at(-1) ?? OPEN;
    },
    prepare: () => (stays.length === 1 ? null : fetched.promise),
  });
  socket.says({ command: 'request_offer' });
  socket.says({ command: 'stop', id: socket.heard[0]?.id });
  fetched.resolve();
  await settled();
  expect(stays.map(({ closes }) => closes)).toEqual([1, 1]);
  expect(socket.heard.map(({ command }) => command)).toEqual(['offer']);
});

test.each([
  ['without access control', () => OPEN],
  ['with access control', () => new FakeLease()],
])('a peer that stops while its stream is fetched gets one offer, and only after a new request, %s', async (_where, admit) => {
  const offers = async (again: number): Promise<number> => {
    const fetched = Promise.withResolvers<void>();
    let asked = 0;
    const { socket } = judged({
      admit: () => {
        asked += 1;
        return admit();
      },
      // The second offer's stream is pulled, and the peer does not wait for it.
      prepare: () => (asked === 2 ? fetched.promise : null),
    });
    socket.says({ command: 'request_offer' });
    socket.says({ command: 'stop', id: socket.heard[0]?.id });
    for (let n = 0; n < again; n += 1) socket.says({ command: 'request_offer' });
    expect(asked).toBe(2);
    fetched.resolve();
    await settled();
    return socket.heard.filter(({ command }) => command === 'offer').length - 1;
  };
  expect([await offers(0), await offers(1), await offers(2)]).toEqual([0, 1, 1]);
});

test('a peer that leaves while its stream is fetched gets no session, and its lease ends', async () => {
  const fetched = Promise.withResolvers<void>();
  const stay = new FakeLease();
  const { socket } = judged({ admit: () => stay, prepare: () => fetched.promise });
  socket.says({ command: 'nonsense' });
  fetched.resolve();
  await settled();
  expect([stay.closes, socket.heard.some(({ command }) => command === 'offer')]).toEqual([1, false]);
});

test('a session whose time is over ends with the reason, and so does its connection', () => {
  const stay = new FakeLease();
  const { socket, told } = judged({ admit: () => stay });
  stay.expire?.('its time is over');
  expect([told[0], socket.readyState, stay.closes]).toEqual(['closed: its time is over (expired)', 2, 1]);
});

test('each offer has its own lease, which ends with its session from either side', () => {
  const stays: FakeLease[] = [];
  const admit = (): Admitted => {
    stays.push(new FakeLease());
    return stays.at(-1) ?? OPEN;
  };
  const { socket, end } = judged({ admit });
  socket.says({ command: 'request_offer' });
  expect(stays.map(({ closes }) => closes)).toEqual([1, 0]);
  end();
  expect(stays.map(({ closes }) => closes)).toEqual([1, 1]);
});

test('a control server may send each offer to another stream', async () => {
  const prepare = vi.fn(() => null);
  const targetOf = vi.fn(() => ({ vhost: 'other', app: 'b', stream: 'renamed', playlist: '' }));
  const stay = FakeLease.to('ws://other.example/b/renamed');
  const { socket } = dialogue({ admit: () => stay, targetOf, prepare });
  expect(socket.heard).toMatchObject([{ command: 'offer' }]);
  expect(prepare).toHaveBeenCalledWith({ vhost: 'other', app: 'b', stream: 'renamed', playlist: '' });
  expect(targetOf).toHaveBeenCalledWith(stay);
});
