import type { CloseReason, IngestStream, SourcePacket } from './ingest.ts';

/** The stream behind a link. */
export interface LinkedStream extends IngestStream {
  /** The source says that it has ended. */
  sourceLeft(reason: CloseReason): void;
}

/** What a source that was pushed to us holds of its stream. Another source may take the stream over: then the link is closed, and the stream is not. */
export class SourceLink implements IngestStream {
  readonly #stream: LinkedStream;
  #cut = false;

  constructor(stream: LinkedStream) {
    this.#stream = stream;
  }

  get vhost(): string {
    return this.#stream.vhost;
  }

  get name(): string {
    return this.#stream.name;
  }

  get closed(): boolean {
    return this.#cut || this.#stream.closed;
  }

  get attended(): boolean {
    return !this.#cut && this.#stream.attended;
  }

  setTracks(...announced: Parameters<IngestStream['setTracks']>): void {
    if (!this.#cut) this.#stream.setTracks(...announced);
  }

  push(packet: SourcePacket): void {
    if (!this.#cut) this.#stream.push(packet);
  }

  countBytes(bytes: number): void {
    if (!this.#cut) this.#stream.countBytes(bytes);
  }

  close(reason: CloseReason): void {
    if (this.#cut) return;
    this.#cut = true;
    this.#stream.sourceLeft(reason);
  }

  /** The stream has another source, or none, from now on. Idempotent. */
  cut(): void {
    this.#cut = true;
  }
}
