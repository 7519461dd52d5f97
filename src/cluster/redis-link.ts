/** One connection to a Redis server on which nobody waits for long. */
import { createRequire } from 'node:module';
import type { Redis } from 'ioredis';
import type { Logger } from '../util/logger.ts';

/** Sixty modules, for the few who have such a server. */
const loadClient = (): typeof import('ioredis') => createRequire(import.meta.url)('ioredis');

/** A command that is not answered in this time fails, and the connection is made anew. */
const ANSWER_MS = 1000;
const CONNECT_MS = 2000;
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5000;
/** Doublings after which the limit is reached anyway. */
const MAX_DOUBLINGS = 8;
/** A connection of use for so long is trusted: one that ends sooner may be made in vain the next time as well. */
const STEADY_MS = 10_000;
const SILENT = `no answer in ${ANSWER_MS} ms`;
/** Commands without an answer; more fail at once. */
const MAX_IN_FLIGHT = 1000;
/** Different reasons told between two connections. */
const MAX_REASONS = 8;

/** Which server, and who hears that it answers. A link tries again by itself until it is closed. */
export interface RedisLinkOptions {
  /** `host:port`, or `[address]:port` for IPv6. */
  readonly address: string;
  /** Sent with AUTH; null: none is. */
  readonly password: string | null;
  readonly logger: Logger;
  /** Default: 10 s. */
  readonly steadyMs?: number;
  /** It can be used, for the first time or again. */
  readonly onUp: () => void;
}

/**
 * Connects for as long as it is open. Commands fail at once while the server is away, and after a second while it hangs. The log
 * has one line for each change: connected, not to be used (once for each reason), back. Of a server that is lost again as soon
 * as it is back it says so once, and the next when it has stayed.
 */
export class RedisLink {
  /** Commands that were not sent because too many had no answer. */
  refused = 0;
  readonly #redis: Redis;
  readonly #options: RedisLinkOptions;
  readonly #told = new Set<string>();
  #up = false;
  /** Connections that could be used. */
  #ups = 0;
  /** It comes and goes, which was told. */
  #wavers = false;
  #steady: NodeJS.Timeout | undefined;
  #closed = false;
  #inFlight = 0;
  /** Connections in a row that could not be used, or not for long. */
  #attempts = 0;
  /** Why the connection is about to end; null: nobody said. */
  #fault: string | null = null;

  constructor(options: RedisLinkOptions) {
    this.#options = options;
    const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(options.address) ?? [];
    const client = loadClient();
    this.#redis = new client.Redis({
      host,
      port: Number(port),
      protocol: 2,
      disableClientInfo: true,
      enableReadyCheck: false,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      connectTimeout: CONNECT_MS,
      commandTimeout: ANSWER_MS,
      retryStrategy: () => this.#pause(),
    });
    this.#redis.on('error', (error: Error) => {
      this.#fault = reasonOf(error);
    });
    this.#redis.on('close', () => this.#ended());
    this.#redis.on('ready', () => void this.#greet());
  }

  /** Commands are sent. */
  get up(): boolean {
    return this.#up;
  }

  /** Resolves with the value; null when there is none. */
  get(key: string): Promise<string | null> {
    return this.#command(() => this.#redis.get(key));
  }

  /** Sets a value that goes after `seconds`. */
  async set(key: string, value: string, seconds: number): Promise<void> {
    await this.#command(() => this.#redis.set(key, value, 'EX', seconds));
  }

  /** Like `set`, but only where there is no value; resolves with whether there was none. */
  async setIfAbsent(key: string, value: string, seconds: number): Promise<boolean> {
    return (await this.#command(() => this.#redis.set(key, value, 'EX', seconds, 'NX'))) === 'OK';
  }

  async delete(key: string): Promise<void> {
    await this.#command(() => this.#redis.del(key));
  }

  async ping(): Promise<void> {
    await this.#command(() => this.#redis.ping());
  }

  /** Ends the connection. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#up = false;
    clearTimeout(this.#steady);
    this.#redis.disconnect();
  }

  async #command<T>(send: () => Promise<T>): Promise<T> {
    if (!this.#up) throw new Error(`Redis at ${this.#options.address} is not there`);
    if (this.#inFlight >= MAX_IN_FLIGHT) {
      this.refused += 1;
      throw new Error(`Redis at ${this.#options.address} has ${MAX_IN_FLIGHT} commands to answer`);
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

  /** A server that hangs is left at once: whoever comes next shall not wait as well. */
  #failed(error: unknown): void {
    if (!isTimeout(error) || this.#closed || !this.#up) return;
    this.#fault = SILENT;
    this.#down(SILENT);
    this.#redis.disconnect(true);
  }

  async #greet(): Promise<void> {
    const { password, onUp, steadyMs = STEADY_MS } = this.#options;
    try {
      if (password !== null) await this.#redis.auth(password);
      if ((await this.#redis.ping()) !== 'PONG') throw new Error('that is no Redis server');
    } catch (error) {
      this.#fault ??= isTimeout(error) ? SILENT : reasonOf(error);
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
    const { address, logger } = this.#options;
    logger.info({ redis: address }, this.#ups > 1 ? `Redis at ${address} is back` : `connected to Redis at ${address}`);
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
    if (this.#closed || this.#told.has(reason) || this.#told.size >= MAX_REASONS) return;
    this.#told.add(reason);
    const { address, logger, steadyMs = STEADY_MS } = this.#options;
    this.#wavers ||= isBrief && this.#ups > 1;
    const lost = this.#wavers ? `comes and goes, the next is told when it has stayed for ${steadyMs} ms` : 'was lost';
    logger.warn({ redis: address }, `Redis at ${address} ${wasUp ? lost : 'cannot be used'}: ${reason}`);
  }

  /** Before the next connection; up to a fifth is left to chance. */
  #pause(): number {
    const doublings = Math.min(this.#attempts, MAX_DOUBLINGS);
    this.#attempts += 1;
    return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** doublings) * (0.8 + 0.2 * Math.random());
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === 'Command timed out';
}

/** A host of several addresses fails with an error without words. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as NodeJS.ErrnoException;
  return error.message || code || error.name;
}
