/** Batches messages to an idle delivery thread: waking it for every part of every stream costs more than packaging the parts. */

import type { QueueGauge } from '../../util/queue-gauge.ts';
import type { ToThread } from '../thread-protocol.ts';
import type { ThreadLink } from './thread-link.ts';

/** Messages to a resting thread wait at most this long, ms: blocks are reused only after the thread has released them. */
const MAX_WAIT = 1000;
/** A batch of this many messages is sent at once. */
export const MAX_BATCH = 4096;
const DEFERRABLE: ReadonlySet<ToThread['type']> = new Set(['feed-update', 'block-add', 'block-retire']);

/** Delivers in order; messages that can wait are batched while the thread rests. */
export class BatchingLink implements ThreadLink {
  readonly #link: ThreadLink;
  readonly #gauge: QueueGauge | null;
  #resting = false;
  #batch: ToThread[] = [];
  #timer: NodeJS.Timeout | null = null;

  /** `gauge` counts passing and waiting messages; the caller owns it. */
  constructor(link: ThreadLink, gauge: QueueGauge | null = null) {
    this.#link = link;
    this.#gauge = gauge;
  }

  /** Media updates wait for a batch. */
  get resting(): boolean {
    return this.#resting;
  }

  post(messages: readonly ToThread[]): void {
    this.#gauge?.came(messages.length);
    if (!this.#resting) {
      this.#gauge?.went(messages.length);
      this.#link.post(messages);
      return;
    }
    let deferrable = true;
    for (const message of messages) {
      this.#batch.push(message);
      deferrable &&= DEFERRABLE.has(message.type);
    }
    if (!deferrable || this.#batch.length >= MAX_BATCH) this.#deliver();
    else this.#timer ??= setTimeout(() => this.#deliver(), MAX_WAIT);
  }

  /** Call when the thread has no viewers. */
  rest(): void {
    this.#resting = true;
  }

  /** Call when the thread has viewers: sends the batch, then `caught-up`. */
  resume(): void {
    this.#resting = false;
    this.#batch.push({ type: 'caught-up' });
    this.#gauge?.came();
    this.#deliver();
  }

  /** The thread has ended. Idempotent. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#batch = [];
    this.#gauge?.dropAll();
  }

  async terminate(): Promise<void> {
    this.close();
    await this.#link.terminate();
  }

  #deliver(): void {
    const batch = this.#batch;
    this.#gauge?.went(batch.length);
    this.close();
    this.#link.post(batch);
  }
}
