/** A UDP relay that loses and delays datagrams in a reproducible way. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { seeded } from '../fakes/srt-link.ts';

export interface BadLinkOptions {
  /** Destination port of the datagrams, on loopback. */
  readonly to: number;
  /** 0 to 1, in each direction. */
  readonly loss: number;
  /** ms, in each direction. */
  readonly delay: number;
  /** Maximum deviation from `delay`, ms. */
  readonly jitter: number;
  readonly seed: number;
}

/** One port in front of another. Each client gets its own socket, as behind a NAT. The caller closes it. */
export class BadLink {
  /** Datagrams passed on and lost, in both directions. */
  carried = 0;
  lost = 0;
  readonly #options: BadLinkOptions;
  readonly #random: () => number;
  readonly #front: Socket;
  readonly #clients = new Map<number, Socket>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #closed = false;

  private constructor(options: BadLinkOptions, front: Socket) {
    this.#options = options;
    this.#random = seeded(options.seed);
    this.#front = front;
    front.on('message', (datagram, from) => this.#forward(datagram, from));
  }

  static async open(options: BadLinkOptions): Promise<BadLink> {
    const front = createSocket('udp4');
    front.bind(0, '127.0.0.1');
    await once(front, 'listening');
    return new BadLink(options, front);
  }

  get port(): number {
    return this.#front.address().port;
  }

  /** Idempotent. */
  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    for (const socket of this.#clients.values()) socket.close();
    this.#clients.clear();
    if (!this.#closed) this.#front.close();
    this.#closed = true;
  }

  #forward(datagram: Buffer, from: RemoteInfo): void {
    let back = this.#clients.get(from.port);
    if (back === undefined) {
      back = createSocket('udp4');
      back.on('message', (answer) => this.#carry(() => this.#front.send(answer, from.port, '127.0.0.1')));
      this.#clients.set(from.port, back);
    }
    const socket = back;
    this.#carry(() => socket.send(datagram, this.#options.to, '127.0.0.1'));
  }

  #carry(send: () => void): void {
    const { loss, delay, jitter } = this.#options;
    if (this.#random() < loss) {
      this.lost += 1;
      return;
    }
    this.carried += 1;
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        send();
      },
      delay + (this.#random() * 2 - 1) * jitter,
    );
    this.#timers.add(timer);
  }
}
