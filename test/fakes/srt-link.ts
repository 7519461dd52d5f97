/** Two SRT multiplexers with a bad link between them, and a clock that jumps from event to event: no sockets, no waiting. */

import type { SrtCallFailed } from '../../src/wire/srt/caller.ts';
import type { SrtCloseReason, SrtConnection } from '../../src/wire/srt/connection.ts';
import type { DatagramPeer } from '../../src/wire/srt/link.ts';
import type { OutgoingCall } from '../../src/wire/srt/multiplexer.ts';
import {
  type CallPolicy,
  type DatagramSender,
  type MultiplexerOptions,
  SrtMultiplexer,
  type SrtSession,
} from '../../src/wire/srt/multiplexer.ts';

const TICK = 5000;

/** A small generator of reproducible numbers from 0 to 1 (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Faults of the link, in each direction. */
export interface LinkFaults {
  /** 0 to 1. */
  readonly loss: number;
  /** µs. */
  readonly delay: number;
  /** Maximum deviation from `delay`, µs, which reorders packets. */
  readonly jitter: number;
  /** Share of packets that arrive twice. */
  readonly duplication?: number;
  /** Drops packets for which it returns true, besides those of `loss`. */
  readonly drops?: (datagram: Uint8Array, towardsListener: boolean) => boolean;
}

/** One end of a connection, with the received data. */
export class RecordingSession implements SrtSession {
  connection: SrtConnection | null = null;
  readonly received: Uint8Array[] = [];
  closed: SrtCloseReason | null = null;

  onOpen(connection: SrtConnection): void {
    this.connection = connection;
  }

  onData(payload: Uint8Array): void {
    this.received.push(payload);
  }

  onClosed(reason: SrtCloseReason): void {
    this.closed = reason;
  }
}

interface InTransit {
  readonly at: number;
  readonly order: number;
  readonly deliver: () => void;
}

export const CALLER: DatagramPeer = { address: '10.0.0.1', port: 1000 };
export const LISTENER: DatagramPeer = { address: '10.0.0.2', port: 9999 };

export class SimulatedLink {
  now = 1_000_000;
  readonly listener: SrtMultiplexer;
  readonly caller: SrtMultiplexer;
  /** Sessions the listener accepted. */
  readonly accepted: RecordingSession[] = [];
  /** Datagrams sent towards the listener and back. */
  sent = 0;
  readonly #faults: LinkFaults;
  readonly #random: () => number;
  #transit: InTransit[] = [];
  #order = 0;
  #nextTick = 1_000_000;

  constructor(options: {
    faults: LinkFaults;
    seed: number;
    policy?: Partial<CallPolicy>;
    listener?: Partial<MultiplexerOptions>;
    caller?: Partial<MultiplexerOptions>;
  }) {
    this.#faults = options.faults;
    this.#random = seeded(options.seed);
    const policy: CallPolicy = {
      passphrase: () => null,
      open: () => {
        const session = new RecordingSession();
        this.accepted.push(session);
        return session;
      },
      ...options.policy,
    };
    this.listener = new SrtMultiplexer({ ...options.listener, policy, sender: this.#sender(false) });
    this.caller = new SrtMultiplexer({ ...options.caller, policy: null, sender: this.#sender(true) });
  }

  /** Calls the listener; `failure` is set when the call fails. */
  call(call: Partial<OutgoingCall> = {}): { session: RecordingSession; failure: () => SrtCallFailed | null } {
    const session = new RecordingSession();
    let failure: SrtCallFailed | null = null;
    const full: OutgoingCall = {
      streamId: '',
      passphrase: null,
      keyLength: null,
      latency: { receive: 120, peer: 120 },
      timeout: 3_000_000,
      ...call,
    };
    this.caller.call(
      LISTENER,
      full,
      session,
      (error) => {
        failure = error;
      },
      this.now,
    );
    return { session, failure: () => failure };
  }

  /** Lets `duration` µs pass; `onStep` is called at every tick. */
  run(duration: number, onStep: (now: number) => void = () => undefined): void {
    const end = this.now + duration;
    for (;;) {
      const next = this.#transit[0];
      const at = Math.min(next?.at ?? Number.POSITIVE_INFINITY, this.#nextTick);
      if (at > end) break;
      this.now = at;
      if (next !== undefined && next.at <= this.#nextTick) {
        this.#transit.shift();
        next.deliver();
        continue;
      }
      this.#nextTick += TICK;
      this.listener.tick(this.now);
      this.caller.tick(this.now);
      onStep(this.now);
    }
    this.now = end;
  }

  /** Puts a datagram on the link without loss, as if `from` had sent it. */
  inject(datagram: Uint8Array, from: DatagramPeer, towardsListener: boolean): void {
    (towardsListener ? this.listener : this.caller).receive(datagram, from, this.now);
  }

  #sender(towardsListener: boolean): DatagramSender {
    return {
      send: (_to, head, payload) => {
        this.sent += 1;
        const datagram = Buffer.concat(payload === null ? [head] : [head, payload]);
        const { loss, duplication = 0, drops } = this.#faults;
        if (this.#random() < loss || drops?.(datagram, towardsListener) === true) return;
        this.#carry(datagram, towardsListener);
        if (this.#random() < duplication) this.#carry(Buffer.from(datagram), towardsListener);
      },
      flush: () => undefined,
    };
  }

  #carry(datagram: Uint8Array, towardsListener: boolean): void {
    const { delay, jitter } = this.#faults;
    const at = this.now + delay + (this.#random() * 2 - 1) * jitter;
    this.#order += 1;
    const item = {
      at,
      order: this.#order,
      deliver: () => this.inject(datagram, towardsListener ? CALLER : LISTENER, towardsListener),
    };
    let index = this.#transit.length;
    while (index > 0 && (this.#transit[index - 1]?.at ?? 0) > at) index -= 1;
    this.#transit.splice(index, 0, item);
  }
}

/** A payload that contains its number and can be verified. */
export function numbered(index: number, length = 1316): Uint8Array {
  const payload = new Uint8Array(length).fill(index % 251);
  new DataView(payload.buffer).setUint32(0, index);
  return payload;
}

/** The numbers of payloads made by `numbered`; -1 for one with wrong bytes. */
export function numbersOf(payloads: readonly Uint8Array[]): number[] {
  return payloads.map((payload) => {
    const index = new DataView(payload.buffer, payload.byteOffset).getUint32(0);
    return payload.subarray(4).every((byte) => byte === index % 251) ? index : -1;
  });
}
