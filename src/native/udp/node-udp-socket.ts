/** Node's own sockets: a system call for each datagram. */
import { createSocket, type Socket, type SocketOptions } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import type { SocketAddress, UdpCounters, UdpSocket, UdpSocketOptions } from './udp-socket.ts';

export class NodeUdpSocket implements UdpSocket {
  readonly port: number;
  readonly #socket: Socket;
  #sent = 0;
  #received = 0;
  #errors = 0;
  #closed = false;
  #timer: NodeJS.Timeout | null = null;
  readonly #onAlarm: () => void;

  private constructor(socket: Socket, { onDatagram, onTurn, onAlarm, onError, onFault }: UdpSocketOptions) {
    this.#socket = socket;
    this.#onAlarm = () => {
      try {
        onAlarm();
      } catch (error) {
        if (onFault === undefined) throw error;
        onFault(error);
      }
    };
    this.port = socket.address().port;
    socket.on('message', (datagram, from) => {
      if (this.#closed) return;
      this.#received += 1;
      try {
        onDatagram(datagram, from);
        if (!this.#closed) onTurn();
      } catch (error) {
        if (onFault === undefined) throw error;
        onFault(error);
      }
    });
    socket.on('error', onError);
  }

  static async open(options: UdpSocketOptions): Promise<NodeUdpSocket> {
    const { host, port, bufferBytes } = options;
    const ipv6 = isIPv6(host);
    // Addresses come from datagrams and need no resolver, which would put off every send to a later turn.
    const lookup: SocketOptions['lookup'] = (hostname, _options, done) => done(null, hostname, ipv6 ? 6 : 4);
    const buffers = { recvBufferSize: bufferBytes, sendBufferSize: bufferBytes };
    const socket = createSocket({ type: ipv6 ? 'udp6' : 'udp4', ipv6Only: ipv6, lookup, ...buffers });
    const listening = once(socket, 'listening');
    try {
      socket.bind({ address: host, port, exclusive: true });
      await listening;
    } catch (error) {
      socket.close();
      throw error;
    }
    return new NodeUdpSocket(socket, options);
  }

  get counters(): UdpCounters {
    const calls = { sendCalls: Number.NaN, receiveCalls: Number.NaN };
    return { datagramsSent: this.#sent, sendErrors: this.#errors, dropped: 0, datagramsReceived: this.#received, ...calls };
  }

  send(to: SocketAddress, head: Uint8Array, payload: Uint8Array | null): void {
    if (this.#closed) return;
    this.#sent += 1;
    this.#socket.send(payload === null ? head : [head, payload], to.port, to.address, (error) => {
      if (error !== null) this.#errors += 1;
    });
  }

  flush(): void {
    // Nothing is batched.
  }

  alarm(ms: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = this.#closed ? null : setTimeout(this.#onAlarm, ms);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await new Promise<void>((resolve) => {
      this.#socket.close(() => resolve());
    });
  }
}
