/** A TLS connection as a stream, for another protocol on it. */
import { Duplex } from 'node:stream';
import type { Wire } from '../wire.ts';

/** Owns the wire, which is paused. */
export class SecureDuplex extends Duplex {
  readonly #wire: Wire;
  #written: ((error?: Error | null) => void) | null = null;
  #bytesSent = 0;

  constructor(wire: Wire) {
    super({ allowHalfOpen: true });
    this.#wire = wire;
    wire.open({
      data: (chunk) => {
        if (!this.push(chunk)) wire.pause();
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
    this.#wire.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#written = () => {
      this.#bytesSent += chunk.length;
      done();
    };
    if (this.#wire.send('', [chunk], null)) this.#onWritten();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#wire.end();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#wire.destroy();
    done(error);
  }

  #onWritten(): void {
    const written = this.#written;
    this.#written = null;
    written?.();
  }
}
