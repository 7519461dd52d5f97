/** A connection whose requests the addon can answer from kept answers, without JavaScript. */
import type { Handle, NativeAddon } from '../../native/addon.ts';
import type { Image } from './direct-sender.ts';

/** The body of an answer that is equal for all viewers, except for their `?session=…`. */
export interface KeptBody {
  readonly bytes: readonly Uint8Array[] | Image;
  /** Bytes of each `?session=…` in the body. */
  readonly tailLength: number;
  /** Offsets of these. */
  readonly places: Uint32Array;
  /** For a gzip body: parts of its checksum (`TailoredGzip`); else empty. */
  readonly sums: Uint32Array;
}

/** An answer to keep until its feed changes. */
export interface KeptAnswer {
  /** Target of the request. */
  readonly target: string;
  /** All requests with headers of the same variant get the same answer. */
  readonly variant: number;
  readonly feed: number;
  /** Header lines after `Date`, including the empty line. */
  readonly head: string;
  /** Bytes to count for the viewer. */
  readonly billed: number;
  readonly body: KeptBody;
}

/** Creates links; the links of a thread share the kept answers. */
export interface AnswerLinks {
  /** A link for a connection of this thread that Node.js reads; null if that is not possible. */
  link(descriptor: number): AnswerLink | null;
}

/** The link of one connection. The user calls `close` before the connection is closed or given away. */
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

  /** Time since the last such request, ms; 0 while its answer is being sent, below 0 if there was none. */
  get idle(): number {
    return this.#addon.answersIdle(this.#handle);
  }

  /** No request is open and nothing waits to be sent: the next bytes start a request. */
  arm(): void {
    this.#addon.answersArm(this.#handle);
  }

  /** Stops answers without JavaScript. */
  disarm(): void {
    this.#addon.answersDisarm(this.#handle);
  }

  /** Idempotent. */
  close(): void {
    this.#addon.answersUnlink(this.#handle);
  }

  /** Keeps an answer to the current request, if there is room. */
  keep({ target, variant, feed, head, billed, body }: KeptAnswer): void {
    const { bytes, tailLength, places, sums } = body;
    if ('handle' in bytes) this.#addon.answersKeepImage(this.#handle, target, variant, feed, head, billed, bytes.handle);
    else this.#addon.answersKeep(this.#handle, target, variant, feed, head, billed, bytes, tailLength, places, sums);
  }
}
