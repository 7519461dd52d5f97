/** A connection whose requests the addon can answer from kept answers, without JavaScript. */
import type { Handle, NativeAddon } from '../../native/addon.ts';
import type { MemoryFile } from './direct-sender.ts';

/** The body of an answer that is equal for all viewers, except for their `?session=…`. */
export interface KeptBody {
  readonly bytes: readonly Uint8Array[] | MemoryFile;
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

/** A request that is answered later. */
export type LedRequest = Pick<KeptAnswer, 'target' | 'variant' | 'feed'>;

/** Equal requests of other viewers, which wait in the addon for the answer to one request. */
export interface Followers {
  /** How many there are. */
  readonly count: number;
  /** The answer has been sent. If it was kept, the followers get it, too; otherwise their requests arrive now. Idempotent. */
  end(): void;
}

/** Creates links; the links of a thread share the kept answers. */
export interface AnswerLinks {
  /** A link for a connection of this thread that Node.js reads; null if that is not possible. */
  link(descriptor: number): AnswerLink | null;
}

/** The link of one connection. The user calls `close` before the connection is closed or given away. */
export class AnswerLink implements Followers {
  readonly #addon: NativeAddon;
  readonly #handle: Handle;
  readonly #released: () => void;

  /** `released`: called when requests that waited for the answer to another must be passed on to JavaScript. */
  constructor(addon: NativeAddon, handle: Handle, released: () => void) {
    this.#addon = addon;
    this.#handle = handle;
    this.#released = released;
  }

  /** How long the request that is being answered had waited for the answer to another, ms. */
  get heldFor(): number {
    return this.#addon.answersHeldFor(this.#handle);
  }

  get count(): number {
    return this.#addon.answersFollowers(this.#handle);
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

  /** A request that follows another comes now, if there is one. */
  release(): void {
    this.#addon.answersRelease(this.#handle);
  }

  /** The request that is being answered has to wait: others for the same may follow it. Null: they cannot. */
  lead({ target, variant, feed }: LedRequest): Followers | null {
    return this.#addon.answersLead(this.#handle, target, variant, feed) ? this : null;
  }

  end(): void {
    if (this.#addon.answersEndLead(this.#handle)) this.#released();
  }

  /** Idempotent. */
  close(): void {
    if (this.#addon.answersUnlink(this.#handle)) this.#released();
  }

  /** Keeps an answer to the current request, if there is room. */
  keep({ target, variant, feed, head, billed, body }: KeptAnswer): void {
    const { bytes, tailLength, places, sums } = body;
    if ('handle' in bytes) this.#addon.answersKeepMemoryFile(this.#handle, target, variant, feed, head, billed, bytes.handle);
    else this.#addon.answersKeep(this.#handle, target, variant, feed, head, billed, bytes, tailLength, places, sums);
  }
}
