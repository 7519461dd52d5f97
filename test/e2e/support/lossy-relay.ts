/** A UDP path that loses, repeats and reorders what the server sends. */
import { createSocket, type Socket } from 'node:dgram';

export interface LossyRelayOptions {
  /** Where the server's media port is, on loopback. */
  readonly server: number;
  /** Which media suffers; default: that to players. */
  readonly towards?: 'player' | 'server';
  /** Shares of media packets, 0 to 1. */
  readonly loss?: number;
  readonly duplication?: number;
  readonly reordering?: number;
}

/** Packets are held back this long, ms, to be overtaken. */
const HOLD_MS = 20;

export class LossyRelay {
  readonly #options: LossyRelayOptions;
  readonly #front: Socket;
  readonly #backs = new Map<number, Socket>();
  /** A linear congruential generator: every run loses the same packets. */
  #seed = 12_345;
  forwarded = 0;
  dropped = 0;

  private constructor(options: LossyRelayOptions, front: Socket) {
    this.#options = options;
    this.#front = front;
    front.on('message', (datagram, { port }) => {
      const send = (): void => this.#back(port).send(datagram, options.server, '127.0.0.1', () => undefined);
      if (options.towards === 'server') this.#carry(datagram, send);
      else send();
    });
  }

  static async open(options: LossyRelayOptions): Promise<LossyRelay> {
    const front = createSocket('udp4');
    await new Promise<void>((resolve) => front.bind(0, '127.0.0.1', resolve));
    return new LossyRelay(options, front);
  }

  /** What players are told instead of the server's port. */
  get port(): number {
    return this.#front.address().port;
  }

  close(): void {
    this.#front.close();
    for (const back of this.#backs.values()) back.close();
  }

  /** The socket that stands for a player towards the server. */
  #back(player: number): Socket {
    let back = this.#backs.get(player);
    if (back === undefined) {
      back = createSocket('udp4');
      back.on('message', (datagram) => {
        const send = (): void => this.#front.send(datagram, player, '127.0.0.1', () => undefined);
        if (this.#options.towards === 'server') send();
        else this.#carry(datagram, send);
      });
      this.#backs.set(player, back);
    }
    return back;
  }

  #carry(datagram: Buffer, send: () => void): void {
    const { loss = 0, duplication = 0, reordering = 0 } = this.#options;
    // Checks and the handshake pass: this is about media.
    const isMedia = (datagram[0] ?? 0) >= 128;
    if (isMedia && this.#random() < loss) {
      this.dropped += 1;
      return;
    }
    this.forwarded += 1;
    if (isMedia && this.#random() < reordering) setTimeout(send, HOLD_MS);
    else send();
    if (isMedia && this.#random() < duplication) send();
  }

  #random(): number {
    this.#seed = (Math.imul(this.#seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    return this.#seed / 0x8000_0000;
  }
}
