/** Leases in Redis: of several nodes that could do the same work, one does it. */
import type { WorkState } from '../core/shared-work.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { RedisLink } from './redis-link.ts';

/** A lease is renewed this often while it lasts. */
const RENEWALS = 4;
/** A lease ends by our own clock earlier than in Redis by this factor: clocks differ, and the work asks only once a second. */
const SAFETY = 0.9;
const ASKED_EVERY_MS = 1000;
/** Without a request for this time the work is not wanted here. It is requested once a second. */
const FORGET_MS = 5000;
/** Time from the start of a drain until the work has stopped. */
const YIELD_MS = 1500;
/** Time for a former holder to renew its lease after Redis is back. */
const RENEWED_MS = 1500;
const MAX_AT_ONCE = 100;
/** Waiting nodes claim a lease this long after its end, ms. */
const EXPIRED_MS = 20;
/** Work above this limit is not claimed here. */
const MAX_LEASES = 10_000;

/**
 * KEYS: lease, counter. ARGV: node, ms, number of the lease in the node's belief. Returns the number of the lease; or 0, the text of the
 * other node's lease, and its remaining time, ms. Numbers also grow after Redis has lost its keys, because they are at least the time.
 */
const CLAIM = `
local held = redis.call('GET', KEYS[1])
if held then
  if held ~= ARGV[1] .. ' ' .. ARGV[3] then return {'0', held, redis.call('PTTL', KEYS[1])} end
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {ARGV[3]}
end
local now = redis.call('TIME')
local number = math.max(redis.call('INCR', KEYS[2]), now[1] * 1000 + math.floor(now[2] / 1000))
local text = string.format('%d', number)
redis.call('SET', KEYS[2], text)
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. text, 'PX', ARGV[2])
return {text}`;

/** KEYS: lease. ARGV: node, number. A lease that now belongs to another node is kept. */
const RELEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] .. ' ' .. ARGV[2] then return redis.call('DEL', KEYS[1]) end
return 0`;

/** The owner provides the link; nodes of one `group` share their work. */
export interface LeaseBookOptions {
  readonly link: Pick<RedisLink, 'up' | 'evaluate'>;
  readonly group: string;
  /** Unique among all processes; without blanks. */
  readonly node: string;
  /** At least 3000. */
  readonly leaseMs: number;
  /** Our leases remain ours while Redis is unreachable, although another node may not see them. */
  readonly keepWithoutRedis: boolean;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly logger: Logger;
}

interface Lease {
  readonly name: string;
  askedAt: number;
  /** '0': none. */
  number: string;
  /** By our own clock. */
  until: number;
  /** Whether Redis has answered about it. */
  known: boolean;
  busy: boolean;
  /** The last other node that held it; '': none is known. */
  rival: string;
  /** Claims the lease when another node's ends. */
  soon: NodeJS.Timeout | undefined;
  /** Called when the state is known, or the lease is given up. */
  readonly waiting: Set<() => void>;
}

function wake({ waiting }: Lease): void {
  for (const resolve of waiting) resolve();
}

/** Leases are claimed on request and renewed; they expire when this process ends. The creator calls `close`. */
export class LeaseBook {
  /** Leases lost to another node, or because Redis was unreachable. */
  lost = 0;
  readonly #options: LeaseBookOptions;
  readonly #leases = new Map<string, Lease>();
  readonly #timer: NodeJS.Timeout;
  readonly #prefix: string;
  /** When Redis came back: former holders renew first. */
  #backAt = Number.NEGATIVE_INFINITY;
  #ups = 0;
  #yielding = false;
  #yielded: NodeJS.Timeout | undefined;
  #refreshing = false;
  #fault = '';

  constructor(options: LeaseBookOptions) {
    this.#options = options;
    // All keys of a group hash to one slot of a cluster.
    this.#prefix = `millrace:{${options.group}}:`;
    this.#timer = setInterval(() => void this.refresh(), options.leaseMs / RENEWALS);
  }

  /** Leases that this node holds. */
  get held(): number {
    let held = 0;
    for (const lease of this.#leases.values()) if (this.#stateOf(lease) === 'ours') held += 1;
    return held;
  }

  /** Which node does the work; the call requests the work here. */
  stateOf(name: string): WorkState {
    const now = this.#options.clock.monotonic();
    let lease = this.#leases.get(name);
    if (lease === undefined) {
      if (this.#leases.size >= MAX_LEASES || this.#yielding) return 'others';
      const none = { number: '0', until: Number.NEGATIVE_INFINITY, known: false, rival: '' };
      lease = { ...none, name, askedAt: now, busy: false, soon: undefined, waiting: new Set() };
      this.#leases.set(name, lease);
      void this.#claim(lease);
    }
    lease.askedAt = now;
    return this.#stateOf(lease);
  }

  /** As `stateOf`; resolves when the state is known, after `ms` at the latest. Never rejects. */
  async decided(name: string, ms: number): Promise<void> {
    if (this.stateOf(name) !== 'unknown') return;
    const waiting = this.#leases.get(name)?.waiting;
    const { promise, resolve } = Promise.withResolvers<void>();
    const late = setTimeout(resolve, ms);
    waiting?.add(resolve);
    await promise;
    waiting?.delete(resolve);
    clearTimeout(late);
  }

  /**
   * The node from which this node took over the work; null: the work is not ours, or no previous node is known. Does not request the work.
   */
  predecessorOf(name: string): string | null {
    const lease = this.#leases.get(name);
    return lease === undefined || lease.rival === '' || this.#stateOf(lease) !== 'ours' ? null : lease.rival;
  }

  /** Redis can be used, for the first time or again. */
  up(): void {
    this.#ups += 1;
    const now = this.#options.clock.monotonic();
    if (this.#ups > 1) this.#backAt = now;
    // A lease that was kept without Redis must be renewable before it is dropped.
    if (this.#options.keepWithoutRedis) for (const lease of this.#leases.values()) lease.until = Math.max(lease.until, now + RENEWED_MS);
    void this.refresh();
  }

  /** Leaves all work to other nodes, or takes part again. */
  yield(yielding: boolean): void {
    this.#yielding = yielding;
    clearTimeout(this.#yielded);
    if (!yielding) {
      void this.refresh();
      return;
    }
    this.#wakeAll();
    // The work notices at its next request.
    this.#yielded = setTimeout(() => void this.#releaseAll(), YIELD_MS);
  }

  /** Renews our leases, claims free ones, and drops those without requests. Never rejects. */
  async refresh(): Promise<void> {
    if (this.#refreshing) return;
    this.#refreshing = true;
    const now = this.#options.clock.monotonic();
    const leases = [...this.#leases.values()];
    for (const lease of leases) {
      if (now - lease.askedAt <= FORGET_MS) continue;
      this.#leases.delete(lease.name);
      clearTimeout(lease.soon);
      wake(lease);
      void this.#release(lease);
    }
    for (let index = 0; index < leases.length; index += MAX_AT_ONCE) {
      await Promise.all(leases.slice(index, index + MAX_AT_ONCE).map((lease) => this.#claim(lease)));
    }
    this.#refreshing = false;
  }

  /** Gives all leases back; call it when the work has ended. Never rejects. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#yielded);
    this.#yielding = true;
    this.#wakeAll();
    for (const { soon } of this.#leases.values()) clearTimeout(soon);
    await this.#releaseAll();
  }

  #stateOf({ number, until, known }: Lease): WorkState {
    const { clock, link, keepWithoutRedis } = this.#options;
    if (this.#yielding) return 'others';
    if (number !== '0' && (clock.monotonic() < until || (keepWithoutRedis && !link.up))) return 'ours';
    return known ? 'others' : 'unknown';
  }

  async #claim(lease: Lease): Promise<void> {
    const { link, node, leaseMs, clock } = this.#options;
    const asked = clock.monotonic();
    const isFresh = lease.number === '0' && asked - this.#backAt < leaseMs / RENEWALS;
    if (lease.busy || this.#yielding || !link.up || isFresh || this.#leases.get(lease.name) !== lease) return;
    lease.busy = true;
    const before = lease.number;
    try {
      const keys = [`${this.#prefix}lease:${lease.name}`, `${this.#prefix}lease-number`];
      const answer = await link.evaluate(CLAIM, keys, [node, String(leaseMs), before]);
      const [number, held = '', left = 0] = [answer].flat();
      lease.number = String(number ?? '0');
      if (lease.number === '0') this.#await(lease, String(held), Number(left));
      lease.until = asked + leaseMs * SAFETY - ASKED_EVERY_MS;
      lease.known = true;
      wake(lease);
      this.#fault = '';
    } catch (error) {
      this.#tell(error);
    }
    lease.busy = false;
    this.#tellChange(lease, before);
    if (this.#yielding || this.#leases.get(lease.name) !== lease) await this.#release(lease);
  }

  /** Another node has it, for `left` ms more if it does not renew it: who waits until then loses no time. */
  #await(lease: Lease, held: string, left: number): void {
    lease.rival = held.split(' ', 1)[0] ?? '';
    clearTimeout(lease.soon);
    lease.soon = undefined;
    if (left > 0 && left < this.#options.leaseMs / RENEWALS) lease.soon = setTimeout(() => void this.#claim(lease), left + EXPIRED_MS);
  }

  #tellChange({ name, number }: Lease, before: string): void {
    const { logger } = this.#options;
    if (number === before) return;
    if (number === '0') {
      this.lost += 1;
      logger.warn({ work: name }, `another node does '${name}' now`);
    } else logger.info({ work: name, lease: number }, `this node does '${name}', by lease ${number}`);
  }

  /** Once for each reason; that Redis is away the link tells. */
  #tell(error: unknown): void {
    const fault = messageOf(error);
    if (!this.#options.link.up || fault === this.#fault) return;
    this.#fault = fault;
    this.#options.logger.warn({}, `leases cannot be had: ${fault}`);
  }

  #wakeAll(): void {
    for (const lease of this.#leases.values()) wake(lease);
  }

  async #releaseAll(): Promise<void> {
    await Promise.all([...this.#leases.values()].map((lease) => this.#release(lease)));
  }

  async #release(lease: Lease): Promise<void> {
    const { link, node } = this.#options;
    const { name, number } = lease;
    if (number === '0' || lease.busy) return;
    lease.number = '0';
    try {
      await link.evaluate(RELEASE, [`${this.#prefix}lease:${name}`], [node, number]);
    } catch {
      // It ends by itself.
    }
  }
}
