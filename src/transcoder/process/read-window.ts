import { READ_WINDOW } from '../messages.ts';

const MAX_SECONDS = 3;

interface Sent {
  readonly bytes: number;
  readonly seconds: number;
}

/** How far a process that reads a file may run ahead of the server: by packets, bytes and time, and always by one packet. */
export class ReadWindow {
  readonly #sent: Sent[] = [];
  #bytes = 0;
  #latest = Number.NEGATIVE_INFINITY;

  /** Another packet may be sent. */
  get open(): boolean {
    const [first] = this.#sent;
    if (first === undefined) return true;
    return this.#sent.length < READ_WINDOW.packets && this.#bytes < READ_WINDOW.bytes && this.#latest - first.seconds < MAX_SECONDS;
  }

  /** A packet of `bytes`, to be decoded at `seconds`, has left. */
  sent(bytes: number, seconds: number): void {
    this.#sent.push({ bytes, seconds });
    this.#bytes += bytes;
    this.#latest = Math.max(this.#latest, seconds);
  }

  /** The server has taken the `count` oldest packets. */
  taken(count: number): void {
    for (const { bytes } of this.#sent.splice(0, count)) this.#bytes -= bytes;
  }

  /** Packets of another place in the file follow. */
  clear(): void {
    this.#sent.length = 0;
    this.#bytes = 0;
    this.#latest = Number.NEGATIVE_INFINITY;
  }
}
