import type { Duplex } from 'node:stream';
import { type FrameHeader, serializeFrameHeader } from './process-frames.ts';

const EMPTY = new Uint8Array(0);
/** Bytes that may wait for the other end before the writer counts as congested. */
const CONGESTED_AT = 16 * 1024 * 1024;

/** Writes frames to the other process; everything written in one turn of the event loop leaves in one system call. */
export class FrameWriter {
  readonly #socket: Duplex;
  #corked = false;

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  /** The other end reads too slowly: callers that can wait should await `drained`. */
  get congested(): boolean {
    return this.#socket.writableLength > CONGESTED_AT;
  }

  /** `payload` is not copied and must not change until it is sent. */
  write(header: FrameHeader, payload: Uint8Array = EMPTY): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) return;
    if (!this.#corked) {
      this.#corked = true;
      this.#socket.cork();
      setImmediate(this.#uncork);
    }
    this.#socket.write(serializeFrameHeader(header, payload.length));
    if (payload.length > 0) this.#socket.write(payload);
  }

  /** Writes a rare frame whose payload is JSON. */
  writeJson(header: Pick<FrameHeader, 'type'> & Partial<FrameHeader>, value: unknown): void {
    this.write({ flags: 0, job: 0, id: 0, pts: 0, dts: 0, duration: 0, ...header }, Buffer.from(JSON.stringify(value)));
  }

  /** Resolves once the other end has caught up, or is gone. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        this.#socket.off('drain', done);
        this.#socket.off('close', done);
        resolve();
      };
      this.#socket.on('drain', done);
      this.#socket.on('close', done);
    });
  }

  readonly #uncork = (): void => {
    this.#corked = false;
    this.#socket.uncork();
  };
}
