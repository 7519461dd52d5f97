/** A TCP client that sends given bytes and waits for expected ones. */
import { connect, type Socket } from 'node:net';

/** Deadline for expected bytes, ms; long enough for a busy machine. */
const DEADLINE_MS = 15_000;

export class RawClient {
  readonly socket: Socket;
  readonly #chunks: Buffer[] = [];
  readonly #watchers = new Set<() => void>();
  #closed = false;
  #ended = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#changed();
    });
    socket.on('end', () => {
      this.#ended = true;
      this.#changed();
    });
    socket.on('close', () => {
      this.#closed = true;
      this.#changed();
    });
    socket.on('error', () => {});
  }

  static async open(port: number, options: { allowHalfOpen?: boolean; localAddress?: string } = {}): Promise<RawClient> {
    const socket = connect({ port, host: '127.0.0.1', ...options });
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new RawClient(socket);
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString('latin1');
  }

  get ended(): boolean {
    return this.#ended || this.#closed;
  }

  send(data: string | Buffer): void {
    if (typeof data === 'string') this.socket.write(data, 'latin1');
    else this.socket.write(data);
  }

  /** Waits until `enough` holds; rejects after `ms`. */
  async until(enough: (text: string) => boolean, ms = DEADLINE_MS): Promise<string> {
    await this.#watch(
      () => enough(this.text),
      ms,
      () => `got only ${JSON.stringify(this.text.slice(0, 400))}`,
    );
    return this.text;
  }

  /** Waits for the server to close its side; returns everything received. */
  async end(ms = DEADLINE_MS): Promise<string> {
    await this.#watch(
      () => this.ended,
      ms,
      () => `still open after ${JSON.stringify(this.text.slice(0, 400))}`,
    );
    return this.text;
  }

  destroy(): void {
    this.socket.destroy();
  }

  #changed(): void {
    for (const watcher of this.#watchers) watcher();
  }

  async #watch(done: () => boolean, ms: number, complaint: () => string): Promise<void> {
    if (done()) return;
    await new Promise<void>((resolve, reject) => {
      const finish = (error?: Error): void => {
        clearTimeout(timer);
        this.#watchers.delete(check);
        if (error === undefined) resolve();
        else reject(error);
      };
      const check = (): void => {
        if (done()) finish();
        else if (this.#closed) finish(new Error(`the connection closed: ${complaint()}`));
      };
      const timer = setTimeout(() => finish(new Error(complaint())), ms);
      this.#watchers.add(check);
    });
  }
}
