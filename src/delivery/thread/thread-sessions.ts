/** Viewer sessions in one thread: recent requests by session. Also the cache of verified tokens. */
import { createHash } from 'node:crypto';
import { addressOwner } from '../../util/client-address.ts';
import type { Clock } from '../../util/clock.ts';
import { OwnerCounts } from '../../util/owner-counts.ts';
import type { ByteSink, ViewerSession } from '../feed/view.ts';
import { type SessionTokens, sessionId } from '../session-token.ts';
import type { SessionBytes, SessionEvent, SessionSighting } from '../thread-protocol.ts';
import { type AnswerCache, type DirectSession, NO_SLOT } from './answer-cache.ts';

/** Remembered revocations; the oldest is dropped first. */
const MAX_REVOKED = 100_000;
const MAX_KEY_LENGTH = 256;
const TOKEN_GONE = 'its play token was removed';
/**
 * Maximum of viewers whose bytes one report contains. Others follow in the next reports, so that many viewers do not delay the main thread.
 */
const MAX_BILLED = 1000;

class LiveSession implements ViewerSession, ByteSink, DirectSession {
  slot = NO_SLOT;
  readonly token: string;
  readonly id: string;
  readonly address: string;
  readonly feed: number;
  readonly remoteAddress: string;
  /** Address whose limit it counts to. */
  readonly owner: string;
  readonly expiresAt: number;
  /** Grant of its play token, if it has one. */
  readonly grant: string | undefined;
  /** Time without a request after which it ends, ms. */
  readonly idle: number;
  seenAt: number;
  readonly #clock: Clock;
  /** Not yet reported to the main thread. */
  #bytes = 0;
  readonly #owing: Set<LiveSession>;

  /** Adds itself to `owing` when it has bytes to report. */
  constructor(
    fields: {
      token: string;
      id: string;
      address: string;
      feed: number;
      remoteAddress: string;
      expiresAt: number;
      grant?: string | undefined;
    },
    { idle, clock, owing }: { idle: number; clock: Clock; owing: Set<LiveSession> },
  ) {
    this.idle = idle;
    this.#clock = clock;
    this.#owing = owing;
    this.token = fields.token;
    this.id = fields.id;
    this.address = fields.address;
    this.feed = fields.feed;
    this.remoteAddress = fields.remoteAddress;
    this.owner = addressOwner(fields.remoteAddress);
    this.expiresAt = fields.expiresAt;
    this.grant = fields.grant;
    this.seenAt = clock.monotonic();
  }

  get sighting(): SessionSighting {
    return { feed: this.feed, session: this.id, remoteAddress: this.remoteAddress };
  }

  countBytes(bytes: number): void {
    if (this.#bytes === 0) this.#owing.add(this);
    this.#bytes += bytes;
  }

  answered(bytes: number): void {
    this.seenAt = this.#clock.monotonic();
    if (bytes > 0) this.countBytes(bytes);
  }

  takeBytes(): number {
    const bytes = this.#bytes;
    this.#bytes = 0;
    return bytes;
  }
}

/** The scope of a session. */
export interface SessionPlace {
  readonly feed: number;
  /** Identifies virtual host, application and stream. */
  readonly address: string;
}

/** `limit` counts sessions; `idle` is the time without a request after which a session ends, `lifetime` that of its token, both ms. */
export interface ThreadSessionsOptions {
  readonly tokens: SessionTokens;
  readonly clock: Clock;
  readonly limit: number;
  /** Sessions per address; players with a session continue even above it. */
  readonly share?: number;
  /** A session was refused for that reason. */
  readonly onFull?: (remoteAddress: string) => void;
  readonly idle: number;
  readonly lifetime: number;
  /** Keeps answers that need no call of this class. */
  readonly answers?: Pick<AnswerCache, 'open' | 'close'> | null;
  /** Whether the play token with this grant is still valid; default: yes. */
  readonly holds?: (grant: string) => boolean;
}

/** Rights of a session. */
export interface SessionTerms {
  readonly until?: number | undefined;
  readonly grant?: string | undefined;
  readonly ticket?: number | undefined;
}

/** The owner calls `sweep` regularly, and `takeEvents` and `takeBytes` for its reports. Has no timer of its own. */
export class ThreadSessions {
  /** Sessions refused because of the limit per address. */
  refused = 0;
  readonly #options: ThreadSessionsOptions;
  readonly #live = new Map<string, LiveSession>();
  /**
   * Iterator at the oldest session. A new iterator per session would skip all ended entries since the last rehash: 10 us for a full map.
   */
  #oldest = this.#live.values();
  readonly #owners = new OwnerCounts();
  readonly #revoked = new Set<string>();
  /** Sessions with bytes to report; the longest waiting session comes first. */
  readonly #owing = new Set<LiveSession>();
  #events: SessionEvent[] = [];

  constructor(options: ThreadSessionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#live.size;
  }

  /**
   * Ends at `until` (wall clock ms, rounded down to seconds) if that comes first, and with the play token of `grant`; its start is reported
   * with `ticket`. Null if the address has reached its limit.
   */
  create(
    place: SessionPlace,
    remoteAddress: string,
    { until = Number.POSITIVE_INFINITY, grant, ticket }: SessionTerms = {},
  ): LiveSession | null {
    if (this.#isFull(remoteAddress)) return null;
    const { tokens, clock, lifetime } = this.#options;
    const expiresAt = Math.min(clock.now() + lifetime, Math.floor(until / 1000) * 1000);
    const { id, token } = tokens.mint(place.address, expiresAt, grant);
    return this.#open({ token, id, address: place.address, feed: place.feed, remoteAddress, expiresAt, grant }, { ticket });
  }

  /** The session of `token`, marked as active; null if the token is not or no longer valid for this stream. */
  check(place: SessionPlace, token: string, remoteAddress: string): LiveSession | null {
    const { clock, tokens } = this.#options;
    const live = this.#live.get(token);
    if (live !== undefined) {
      if (live.address !== place.address) return null;
      if (!this.#isHeld(live)) {
        this.#close(live, TOKEN_GONE);
        return null;
      }
      if (clock.now() < live.expiresAt) {
        live.seenAt = clock.monotonic();
        // A play token may be removed at any time.
        if (live.slot === NO_SLOT && live.grant === undefined) this.#options.answers?.open(live, place.feed);
        return live;
      }
      this.#close(live, 'expired');
      return null;
    }
    const verified = tokens.verify(token, place.address);
    if (verified === null || clock.now() >= verified.expiresAt || this.#revoked.has(verified.id) || !this.#isHeld(verified)) return null;
    return this.#open({ token, ...verified, address: place.address, feed: place.feed, remoteAddress });
  }

  /**
   * Marks a viewer without token as active: one per feed and `key`, ended `idle` ms after its last request. Null: it was
   * revoked; `full`: its address has reached its limit, so it is not counted.
   */
  count(place: SessionPlace, key: string, idle: number, remoteAddress: string): LiveSession | 'full' | null {
    const { clock } = this.#options;
    // Peers choose parts of the key.
    const token = `${place.feed} ${key.slice(0, MAX_KEY_LENGTH)}`;
    const live = this.#live.get(token);
    if (live !== undefined) {
      live.seenAt = clock.monotonic();
      return live;
    }
    const id = createHash('sha256').update(token).digest('hex').slice(0, 16);
    if (this.#revoked.has(id)) return null;
    if (this.#isFull(remoteAddress)) return 'full';
    const { address, feed } = place;
    return this.#open({ token, id, address, feed, remoteAddress, expiresAt: Number.POSITIVE_INFINITY }, { idle });
  }

  /** Refuses these sessions (by id or whole token) from now on. */
  revoke(sessions: readonly string[]): void {
    for (const session of sessions) {
      this.#revoked.add(sessionId(session));
      if (this.#revoked.size > MAX_REVOKED) {
        const oldest = this.#revoked.values().next();
        if (!oldest.done) this.#revoked.delete(oldest.value);
      }
    }
    for (const live of this.#live.values()) if (this.#revoked.has(live.id)) this.#close(live, 'revoked');
  }

  /** Ends idle and expired sessions. */
  sweep(): void {
    const { clock } = this.#options;
    const [now, wall] = [clock.monotonic(), clock.now()];
    // A paused iterator would keep the old table of the map in memory.
    this.#oldest = this.#live.values();
    for (const live of this.#live.values()) {
      if (now - live.seenAt >= live.idle) this.#close(live, 'idle');
      else if (wall >= live.expiresAt) this.#close(live, 'expired');
      else if (!this.#isHeld(live)) this.#close(live, TOKEN_GONE);
    }
  }

  closeFeed(feed: number): void {
    for (const live of this.#live.values()) if (live.feed === feed) this.#close(live, 'the stream ended');
  }

  /** Sessions that started and ended since the last call, in order. The list belongs to the caller and does not grow. */
  takeEvents(): readonly SessionEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** Bytes sent to viewers since the last call. */
  takeBytes(): SessionBytes {
    const sightings: SessionSighting[] = [];
    const bytes: number[] = [];
    for (const live of this.#owing) {
      if (sightings.length === MAX_BILLED) break;
      this.#owing.delete(live);
      sightings.push(live.sighting);
      bytes.push(live.takeBytes());
    }
    return { sightings, bytes };
  }

  #open(
    fields: ConstructorParameters<typeof LiveSession>[0],
    { idle = this.#options.idle, ticket }: { readonly idle?: number; readonly ticket?: number | undefined } = {},
  ): LiveSession {
    const live = new LiveSession(fields, { idle, clock: this.#options.clock, owing: this.#owing });
    this.#live.set(live.token, live);
    this.#owners.add(live.owner);
    this.#events.push({ sighting: live.sighting, ended: null, ...(ticket !== undefined && { ticket }) });
    if (this.#live.size > this.#options.limit) {
      // `next` returns the oldest session: all entries before it have been deleted.
      const oldest = this.#oldest.next();
      if (!oldest.done) this.#close(oldest.value, 'too many sessions');
    }
    return live;
  }

  #close(live: LiveSession, reason: string): void {
    this.#live.delete(live.token);
    this.#owners.remove(live.owner);
    this.#owing.delete(live);
    this.#options.answers?.close(live);
    this.#events.push({ sighting: live.sighting, ended: reason });
  }

  #isHeld({ grant }: { readonly grant?: string | undefined }): boolean {
    return grant === undefined || this.#options.holds?.(grant) !== false;
  }

  #isFull(remoteAddress: string): boolean {
    const { share = Number.POSITIVE_INFINITY } = this.#options;
    const isFull = this.#owners.of(addressOwner(remoteAddress)) >= share;
    if (isFull) {
      this.refused += 1;
      this.#options.onFull?.(remoteAddress);
    }
    return isFull;
  }
}
