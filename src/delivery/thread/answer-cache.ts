/**
 * Answers that the addon gives without JavaScript. A view's answer is the same for every session until its feed changes, so the answer to
 * the second equal request is kept; any change of a feed drops all its answers.
 */
import { type Handle, loadAddon, type NativeAddon } from '../../native/addon.ts';
import { acceptsGzip } from '../../wire/http/accept-encoding.ts';
import { AnswerLink, type AnswerLinks } from '../http/answer-link.ts';
import type { IncomingRequest } from '../http/answer-sink.ts';
import type { HttpCounters } from '../http-counters.ts';

/** Requests with any of these are answered by JavaScript. */
const SPECIAL = ['range', 'if-range', 'access-control-request-headers', 'upgrade', 'expect', 'content-length', 'transfer-encoding'];
/** Distinguished sets of request headers; peers choose one part of them, their origin. */
const MAX_VARIANTS = 1024;
const MAX_ORIGIN = 300;
const ALL_FEEDS = -1;
/** The slot of a session unknown to the addon. */
export const NO_SLOT = -1;

/** A session whose requests may be answered without JavaScript. */
export interface DirectSession {
  readonly token: string;
  readonly expiresAt: number;
  /** Its number in the addon, or `NO_SLOT`. */
  slot: number;
  /** Answers with `bytes` in total were sent since the last report. */
  answered(bytes: number): void;
}

/** Counts since the start. */
export interface AnswerFigures {
  /** Answers that were not kept because there was no room. */
  readonly unkept: number;
  /** Requests that waited in the addon for the answer to another. */
  readonly held: number;
  /** Requests that JavaScript had to hold because too many waited in the addon. */
  readonly crowded: number;
}

/** The figures without the addon. */
export const NO_ANSWERS: AnswerFigures = { unkept: 0, held: 0, crowded: 0 };

/** One for each thread. */
export class AnswerCache implements AnswerLinks {
  figures = NO_ANSWERS;
  readonly #addon: NativeAddon;
  readonly #cache: Handle;
  readonly #variants = new Map<string, number>();
  #nextVariant = 1;
  /** Feeds with answers. */
  readonly #feeds = new Set<number>();
  /** By slot. */
  readonly #sessions = new Map<number, DirectSession>();
  /** Bodies requested once, by their identity. */
  readonly #asked = new WeakSet<object>();
  readonly #counters: HttpCounters;
  readonly #answered: (feed: number, bytes: number) => void;
  #releasing = false;
  readonly #released = (): void => {
    if (this.#releasing) return;
    this.#releasing = true;
    // A handler at work with one request must not get others.
    setImmediate(() => this.#releaseAll());
  };

  /**
   * `counters`: shared with the listeners. `answered` gets the bytes of a feed, and marks it as read.
   * `maxWaiting`: limit of requests that wait in the addon.
   */
  constructor(addon: NativeAddon, counters: HttpCounters, answered: (feed: number, bytes: number) => void, maxWaiting: number) {
    this.#addon = addon;
    this.#cache = addon.answersOpen(maxWaiting);
    this.#counters = counters;
    this.#answered = answered;
  }

  /** Null without the addon. */
  static open(counters: HttpCounters, answered: (feed: number, bytes: number) => void, maxWaiting: number): AnswerCache | null {
    const { addon } = loadAddon();
    return addon === null ? null : new AnswerCache(addon, counters, answered, maxWaiting);
  }

  link(descriptor: number): AnswerLink | null {
    const handle = this.#addon.answersLink(this.#cache, descriptor);
    return handle === null ? null : new AnswerLink(this.#addon, handle, this.#released);
  }

  /** Requests that wait for the answers to others. */
  get waiting(): number {
    return this.#addon.answersWaiting(this.#cache);
  }

  /** Whether the body with this `identity` was requested before: a single viewer of a stream causes no cost. */
  isWanted(identity: object): boolean {
    if (this.#asked.has(identity)) return true;
    this.#asked.add(identity);
    return false;
  }

  /**
   * The number for all requests to `vhost` that get the same answer for the same target; null if the request must not be
   * answered without JavaScript. Its answer will be kept, as one of `feed`.
   */
  variantOf(request: IncomingRequest, vhost: string, feed: number): number | null {
    for (const name of SPECIAL) if (request.header(name) !== undefined) return null;
    const connection = request.header('connection');
    if (connection !== undefined && connection.toLowerCase() !== 'keep-alive') return null;
    const origin = request.header('origin') ?? '';
    if (origin.length > MAX_ORIGIN) return null;
    const key = `${vhost}\n${acceptsGzip(request.header('accept-encoding'))}\n${origin}`;
    let variant = this.#variants.get(key);
    if (variant === undefined) {
      if (this.#variants.size >= MAX_VARIANTS) this.forget();
      variant = this.#nextVariant;
      this.#nextVariant += 1;
      this.#variants.set(key, variant);
    }
    this.#feeds.add(feed);
    return variant;
  }

  /** A session was verified for `feed`. */
  open(session: DirectSession, feed: number): void {
    session.slot = this.#addon.answersSession(this.#cache, session.token, feed, session.expiresAt);
    this.#sessions.set(session.slot, session);
  }

  /** The session has ended. */
  close(session: DirectSession): void {
    if (session.slot === NO_SLOT) return;
    this.#addon.answersForget(this.#cache, session.slot);
    this.#sessions.delete(session.slot);
    session.slot = NO_SLOT;
  }

  /** A feed has changed: its answers are invalid. */
  changed(feed: number): void {
    if (this.#feeds.delete(feed) && this.#addon.answersFlush(this.#cache, feed)) this.#released();
  }

  /** A feed is about to close: requests that wait for its answers arrive now. */
  closing(feed: number): void {
    this.#addon.answersReleaseFeed(this.#cache, feed);
  }

  /** A setting for all answers has changed: all answers are dropped, and all sessions must be verified again. */
  forget(): void {
    this.collect();
    if (this.#addon.answersFlush(this.#cache, ALL_FEEDS)) this.#released();
    this.#feeds.clear();
    this.#variants.clear();
    for (const session of this.#sessions.values()) session.slot = NO_SLOT;
    this.#sessions.clear();
  }

  /** Counts the answers since the last call. */
  collect(): void {
    const { requests, bytes, aborts, timeouts, refused, held, crowded, left, feeds, sessions } = this.#addon.answersTake(this.#cache);
    this.#counters.requests += requests + left;
    this.#counters.bytesSent += bytes;
    this.#counters.aborts += aborts + left;
    this.#counters.timeouts += timeouts;
    this.#counters.statuses[2] = (this.#counters.statuses[2] ?? 0) + requests;
    const { figures } = this;
    this.figures = { unkept: figures.unkept + refused, held: figures.held + held, crowded: figures.crowded + crowded };
    for (let n = 0; n + 1 < feeds.length; n += 2) this.#answered(feeds[n] ?? 0, feeds[n + 1] ?? 0);
    for (let n = 0; n + 1 < sessions.length; n += 2) this.#sessions.get(sessions[n] ?? 0)?.answered(sessions[n + 1] ?? 0);
  }

  /** Closes connections whose clients have not received an answer within `limit` ms. */
  sweep(limit: number): void {
    this.#addon.answersSweep(this.#cache, limit);
  }

  #releaseAll(): void {
    this.#releasing = false;
    this.#addon.answersReleaseAll(this.#cache);
  }
}
