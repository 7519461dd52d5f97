/** One connection to a Redis server with bounded waiting times. */
import { scatteredPause } from '../util/growing-pause.ts';
import type { Logger } from '../util/logger.ts';
import {
  ANSWER_MS,
  greet,
  isMisplaced,
  isTimeout,
  openClient,
  type RedisClient,
  type RedisTarget,
  redisErrorText,
  sentinelFault,
} from './redis-client.ts';

const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5000;
/** A connection is trusted after this time; one that ends sooner may fail again at the next attempt. */
const STEADY_MS = 10_000;
const SILENT = `no answer in ${ANSWER_MS} ms`;
/** Commands without an answer; above this, commands fail at once. */
const MAX_IN_FLIGHT = 1000;
/** Different reasons logged between two connections. */
const MAX_REASONS = 8;

/** The server, and callbacks for its availability. A link retries until it is closed. */
export interface RedisLinkOptions {
  readonly target: RedisTarget;
  readonly logger: Logger;
  /** Default: 10 s. */
  readonly steadyMs?: number;
  /** The server can be used, for the first time or again. */
  readonly onUp: () => void;
  /** The connection was lost, or cannot be used. */
  readonly onDown?: () => void;
}

/**
 * Keeps a connection while it is open. Commands fail at once while the server is unreachable, and after a second while it hangs. The log
 * has one line for each change: connected, unusable (once for each reason), reconnected. If a server is lost again soon after each
 * reconnection, that is logged once, and the next line follows when a connection has lasted.
 */
export class RedisLink {
  /** Commands not sent because too many were unanswered. */
  refused = 0;
  readonly #redis: RedisClient;
  readonly #options: RedisLinkOptions;
  readonly #told = new Set<string>();
  #up = false;
  /** Usable connections so far. */
  #ups = 0;
  /** The server connects and disconnects repeatedly, which was logged. */
  #wavers = false;
  #steady: NodeJS.Timeout | undefined;
  #resuming: NodeJS.Timeout | undefined;
  #closed = false;
  #inFlight = 0;
  /** Consecutive connections that were unusable, or did not last. */
  #attempts = 0;
  /** Why the connection is about to end; null: unknown. */
  #fault: string | null = null;

  constructor(options: RedisLinkOptions) {
    this.#options = options;
    this.#redis = openClient(options.target, () => this.#pause());
    this.#redis.on('error', (error: Error) => {
      const fault = sentinelFault(error);
      // The client closes nothing in that case.
      if (fault !== null) this.#down(fault);
      else if (!/^All sentinels are/.test(error.message)) this.#fault = redisErrorText(error);
    });
    // In a cluster: the error of one of its members.
    this.#redis.on('node error', (error: Error) => {
      this.#fault ??= redisErrorText(error);
    });
    this.#redis.on('close', () => this.#ended());
    this.#redis.on('ready', () => void this.#greet());
    this.#redis.on('end', () => this.#resume());
  }

  /** Whether commands are sent. */
  get up(): boolean {
    return this.#up;
  }

  /** Resolves with the value; null if there is none. */
  get(key: string): Promise<string | null> {
    return this.#command(() => this.#redis.get(key));
  }

  /** Sets a value that expires after `seconds`. */
  async set(key: string, value: string, seconds: number): Promise<void> {
    await this.#command(() => this.#redis.set(key, value, 'EX', seconds));
  }

  /** Like `set`, but only if there is no value; resolves with whether that was so. */
  async setIfAbsent(key: string, value: string, seconds: number): Promise<boolean> {
    return (await this.#command(() => this.#redis.set(key, value, 'EX', seconds, 'NX'))) === 'OK';
  }

  async delete(key: string): Promise<void> {
    await this.#command(() => this.#redis.del(key));
  }

  /** Runs a script; resolves with its result. */
  evaluate(script: string, keys: readonly string[], values: readonly string[]): Promise<unknown> {
    return this.#command(() => this.#redis.eval(script, keys.length, ...keys, ...values));
  }

  async ping(): Promise<void> {
    await this.#command(() => this.#redis.ping());
  }

  /** Ends the connection. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#up = false;
    clearTimeout(this.#steady);
    clearTimeout(this.#resuming);
    this.#redis.disconnect();
  }

  async #command<T>(send: () => Promise<T>): Promise<T> {
    if (!this.#up) throw new Error(`Redis at ${this.#options.target.text} is not there`);
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      this.refused += 1;
      throw new Error(`Redis at ${this.#options.target.text} has ${MAX_IN_FLIGHT} commands to answer`);
    }
    this.#inFlight += 1;
    try {
      return await send();
    } catch (error) {
      this.#failed(error);
      throw error;
    } finally {
      this.#inFlight -= 1;
    }
  }

  /** Disconnects at once from a server that hangs: the next request must not wait as well. */
  #failed(error: unknown): void {
    if (this.#closed || !this.#up) return;
    const misplaced = isMisplaced(error);
    if (!misplaced && !isTimeout(error)) return;
    const reason = misplaced ? redisErrorText(error) : SILENT;
    this.#fault = reason;
    this.#down(reason);
    this.#redis.disconnect(true);
  }

  async #greet(): Promise<void> {
    const { target, onUp, steadyMs = STEADY_MS } = this.#options;
    try {
      await greet(this.#redis, target);
    } catch (error) {
      this.#fault ??= isTimeout(error) ? SILENT : redisErrorText(error);
      if (!this.#closed && this.#redis.status === 'ready') this.#redis.disconnect(true);
      return;
    }
    if (this.#closed) return;
    this.#up = true;
    this.#ups += 1;
    clearTimeout(this.#steady);
    this.#steady = setTimeout(() => this.#stayed(), steadyMs).unref();
    if (!this.#wavers) this.#tellUp();
    onUp();
  }

  #stayed(): void {
    this.#steady = undefined;
    this.#attempts = 0;
    if (!this.#wavers) return;
    this.#wavers = false;
    this.#tellUp();
  }

  #tellUp(): void {
    this.#told.clear();
    const { target, logger } = this.#options;
    const address = target.text;
    logger.info({ redis: address }, this.#ups > 1 ? `Redis at ${address} is back` : `connected to Redis at ${address}`);
  }

  /** ioredis gives up when Sentinels announce a failover while it asks one of them for the master. */
  #resume(): void {
    if (this.#closed) return;
    clearTimeout(this.#resuming);
    this.#resuming = setTimeout(() => void this.#redis.connect().catch(() => undefined), this.#pause());
  }

  #ended(): void {
    const reason = this.#fault ?? 'the connection was closed';
    this.#fault = null;
    this.#down(reason);
  }

  #down(reason: string): void {
    const wasUp = this.#up;
    this.#up = false;
    const isBrief = this.#steady !== undefined;
    clearTimeout(this.#steady);
    this.#steady = undefined;
    if (!this.#closed) this.#options.onDown?.();
    if (this.#closed || this.#told.has(reason) || this.#told.size >= MAX_REASONS) return;
    this.#told.add(reason);
    const { target, logger, steadyMs = STEADY_MS } = this.#options;
    const address = target.text;
    this.#wavers ||= isBrief && this.#ups > 1;
    const lost = this.#wavers ? `comes and goes, the next is told when it has stayed for ${steadyMs} ms` : 'was lost';
    logger.warn({ redis: address }, `Redis at ${address} ${wasUp ? lost : 'cannot be used'}: ${reason}`);
  }

  /** Pause before the next connection. */
  #pause(): number {
    this.#attempts += 1;
    return scatteredPause(this.#attempts - 1, FIRST_PAUSE_MS, MAX_PAUSE_MS, Math.random());
  }
}
