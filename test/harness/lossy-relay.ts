/** A UDP path that loses, repeats, reorders and slows down the server's packets. */
import { createSocket, type Socket } from 'node:dgram';

export interface LossyRelayOptions {
  /** The server's media port on loopback. */
  readonly server: number;
  /** Affected direction; default: to players. */
  readonly towards?: 'player' | 'server';
  /** Shares of media packets, 0 to 1. */
  readonly loss?: number;
  readonly duplication?: number;
  readonly reordering?: number;
}

/** Maximum wait of packets for a narrow path, ms; beyond it they are lost. */
const QUEUE_MS = 300;
/** Delay of packets that others overtake, ms. */
const HOLD_MS = 20;

export class LossyRelay {
  readonly #options: LossyRelayOptions;
  readonly #front: Socket;
  readonly #backs = new Map<number, Socket>();
  /** A linear congruential generator: every run loses the same packets. */
  #seed = 12_345;
  #closed = false;
  /** Bits per second towards players. */
  capacity = Number.POSITIVE_INFINITY;
  forwarded = 0;
  dropped = 0;
  repeated = 0;
  /** Number of packets that were held back. */
  overtaken = 0;
  /** Time at which the path is free again, ms. */
  #free = 0;

  private constructor(options: LossyRelayOptions, front: Socket) {
    this.#options = options;
    this.#front = front;
    front.on('message', (datagram, { port }) => {
      const send = (): void => {
        if (!this.#closed) this.#back(port).send(datagram, options.server, '127.0.0.1', () => undefined);
      };
      if (options.towards === 'server') this.#carry(datagram, send);
      else send();
    });
  }

  static async open(options: LossyRelayOptions): Promise<LossyRelay> {
    const front = createSocket('udp4');
    await new Promise<void>((resolve) => front.bind(0, '127.0.0.1', resolve));
    return new LossyRelay(options, front);
  }

  /** The port that players use in place of the server's. */
  get port(): number {
    return this.#front.address().port;
  }

  close(): void {
    this.#closed = true;
    this.#front.close();
    for (const back of this.#backs.values()) back.close();
  }

  /** The socket that represents a player towards the server. */
  #back(player: number): Socket {
    let back = this.#backs.get(player);
    if (back === undefined) {
      back = createSocket('udp4');
      back.on('message', (datagram) => {
        const send = (): void => {
          // The test may have ended meanwhile.
          if (!this.#closed) this.#front.send(datagram, player, '127.0.0.1', () => undefined);
        };
        if (this.#options.towards === 'server') send();
        else this.#carry(datagram, send);
      });
      this.#backs.set(player, back);
    }
    return back;
  }

  #carry(datagram: Buffer, send: () => void): void {
    const { loss = 0, duplication = 0, reordering = 0 } = this.#options;
    // Checks and handshakes pass unharmed: the tests concern media.
    const isMedia = (datagram[0] ?? 0) >= 128;
    if (isMedia && this.#random() < loss) {
      this.dropped += 1;
      return;
    }
    const now = performance.now();
    const wait = Math.max(0, this.#free - now);
    if (isMedia && wait > QUEUE_MS) {
      this.dropped += 1;
      return;
    }
    this.#free = now + wait + (datagram.length * 8000) / this.capacity;
    this.forwarded += 1;
    if (wait > 0) setTimeout(send, wait);
    else if (isMedia && this.#random() < reordering) {
      this.overtaken += 1;
      setTimeout(send, HOLD_MS);
    } else send();
    if (isMedia && this.#random() < duplication) {
      this.repeated += 1;
      send();
    }
  }

  #random(): number {
    this.#seed = (Math.imul(this.#seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return this.#seed / 0x8000_0000;
  }
}
