/** Viewer sessions as one thread sees them: who asked lately. Doubles as the cache of verified tokens. */
import { createHash } from 'node:crypto';
import type { ViewerSession } from '../publishers/outlet/view.ts';
import type { Clock } from '../util/clock.ts';
import type { SessionTokens } from './session-token.ts';
import type { SessionEvent } from './thread-protocol.ts';

/** Revocations remembered; the oldest is forgotten first. */
const REVOKED_LIMIT = 100_000;
const MAX_KEY_LENGTH = 256;

class LiveSession implements ViewerSession {
  readonly token: string;
  readonly id: string;
  readonly address: string;
  readonly outlet: number;
  readonly remoteAddress: string;
  readonly expiresAt: number;
  /** Without request for so long it has ended, ms. */
  readonly idle: number;
  seenAt: number;

  constructor(
    fields: { token: string; id: string; address: string; outlet: number; remoteAddress: string; expiresAt: number },
    idle: number,
    now: number,
  ) {
    this.idle = idle;
    this.token = fields.token;
    this.id = fields.id;
    this.address = fields.address;
    this.outlet = fields.outlet;
    this.remoteAddress = fields.remoteAddress;
    this.expiresAt = fields.expiresAt;
    this.seenAt = now;
  }
}

/** Where a session is used. */
export interface SessionPlace {
  readonly outlet: number;
  /** Identifies virtual host, application and stream. */
  readonly address: string;
}

export interface ThreadSessionsOptions {
  readonly tokens: SessionTokens;
  readonly clock: Clock;
  readonly limit: number;
  readonly idle: number;
  readonly lifetime: number;
}

export class ThreadSessions {
  readonly #options: ThreadSessionsOptions;
  readonly #live = new Map<string, LiveSession>();
  readonly #revoked = new Set<string>();
  #events: SessionEvent[] = [];

  constructor(options: ThreadSessionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#live.size;
  }

  create(place: SessionPlace, remoteAddress: string): ViewerSession {
    const { tokens, clock, lifetime } = this.#options;
    const expiresAt = clock.now() + lifetime;
    const { id, token } = tokens.mint(place.address, expiresAt);
    return this.#open({ token, id, address: place.address, outlet: place.outlet, remoteAddress, expiresAt });
  }

  /** The session of `token`, marked as alive; null when the token is not good for this stream (any more). */
  check(place: SessionPlace, token: string, remoteAddress: string): ViewerSession | null {
    const { clock, tokens } = this.#options;
    const live = this.#live.get(token);
    if (live !== undefined) {
      if (live.address !== place.address) return null;
      if (clock.now() < live.expiresAt) {
        live.seenAt = clock.monotonic();
        return live;
      }
      this.#close(live, 'expired');
      return null;
    }
    const verified = tokens.verify(token, place.address);
    if (verified === null || clock.now() >= verified.expiresAt || this.#revoked.has(verified.id)) return null;
    return this.#open({ token, ...verified, address: place.address, outlet: place.outlet, remoteAddress });
  }

  /** Marks a viewer without token as alive: one per outlet and `key`, gone `idle` ms after it was last seen. */
  count(place: SessionPlace, key: string, idle: number, remoteAddress: string): void {
    const { clock } = this.#options;
    // Peers choose parts of the key.
    const token = `${place.outlet} ${key.slice(0, MAX_KEY_LENGTH)}`;
    const live = this.#live.get(token);
    if (live !== undefined) {
      live.seenAt = clock.monotonic();
      return;
    }
    const id = createHash('sha256').update(token).digest('base64url').slice(0, 12);
    const { address, outlet } = place;
    this.#open({ token, id, address, outlet, remoteAddress, expiresAt: Number.POSITIVE_INFINITY }, idle);
  }

  /** Refuses these sessions (by id or whole token) from now on. */
  revoke(sessions: readonly string[]): void {
    for (const session of sessions) {
      this.#revoked.add(sessionId(session));
      if (this.#revoked.size > REVOKED_LIMIT) {
        const oldest = this.#revoked.values().next();
        if (!oldest.done) this.#revoked.delete(oldest.value);
      }
    }
    for (const live of this.#live.values()) if (this.#revoked.has(live.id)) this.#close(live, 'revoked');
  }

  /** Ends sessions without request for too long. */
  sweep(): void {
    const now = this.#options.clock.monotonic();
    for (const live of this.#live.values()) if (now - live.seenAt >= live.idle) this.#close(live, 'idle');
  }

  closeOutlet(outlet: number): void {
    for (const live of this.#live.values()) if (live.outlet === outlet) this.#close(live, 'the stream ended');
  }

  /** What began and ended since the last call, in order. */
  takeEvents(): readonly SessionEvent[] {
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }

  #open(fields: ConstructorParameters<typeof LiveSession>[0], idle = this.#options.idle): LiveSession {
    const live = new LiveSession(fields, idle, this.#options.clock.monotonic());
    this.#live.set(live.token, live);
    this.#note(live, null);
    if (this.#live.size > this.#options.limit) {
      const oldest = this.#live.values().next();
      if (!oldest.done) this.#close(oldest.value, 'too many sessions');
    }
    return live;
  }

  #close(live: LiveSession, reason: string): void {
    this.#live.delete(live.token);
    this.#note(live, reason);
  }

  #note(live: LiveSession, ended: string | null): void {
    this.#events.push({ sighting: { outlet: live.outlet, session: live.id, remoteAddress: live.remoteAddress }, ended });
  }
}

/** The public part of a token. */
export function sessionId(token: string): string {
  const end = token.indexOf('_');
  return end < 0 ? token : token.slice(0, end);
}
