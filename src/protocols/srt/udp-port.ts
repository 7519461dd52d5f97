/** A UDP socket with SRT connections on it: the only place here that knows sockets and timers. */

import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import type { Clock } from '../../util/clock.ts';
import { SrtCallFailed } from './caller.ts';
import type { SrtConnection } from './connection.ts';
import { type DatagramSender, type MultiplexerOptions, type OutgoingCall, SrtMultiplexer, type SrtSession } from './multiplexer.ts';
import type { PeerAddress } from './peer-address.ts';
import { RejectionCode } from './rejection.ts';

/** How often connections look at the time. */
const TICK_MS = 5;
/** Bursts must not be lost while the event loop is busy; the system may grant less. */
const SOCKET_BUFFER = 4 * 1024 * 1024;

export interface UdpPortOptions extends Omit<MultiplexerOptions, 'sender'> {
  readonly clock: Clock;
  /** Address to bind; IPv6 is told by its form. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** The socket failed for good; its connections end by their timeouts. */
  readonly onError: (error: Error) => void;
}

/** Sends each datagram at once. One that the system does not take is like one that gets lost. */
class DgramSender implements DatagramSender {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  send(to: PeerAddress, head: Uint8Array, payload: Uint8Array | null): void {
    this.#socket.send(payload === null ? head : [head, payload], to.port, to.address);
  }

  flush(): void {
    // Nothing is gathered.
  }
}

export class SrtUdpPort {
  readonly multiplexer: SrtMultiplexer;
  readonly #socket: Socket;
  readonly #sender: DgramSender;
  readonly #clock: Clock;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  private constructor(socket: Socket, options: UdpPortOptions) {
    this.#socket = socket;
    this.#clock = options.clock;
    this.#sender = new DgramSender(socket);
    this.multiplexer = new SrtMultiplexer({ ...options, sender: this.#sender });
    socket.on('message', (datagram, from) => {
      if (this.#closed) return;
      this.multiplexer.receive(datagram, from, this.now());
      this.#sender.flush();
      this.#keepTime();
    });
    socket.on('error', (error) => options.onError(error));
  }

  /** Binds the port. Rejects when that is not possible. */
  static async open(options: UdpPortOptions): Promise<SrtUdpPort> {
    const ipv6 = isIPv6(options.host);
    // Addresses come from datagrams and need no resolver, which would put off every send to a later turn.
    const lookup: SocketOptions['lookup'] = (hostname, _options, done) => done(null, hostname, ipv6 ? 6 : 4);
    const socket = createSocket({ type: ipv6 ? 'udp6' : 'udp4', lookup, recvBufferSize: SOCKET_BUFFER, sendBufferSize: SOCKET_BUFFER });
    const listening = once(socket, 'listening');
    try {
      socket.bind({ address: options.host, port: options.port, exclusive: true });
      await listening;
    } catch (error) {
      socket.close();
      throw error;
    }
    return new SrtUdpPort(socket, options);
  }

  /** The port bound. */
  get port(): number {
    return this.#closed ? 0 : this.#socket.address().port;
  }

  /** The time all methods of connections want, µs. */
  now(): number {
    return this.#clock.monotonic() * 1000;
  }

  /** Sends what was gathered for several connections. */
  flush(): void {
    this.#sender.flush();
  }

  /** Calls a listener. Rejects with `SrtCallFailed`. */
  connect(peer: PeerAddress, call: OutgoingCall, session: Omit<SrtSession, 'onOpen'>): Promise<SrtConnection> {
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
      this.#sender.flush();
      this.#keepTime();
    });
  }

  /** Ends all connections, telling the peers, and gives the port back. Idempotent. */
  async close(detail: string): Promise<void> {
    if (this.#closed) return;
    this.multiplexer.close(detail, this.now());
    this.#sender.flush();
    this.#closed = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await new Promise<void>((resolve) => {
      this.#socket.close(() => resolve());
    });
  }

  /** The timer runs only while somebody needs it. */
  #keepTime(): void {
    if (this.#timer !== null || !this.multiplexer.busy) return;
    // After a stall of the event loop, what waits in the socket is read before anybody is judged.
    this.#timer = setInterval(() => setImmediate(() => this.#tick()), TICK_MS);
  }

  #tick(): void {
    if (this.#closed) return;
    this.multiplexer.tick(this.now());
    this.#sender.flush();
    if (this.multiplexer.busy || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}
