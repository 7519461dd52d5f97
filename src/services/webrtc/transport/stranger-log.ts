/** Datagrams for no session, by sender: for the log line of a session that did not connect. */
import { bracketed } from '../../../util/client-address.ts';
import { counted } from '../../../util/counted.ts';

/** Maximum of remembered addresses; the address that was silent longest is dropped first. */
const MAX_ADDRESSES = 256;
/** Older datagrams belong to another attempt, ms. */
const MEMORY_MS = 60_000;

interface Stranger {
  count: number;
  what: string;
  place: string;
  at: number;
}

/** The transport has one; times are monotonic ms. Bounded, so nothing has to be closed. */
export class StrangerLog {
  /** In the order of the last arrival. */
  readonly #byHost = new Map<string, Stranger>();

  get size(): number {
    return this.#byHost.size;
  }

  /** Something came from `place` (`udp 192.0.2.1:5000`), which belongs to `host`. */
  note(host: string, place: string, what: string, now: number): void {
    const known = this.#byHost.get(host);
    const count = known === undefined || now - known.at > MEMORY_MS ? 0 : known.count;
    this.#byHost.delete(host);
    this.#byHost.set(host, { count: count + 1, what, place, at: now });
    if (this.#byHost.size <= MAX_ADDRESSES) return;
    const [oldest = ''] = this.#byHost.keys();
    this.#byHost.delete(oldest);
  }

  /** Datagrams from `host` since `since` for no session, as a sentence; empty if there were none. */
  tell(host: string, since: number): string {
    const known = this.#byHost.get(host);
    if (known === undefined || known.at < since) return '';
    return `${counted(known.count, 'datagram')} from ${bracketed(host)} for no session, the last from ${known.place}: ${known.what}`;
  }
}
