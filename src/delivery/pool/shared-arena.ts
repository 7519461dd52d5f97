/**
 * Shared memory for media bytes, main-thread side: packagers append to blocks, delivery threads send from
 * them. A block is reused when everything in it was released and every thread has reported that no pending
 * answer needs it. The same memory then gets a new number, so a stale span can never refer to new data.
 */
import type { Span } from '../feed/messages.ts';
import { appendSpan } from '../feed/spans.ts';
import type { ToThread } from '../thread-protocol.ts';

const MIN_BLOCK = 64 * 1024;
const MAX_BLOCK = 1024 * 1024;
const SECONDS_PER_BLOCK = 2;
/** Free memory is kept up to this share of the memory in use: threads release the blocks of up to a second at once. */
const FREE_SHARE = 1 / 6;
/** A writer whose block was full in less than this takes a larger one next, ms. */
const SHORT_BLOCK_MS = 1000;
/** A writer whose block lasted longer than this takes a smaller one next, ms. */
const LONG_BLOCK_MS = 8000;

interface Block {
  readonly id: number;
  readonly buffer: SharedArrayBuffer;
  readonly bytes: Uint8Array;
  /** Bytes stored and not released. */
  live: number;
  /** Nothing more will be appended. */
  sealed: boolean;
}

/** Access to the threads, and the amount of free memory to keep. */
export interface ArenaOptions {
  /** Sends to all threads; retirements are sent after all other messages of the turn. */
  readonly post: (message: ToThread) => void;
  readonly postLate: (message: ToThread) => void;
  /** Threads that know the blocks and will acknowledge. */
  readonly threads: () => Iterable<number>;
  /** Bytes of free blocks kept for the next writer; more where much is in use. */
  readonly maxFreeBytes: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
}

/** One per pool. Released memory goes to the next writer, or back to the system if enough is kept. */
export class SharedArena {
  readonly #options: ArenaOptions;
  readonly #blocks = new Map<number, Block>();
  /** Retired blocks, and the threads that have not acknowledged. */
  readonly #retiring = new Map<number, { readonly block: Block; readonly missing: Set<number> }>();
  readonly #free: SharedArrayBuffer[] = [];
  #freeBytes = 0;
  #usedBytes = 0;
  #nextId = 1;

  constructor(options: ArenaOptions) {
    this.#options = options;
  }

  /** Bytes of shared memory held: in use, waiting for threads, and free. */
  get usage(): { readonly used: number; readonly retiring: number; readonly free: number } {
    let retiring = 0;
    for (const { block } of this.#retiring.values()) retiring += block.bytes.length;
    return { used: this.#usedBytes, retiring, free: this.#freeBytes };
  }

  /** A writer for one feed that will store about `bytesPerSecond`, or more. */
  writer(bytesPerSecond: number): ArenaWriter {
    return new ArenaWriter(this, blockSize(bytesPerSecond), this.#options.now);
  }

  /** State for a thread that starts. */
  *replay(): Iterable<ToThread> {
    for (const { id, buffer } of this.#blocks.values()) yield { type: 'block-add', block: id, buffer };
  }

  /** No pending answer of the thread needs the retired block. */
  acknowledge(thread: number, id: number): void {
    const entry = this.#retiring.get(id);
    if (entry === undefined) return;
    entry.missing.delete(thread);
    if (entry.missing.size === 0) this.#recycle(id, entry.block);
  }

  /** A thread has ended, with all its answers. */
  threadGone(thread: number): void {
    for (const id of [...this.#retiring.keys()]) this.acknowledge(thread, id);
  }

  /** Takes a block of at least `size` bytes. */
  take(size: number): Block {
    const at = this.#free.findIndex((buffer) => buffer.byteLength === size);
    const [found] = at < 0 ? [] : this.#free.splice(at, 1);
    if (found !== undefined) this.#freeBytes -= size;
    const buffer = found ?? new SharedArrayBuffer(size);
    const block: Block = { id: this.#nextId, buffer, bytes: new Uint8Array(buffer), live: 0, sealed: false };
    this.#nextId += 1;
    this.#blocks.set(block.id, block);
    this.#usedBytes += size;
    this.#options.post({ type: 'block-add', block: block.id, buffer });
    return block;
  }

  /** Views of stored bytes; valid until they are released. */
  read(spans: readonly Span[]): Uint8Array[] {
    return spans.map((span) => {
      const block = this.#blocks.get(span.block);
      if (block === undefined) throw new Error(`block ${span.block} is gone`);
      return block.bytes.subarray(span.offset, span.offset + span.length);
    });
  }

  release(spans: readonly Span[]): void {
    for (const span of spans) {
      const block = this.#blocks.get(span.block);
      if (block === undefined || block.live < span.length) throw new Error(`span in block ${span.block} was released twice`);
      block.live -= span.length;
      if (block.sealed && block.live === 0) this.retire(block);
    }
  }

  retire(block: Block): void {
    if (!this.#blocks.delete(block.id)) return;
    this.#usedBytes -= block.bytes.length;
    const missing = new Set(this.#options.threads());
    this.#retiring.set(block.id, { block, missing });
    this.#options.postLate({ type: 'block-retire', block: block.id });
    if (missing.size === 0) this.#recycle(block.id, block);
  }

  #recycle(id: number, block: Block): void {
    this.#retiring.delete(id);
    this.#free.push(block.buffer);
    this.#freeBytes += block.buffer.byteLength;
    // V8 does not count shared memory, and so does not hurry to return it: what is given up here stays for a while in every thread.
    const most = Math.max(this.#options.maxFreeBytes, this.#usedBytes * FREE_SHARE);
    while (this.#freeBytes > most) {
      const oldest = this.#free.shift();
      if (oldest === undefined) break;
      this.#freeBytes -= oldest.byteLength;
    }
  }
}

/** Appends the bytes of one feed to blocks of its own. */
export class ArenaWriter {
  readonly #arena: SharedArena;
  readonly #minBlockSize: number;
  readonly #now: () => number;
  readonly #blocks = new Set<Block>();
  #blockSize: number;
  #current: Block | null = null;
  /** When the current block was taken. */
  #since = 0;
  #used = 0;
  #closed = false;

  constructor(arena: SharedArena, size: number, now: () => number) {
    this.#arena = arena;
    this.#minBlockSize = size;
    this.#blockSize = size;
    this.#now = now;
  }

  /** Views of stored bytes, in order. */
  read(spans: readonly Span[]): readonly Uint8Array[] {
    return this.#arena.read(spans);
  }

  /** Copies `chunks` back to back; one span unless a block ends in between. */
  store(chunks: readonly Uint8Array[]): Span[] {
    if (this.#closed) throw new TypeError('the feed is closed');
    const spans: Span[] = [];
    for (const chunk of chunks) {
      for (let at = 0; at < chunk.length; ) {
        const block = this.#room();
        const length = Math.min(chunk.length - at, block.bytes.length - this.#used);
        block.bytes.set(at === 0 && length === chunk.length ? chunk : chunk.subarray(at, at + length), this.#used);
        appendSpan(spans, { block: block.id, offset: this.#used, length });
        block.live += length;
        this.#used += length;
        at += length;
      }
    }
    return spans;
  }

  release(spans: readonly Span[]): void {
    if (this.#closed) return;
    this.#arena.release(spans);
    for (const block of this.#blocks) if (block.sealed && block.live === 0) this.#blocks.delete(block);
  }

  /** Releases everything stored. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const block of this.#blocks) this.#arena.retire(block);
    this.#blocks.clear();
    this.#current = null;
  }

  #room(): Block {
    const current = this.#current;
    if (current !== null && this.#used < current.bytes.length) return current;
    const now = this.#now();
    if (current !== null) {
      this.#fit(now - this.#since);
      current.sealed = true;
      if (current.live === 0) {
        this.#blocks.delete(current);
        this.#arena.retire(current);
      }
    }
    // Init segments are stored first and stay as long as the stream: they must not hold a large block.
    const next = this.#arena.take(current === null ? MIN_BLOCK : this.#blockSize);
    this.#blocks.add(next);
    this.#current = next;
    this.#since = now;
    this.#used = 0;
    return next;
  }

  /** Fits the size to the bitrate, which many encoders do not announce: each block costs messages to all threads and back. */
  #fit(lastedMs: number): void {
    if (lastedMs < SHORT_BLOCK_MS) this.#blockSize = Math.min(2 * this.#blockSize, MAX_BLOCK);
    else if (lastedMs > LONG_BLOCK_MS) this.#blockSize = Math.max(this.#blockSize / 2, this.#minBlockSize);
  }
}

function blockSize(bytesPerSecond: number): number {
  let size = MIN_BLOCK;
  while (size < MAX_BLOCK && size < bytesPerSecond * SECONDS_PER_BLOCK) size *= 2;
  return size;
}
