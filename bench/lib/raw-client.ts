/** A keep-alive HTTP/1.1 connection that reads as little of the answers as possible, so that hundreds fit into one process. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** One answer. */
export interface RawAnswer {
  readonly status: number;
  /** Bytes of the body. */
  readonly bytes: number;
  /** The body, if it was to be kept. */
  readonly body: Buffer | null;
}

const END_OF_HEAD = Buffer.from('\r\n\r\n');

/** One request at a time. The caller of `open` closes it. */
export class RawClient {
  readonly #socket: Socket;
  readonly #port: number;
  #settle: { resolve: (answer: RawAnswer) => void; reject: (error: Error) => void } | null = null;
  #head: Buffer = Buffer.alloc(0);
  /** Remaining bytes of the body; null while the head is read. */
  #left: number | null = null;
  #status = 0;
  #length = 0;
  #kept: Buffer[] | null = null;

  private constructor(socket: Socket, port: number) {
    this.#socket = socket;
    this.#port = port;
    socket.on('data', (bytes: Buffer) => this.#onData(bytes));
    socket.on('error', (error) => this.#fail(error));
    socket.on('close', () => this.#fail(new Error('the server has closed the connection')));
  }

  /** Connects to a port of this machine. */
  static async open(port: number): Promise<RawClient> {
    const socket = connect(port, '127.0.0.1').setNoDelay(true);
    await once(socket, 'connect');
    return new RawClient(socket, port);
  }

  /** `headers`: complete lines, each with its line end. Rejects when the connection ends, or when the answer has no length. */
  async get(path: string, { keep = false, headers = '' }: { keep?: boolean; headers?: string } = {}): Promise<RawAnswer> {
    this.#kept = keep ? [] : null;
    const answered = new Promise<RawAnswer>((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${this.#port}\r\n${headers}\r\n`);
    return await answered;
  }

  close(): void {
    this.#socket.destroy();
  }

  #onData(bytes: Buffer): void {
    let body = bytes;
    if (this.#left === null) {
      const head = this.#head.length === 0 ? bytes : Buffer.concat([this.#head, bytes]);
      const end = head.indexOf(END_OF_HEAD);
      if (end < 0) {
        this.#head = head;
        return;
      }
      const text = head.toString('latin1', 0, end);
      const length = /\r\ncontent-length: *(\d+)/i.exec(text)?.[1];
      if (length === undefined) {
        this.#fail(new Error(`an answer does not tell its length:\n${text}`));
        return;
      }
      this.#head = Buffer.alloc(0);
      this.#status = Number(text.slice(9, 12));
      this.#length = Number(length);
      this.#left = this.#length;
      body = head.subarray(end + END_OF_HEAD.length);
    }
    this.#left -= body.length;
    if (this.#kept !== null && body.length > 0) this.#kept.push(body);
    if (this.#left > 0) return;
    this.#left = null;
    const settle = this.#settle;
    this.#settle = null;
    settle?.resolve({ status: this.#status, bytes: this.#length, body: this.#kept === null ? null : Buffer.concat(this.#kept) });
  }

  #fail(error: Error): void {
    this.#settle?.reject(error);
    this.#settle = null;
  }
}
