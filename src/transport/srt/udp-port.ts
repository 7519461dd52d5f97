/** A UDP socket with SRT connections on it: the only place here that knows sockets and timers. */

import { openUdpSocket } from '../../native/udp/open-udp-socket.ts';
import type { UdpCounters, UdpSocket } from '../../native/udp/udp-socket.ts';
import type { Clock } from '../../util/clock.ts';
import { SrtCallFailed } from '../../wire/srt/caller.ts';
import type { SrtConnection } from '../../wire/srt/connection.ts';
import type { DatagramPeer } from '../../wire/srt/link.ts';
import { type MultiplexerOptions, type OutgoingCall, SrtMultiplexer, type SrtSession } from '../../wire/srt/multiplexer.ts';
import { RejectionCode } from '../../wire/srt/rejection.ts';

/** Minimum time from a tick to the next alarm, µs: earlier work is done with the next datagrams. */
const ALARM_INTERVAL = 12_000;
/** Minimum time between ticks while datagrams come, per connection, µs. */
const TICK_COST = 20;
const MIN_TICK_INTERVAL = 1000;
/** An alarm that is later than this, µs, was held up. */
const STALL = 20_000;
/** Asked of the system for each socket, bytes: bursts must not be lost while the event loop is busy. */
export const SRT_SOCKET_BUFFER = 4 * 1024 * 1024;

/** The socket to bind, and what its multiplexer needs. */
export interface UdpPortOptions extends Omit<MultiplexerOptions, 'sender' | 'onDue'> {
  readonly clock: Clock;
  /** Address to bind; an IPv6 address is recognised by its form. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** The socket failed for good; its connections end by their timeouts. */
  readonly onError: (error: Error) => void;
}

/** Owns socket, timer and connections; its opener closes it. */
export class SrtUdpPort {
  readonly multiplexer: SrtMultiplexer;
  /** The port bound. */
  readonly port: number;
  readonly #socket: UdpSocket;
  readonly #clock: Clock;
  /** When the alarm goes off, µs; infinite when it need not. */
  #alarmAt = Number.POSITIVE_INFINITY;
  #tickedAt = Number.NEGATIVE_INFINITY;
  readonly #onFault: ((error: unknown) => void) | undefined;
  #closed = false;

  private constructor(socket: UdpSocket, options: UdpPortOptions) {
    this.#socket = socket;
    this.multiplexer = new SrtMultiplexer({ ...options, sender: socket, onDue: () => this.#arm() });
    this.port = socket.port;
    this.#clock = options.clock;
    this.#onFault = options.onFault;
  }

  /** Binds the port. Rejects when that is not possible. */
  static async open(options: UdpPortOptions): Promise<SrtUdpPort> {
    const { host, port, onError } = options;
    let opened: SrtUdpPort | null = null;
    const socket = await openUdpSocket({
      ...{ host, port, bufferBytes: SRT_SOCKET_BUFFER, onError },
      onDatagram: (datagram, from) => opened?.multiplexer.receive(datagram, from, opened.now()),
      onFault: (error) => options.onFault?.(error),
      onTurn: () => {
        if (opened !== null) opened.#endTurn();
      },
      onAlarm: () => {
        if (opened !== null) opened.#wake();
      },
    });
    opened = new SrtUdpPort(socket, options);
    return opened;
  }

  /** Figures of the socket. */
  get counters(): UdpCounters {
    return this.#socket.counters;
  }

  /** The time all methods of connections want, µs. */
  now(): number {
    return this.#clock.monotonic() * 1000;
  }

  /** Sends the batched datagrams of several connections. */
  flush(): void {
    this.#socket.flush();
  }

  /** Calls a listener. Rejects with `SrtCallFailed`. */
  connect(peer: DatagramPeer, call: OutgoingCall, session: Omit<SrtSession, 'onOpen'>): Promise<SrtConnection> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new SrtCallFailed(RejectionCode.CLOSE, 'the port is closed'));
        return;
      }
      const events: SrtSession = {
        onOpen: resolve,
        onData: (payload) => session.onData(payload),
        onClosed: (reason) => session.onClosed(reason),
      };
      this.multiplexer.call(peer, call, events, reject, this.now());
      this.#socket.flush();
      this.#arm();
    });
  }

  /** Ends all connections, telling the peers, and gives the port back. Idempotent. */
  async close(detail: string): Promise<void> {
    if (this.#closed) return;
    this.multiplexer.close(detail, this.now());
    this.#socket.flush();
    this.#closed = true;
    await this.#socket.close();
  }

  /** The received datagrams may have made something due, which is sent with the rest. */
  #endTurn(): void {
    if (this.#closed) return;
    const now = this.now();
    const { dueAt, connections } = this.multiplexer;
    const interval = Math.min(ALARM_INTERVAL, MIN_TICK_INTERVAL + connections * TICK_COST);
    // An alarm that is overdue waits for the socket to be empty.
    if (now >= Math.max(dueAt, this.#tickedAt + interval) && now - this.#alarmAt < STALL) {
      this.#tick();
      return;
    }
    this.#socket.flush();
    this.#arm();
  }

  /** Sees to it that the next tick comes; without anything to come of itself there is none. */
  #arm(): void {
    const { dueAt } = this.multiplexer;
    const at = Math.max(dueAt, this.#tickedAt + ALARM_INTERVAL);
    if (this.#closed || dueAt === Number.POSITIVE_INFINITY || at === this.#alarmAt) return;
    // Waiting datagrams are read before timeouts are judged.
    if (this.now() - this.#alarmAt >= STALL) return;
    this.#alarmAt = at;
    this.#socket.alarm(Math.max(1, Math.floor((at - this.now()) / 1000) + 1));
  }

  #wake(): void {
    if (this.now() - this.#alarmAt < STALL) this.#tick();
    else {
      setImmediate(() => {
        try {
          this.#tick();
        } catch (error) {
          this.#onFault?.(error);
        }
      });
    }
  }

  #tick(): void {
    if (this.#closed) return;
    const now = this.now();
    this.#tickedAt = now;
    this.#alarmAt = Number.POSITIVE_INFINITY;
    try {
      this.multiplexer.tick(now);
      this.#socket.flush();
    } finally {
      this.#arm();
    }
  }
}
