/** The shared blocks in a delivery thread, with the number of pending answers that need each. */
import type { Span } from '../feed/messages.ts';

interface Block {
  readonly bytes: Buffer;
  /** Spans in answers that are not written completely. */
  users: number;
  retired: boolean;
}

/** Answers are sent from the shared memory without a copy. */
export class BlockTable {
  readonly #blocks = new Map<number, Block>();
  readonly #onIdle: (block: number) => void;

  /** `onIdle` is called once for each retired block, when no answer needs it any longer. */
  constructor(onIdle: (block: number) => void) {
    this.#onIdle = onIdle;
  }

  get size(): number {
    return this.#blocks.size;
  }

  /** Spans in answers that are not written completely. */
  get inFlight(): number {
    let users = 0;
    for (const block of this.#blocks.values()) users += block.users;
    return users;
  }

  add(id: number, buffer: SharedArrayBuffer): void {
    this.#blocks.set(id, { bytes: Buffer.from(buffer), users: 0, retired: false });
  }

  /** Nothing in the block is listed any longer; it becomes idle when the answers that use it have ended. */
  retire(id: number): void {
    const block = this.#blocks.get(id);
    if (block === undefined) return;
    block.retired = true;
    this.#checkIdle(id, block);
  }

  /** The bytes of `spans`, valid until `release` is called with the same spans. Null if a span's block is gone. */
  acquire(spans: readonly Span[]): Buffer[] | null {
    const bytes: Buffer[] = [];
    for (const span of spans) {
      const block = this.#blocks.get(span.block);
      if (block === undefined || block.retired) return null;
      bytes.push(block.bytes.subarray(span.offset, span.offset + span.length));
    }
    for (const span of spans) {
      const block = this.#blocks.get(span.block);
      if (block !== undefined) block.users += 1;
    }
    return bytes;
  }

  release(spans: readonly Span[]): void {
    for (const span of spans) {
      const block = this.#blocks.get(span.block);
      if (block === undefined) throw new Error(`block ${span.block} left while an answer used it`);
      block.users -= 1;
      this.#checkIdle(span.block, block);
    }
  }

  #checkIdle(id: number, block: Block): void {
    if (!block.retired || block.users > 0) return;
    this.#blocks.delete(id);
    this.#onIdle(id);
  }
}
