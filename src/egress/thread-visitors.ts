/** Viewers whose URLs carry no session, as one thread sees them: an address with a player, until it stays away. */
import { createHash } from 'node:crypto';
import type { Clock } from '../util/clock.ts';
import type { SessionEvent, SessionSighting } from './thread-protocol.ts';

const ID_LENGTH = 16;

interface Visitor {
  readonly key: string;
  readonly sighting: SessionSighting;
  readonly ttl: number;
  seenAt: number;
}

export class ThreadVisitors {
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #live = new Map<string, Visitor>();
  #events: SessionEvent[] = [];

  /** `limit`: visitors alive; the oldest is forgotten first. */
  constructor(options: { readonly clock: Clock; readonly limit: number }) {
    this.#clock = options.clock;
    this.#limit = options.limit;
  }

  get size(): number {
    return this.#live.size;
  }

  /** A request came from `remoteAddress` with `agent`; without another one the visit ends after `ttl` ms. */
  seen(visit: { readonly outlet: number; readonly remoteAddress: string; readonly agent: string; readonly ttl: number }): void {
    const { outlet, remoteAddress, agent, ttl } = visit;
    const key = `${outlet} ${remoteAddress} ${agent}`;
    const known = this.#live.get(key);
    if (known !== undefined) {
      known.seenAt = this.#clock.monotonic();
      return;
    }
    // The same in all threads, so that a viewer with several connections counts once.
    const session = createHash('sha256').update(`${remoteAddress} ${agent}`).digest('base64url').slice(0, ID_LENGTH);
    const visitor: Visitor = { key, sighting: { outlet, session, remoteAddress }, ttl, seenAt: this.#clock.monotonic() };
    this.#live.set(key, visitor);
    this.#events.push({ sighting: visitor.sighting, ended: null });
    if (this.#live.size > this.#limit) {
      const oldest = this.#live.values().next();
      if (!oldest.done) this.#end(oldest.value, 'too many sessions');
    }
  }

  /** Ends visits without request for too long. */
  sweep(): void {
    const now = this.#clock.monotonic();
    for (const visitor of this.#live.values()) if (visitor.seenAt + visitor.ttl <= now) this.#end(visitor, 'idle');
  }

  closeOutlet(outlet: number): void {
    for (const visitor of this.#live.values()) if (visitor.sighting.outlet === outlet) this.#end(visitor, 'the stream ended');
  }

  /** What began and ended since the last call, in order. */
  takeEvents(): readonly SessionEvent[] {
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }

  #end(visitor: Visitor, reason: string): void {
    this.#live.delete(visitor.key);
    this.#events.push({ sighting: visitor.sighting, ended: reason });
  }
}
