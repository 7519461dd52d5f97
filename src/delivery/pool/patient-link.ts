/** Spares a thread that nobody asks: waking it for every part of every stream costs more than packaging them. */

import type { QueueGauge } from '../../util/queue-gauge.ts';
import type { ToThread } from '../thread-protocol.ts';
import type { ThreadLink } from './thread-link.ts';

/** How long messages may wait for a thread that rests, ms: blocks are only used again when it has heard of their end. */
const MAX_WAIT = 1000;
/** Messages that wait at most. */
export const MAX_BUNDLE = 4096;
const PATIENT: ReadonlySet<ToThread['type']> = new Set(['outlet-update', 'block-add', 'block-retire']);

/** Delivers in order; messages that can wait are bundled while the thread rests. */
export class PatientLink implements ThreadLink {
  readonly #link: ThreadLink;
  readonly #gauge: QueueGauge | null;
  #resting = false;
  #bundle: ToThread[] = [];
  #timer: NodeJS.Timeout | null = null;

  /** `gauge` is told of the messages that pass and wait; it stays its maker's. */
  constructor(link: ThreadLink, gauge: QueueGauge | null = null) {
    this.#link = link;
    this.#gauge = gauge;
  }

  /** Media waits for a bundle now. */
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
    let patient = true;
    for (const message of messages) {
      this.#bundle.push(message);
      patient &&= PATIENT.has(message.type);
    }
    if (!patient || this.#bundle.length >= MAX_BUNDLE) this.#deliver();
    else this.#timer ??= setTimeout(() => this.#deliver(), MAX_WAIT);
  }

  /** The thread has nobody to serve. */
  rest(): void {
    this.#resting = true;
  }

  /** The thread has somebody to serve: it hears of everything, and when that was all. */
  attend(): void {
    this.#resting = false;
    this.#bundle.push({ type: 'caught-up' });
    this.#gauge?.came();
    this.#deliver();
  }

  /** The thread is gone. Idempotent. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#bundle = [];
    this.#gauge?.dropAll();
  }

  async terminate(): Promise<void> {
    this.close();
    await this.#link.terminate();
  }

  #deliver(): void {
    const bundle = this.#bundle;
    this.#gauge?.went(bundle.length);
    this.close();
    this.#link.post(bundle);
  }
}
