/** A TLS connection as a stream, for another protocol on it. */
import { Duplex } from 'node:stream';
import type { ByteTransport } from '../byte-transport.ts';

/** Owns the transport, which is paused. */
export class SecureDuplex extends Duplex {
  readonly #transport: ByteTransport;
  #written: ((error?: Error | null) => void) | null = null;
  #bytesSent = 0;

  constructor(transport: ByteTransport) {
    super({ allowHalfOpen: true });
    this.#transport = transport;
    transport.open({
      data: (chunk) => {
        if (!this.push(chunk)) transport.pause();
      },
      // Each write waits for the previous one.
      drain: () => {},
      written: (complete) => {
        if (complete) this.#onWritten();
      },
      end: () => void this.push(null),
      timeout: () => {},
      failed: () => {},
      closed: () => void this.destroy(),
    });
  }

  /** Written bytes, as sockets count them. */
  get bytesWritten(): number {
    return this.#bytesSent + this.writableLength;
  }

  override _read(): void {
    this.#transport.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#written = () => {
      this.#bytesSent += chunk.length;
      done();
    };
    if (this.#transport.send('', [chunk], null)) this.#onWritten();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#transport.end();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#transport.destroy();
    done(error);
  }

  #onWritten(): void {
    const written = this.#written;
    this.#written = null;
    written?.();
  }
}
