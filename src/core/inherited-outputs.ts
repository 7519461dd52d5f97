import type { CloseReason } from './ingest.ts';
import type { OutboundStream } from './outbound-stream.ts';

/** Outbound streams that continue with new outputs. The maker of the outputs closes the remaining streams. */
export class InheritedOutputs {
  readonly #streams: Map<string, OutboundStream>;

  constructor(streams: readonly OutboundStream[] = []) {
    this.#streams = new Map(streams.map((stream) => [stream.name, stream]));
  }

  /** The streams that no output has taken. */
  get streams(): readonly OutboundStream[] {
    return [...this.#streams.values()];
  }

  /** The stream of that name, once; null when there is none. */
  take(name: string): OutboundStream | null {
    const stream = this.#streams.get(name) ?? null;
    this.#streams.delete(name);
    return stream;
  }

  /** Ends the streams that no output has taken, and returns them. Idempotent. */
  close(reason: CloseReason): readonly OutboundStream[] {
    const { streams } = this;
    this.#streams.clear();
    for (const stream of streams) stream.close(reason);
    return streams;
  }
}
