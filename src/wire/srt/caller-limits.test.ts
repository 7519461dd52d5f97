/** Limits of one address at an SRT port. */
import { describe, expect, test } from 'vitest';
import { RecordingSession } from '../../../test/fakes/srt-link.ts';
import type { SrtCallFailed } from './caller.ts';
import { HandshakeType, serializeHandshake } from './handshake.ts';
import type { DatagramPeer } from './link.ts';
import { type CallPolicy, type DatagramSender, type MultiplexerOptions, SrtMultiplexer } from './multiplexer.ts';
import { RejectionCode } from './rejection.ts';
import { handshakeWith } from './terms.ts';

const PORT: DatagramPeer = { address: '10.0.0.2', port: 9999 };
const RIGHT = 'correct horse battery';
const WRONG = 'wrong horse, wrong battery';

/** Callers at many addresses and one listener, without a network between them. */
class Exchange {
  now = 1_000_000;
  accepted = 0;
  deferred = 0;
  readonly listener: SrtMultiplexer;
  readonly #callers = new Map<string, SrtMultiplexer>();
  #waiting: (() => void)[] = [];

  constructor(options: Partial<MultiplexerOptions>) {
    const policy: CallPolicy = {
      passphrase: () => RIGHT,
      open: () => {
        this.accepted += 1;
        return new RecordingSession();
      },
      onDeferred: () => {
        this.deferred += 1;
      },
    };
    const sender = this.#sender((to) => (datagram) => this.#callers.get(to.address)?.receive(datagram, PORT, this.now));
    this.listener = new SrtMultiplexer({ ...options, policy, sender });
  }

  /** Calls from `address`; `code` of the refusal, null while there is none. */
  call(
    address: string,
    passphrase: string,
    timeout = 3_000_000,
  ): { readonly code: () => RejectionCode | null; readonly session: RecordingSession } {
    let caller = this.#callers.get(address);
    if (caller === undefined) {
      const sender = this.#sender(() => (datagram) => this.listener.receive(datagram, { address, port: 5000 }, this.now));
      caller = new SrtMultiplexer({ policy: null, sender });
      this.#callers.set(address, caller);
    }
    const session = new RecordingSession();
    let code: RejectionCode | null = null;
    const call = { streamId: 'a', passphrase, keyLength: null, latency: { receive: 120, peer: 120 }, timeout };
    const onFailed = (error: SrtCallFailed): void => {
      code = error.code as RejectionCode;
    };
    caller.call(PORT, call, session, onFailed, this.now);
    return { code: () => code, session };
  }

  /** Lets `duration` µs pass. */
  run(duration: number): void {
    for (const end = this.now + duration; this.now < end; this.now += 10_000) {
      while (this.#waiting.length > 0) for (const deliver of this.#waiting.splice(0)) deliver();
      this.listener.tick(this.now);
      for (const caller of this.#callers.values()) caller.tick(this.now);
    }
  }

  #sender(route: (to: DatagramPeer) => (datagram: Uint8Array) => void): DatagramSender {
    return {
      send: (to, head, payload) => {
        const datagram = Buffer.concat(payload === null ? [head] : [head, payload]);
        this.#waiting.push(() => route(to)(datagram));
      },
      flush: () => undefined,
    };
  }
}

describe('wrong passphrases', () => {
  test('of one address do not use up the budget of the port', () => {
    const exchange = new Exchange({ maxKeyTrialsPerSecond: 100, maxWrongKeysPerSecond: 20 });
    const wrong = Array.from({ length: 200 }, () => exchange.call('192.0.2.1', WRONG));
    exchange.run(50_000);
    const right = Array.from({ length: 10 }, (_, n) => exchange.call(`198.51.100.${n}`, RIGHT));
    exchange.run(50_000);
    expect(right.filter(({ session }) => session.connection !== null)).toHaveLength(10);
    expect(wrong.filter(({ code }) => code() === RejectionCode.BAD_SECRET).length).toBeLessThanOrEqual(22);
    expect([exchange.accepted, exchange.deferred > 150]).toEqual([10, true]);
  });

  test('of an address do not count once it has the right one, so that many encoders can share an address', () => {
    const exchange = new Exchange({ maxKeyTrialsPerSecond: 100, maxWrongKeysPerSecond: 2 });
    const right = Array.from({ length: 30 }, () => exchange.call('192.0.2.1', RIGHT));
    exchange.run(50_000);
    expect([exchange.accepted, exchange.deferred]).toEqual([30, 0]);
    expect(right.every(({ code }) => code() === null)).toBe(true);
  });
});

test('a flood of inductions is answered in part, and repeated ones get in', () => {
  const answered: number[] = [];
  const sender: DatagramSender = { send: ({ port }) => void answered.push(port), flush: () => undefined };
  const policy: CallPolicy = { passphrase: () => null, open: () => new RecordingSession() };
  const listener = new SrtMultiplexer({ policy, sender });
  const greet = (port: number, now: number): void => {
    const induction = handshakeWith({ type: HandshakeType.INDUCTION, version: 4, socketId: port, cookie: 0, initialSequence: 1 });
    listener.receive(serializeHandshake(induction, { destination: 0, timestamp: 0, peer: PORT.address }), { ...PORT, port }, now);
  };
  for (let port = 1; port <= 1000; port += 1) greet(port, 1_000_000);
  expect(answered).toHaveLength(200);
  for (let port = 1001; port <= 1100; port += 1) greet(port, 1_250_000);
  expect(answered.slice(200)).toEqual(Array.from({ length: 100 }, (_, n) => 1001 + n));
  expect(listener.counters.unanswered).toBe(800);
});
