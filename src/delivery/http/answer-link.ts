/** A connection whose next requests may be answered by the addon, without JavaScript, where the answer was kept before. */
import type { Handle, NativeAddon } from '../../native/addon.ts';
import type { Image } from './direct-sender.ts';

/** The body of an answer that is the same for all who ask, but for the `?session=…` of each. */
export interface KeptBody {
  readonly bytes: readonly Uint8Array[] | Image;
  /** Bytes of each `?session=…` in it. */
  readonly tailLength: number;
  /** Where these stand. */
  readonly places: Uint32Array;
  /** Of a body in gzip form: what its checksum is made of (`TailoredGzip`); else empty. */
  readonly sums: Uint32Array;
}

/** An answer to keep until its feed changes. */
export interface KeptAnswer {
  /** The target of the request that it answers. */
  readonly target: string;
  /** All requests with headers of one variant are answered alike. */
  readonly variant: number;
  readonly feed: number;
  /** Lines of headers behind `Date`, with the empty one. */
  readonly head: string;
  /** Bytes that it counts for. */
  readonly billed: number;
  readonly body: KeptBody;
}

/** Makes links; those of a thread share what is kept. */
export interface AnswerLinks {
  /** Of a connection of this thread that Node.js reads; null where that cannot be. */
  link(descriptor: number): AnswerLink | null;
}

/** Of one connection. Its user says `close` before the connection is closed or given away. */
export class AnswerLink {
  readonly #addon: NativeAddon;
  readonly #handle: Handle;

  constructor(addon: NativeAddon, handle: Handle) {
    this.#addon = addon;
    this.#handle = handle;
  }

  /** Requests answered without JavaScript. */
  get requests(): number {
    return this.#addon.answersRequests(this.#handle);
  }

  /** Since the last of them, ms; 0 while its answer is being sent, below 0 when there was none. */
  get idle(): number {
    return this.#addon.answersIdle(this.#handle);
  }

  /** Nothing is asked and nothing waits to be sent: what comes next begins a request. */
  arm(): void {
    this.#addon.answersArm(this.#handle);
  }

  /** Nothing more is answered without JavaScript. */
  disarm(): void {
    this.#addon.answersDisarm(this.#handle);
  }

  /** Idempotent. */
  close(): void {
    this.#addon.answersUnlink(this.#handle);
  }

  /** Keeps an answer to the request that is being answered, where there is room for it. */
  keep({ target, variant, feed, head, billed, body }: KeptAnswer): void {
    const { bytes, tailLength, places, sums } = body;
    if ('handle' in bytes) this.#addon.answersKeepImage(this.#handle, target, variant, feed, head, billed, bytes.handle);
    else this.#addon.answersKeep(this.#handle, target, variant, feed, head, billed, bytes, tailLength, places, sums);
  }
}
