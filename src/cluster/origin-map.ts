/** The origin map of a virtual host: Redis tells edges which server has a stream. */
import { randomUUID } from 'node:crypto';
import type { OriginMapStoreConfig } from '../config/index.ts';
import { shownUrl } from '../core/pull.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { Semaphore } from '../util/semaphore.ts';
import { DefinitionBook, type DefinitionBookOptions } from './definition-book.ts';
import { LeaseBook } from './lease-book.ts';
import { redisTarget } from './redis-client.ts';
import { RedisLink } from './redis-link.ts';

/** Lifetime of an address, s; the address of a server that died expires after it. */
const EXPIRY_S = 10;
const REFRESH_MS = 2500;
/** Addresses registered, renewed or removed concurrently. */
const MAX_AT_ONCE = 100;
const MAX_ADDRESS = 2048;
/** Separates the id of a node from its address. */
const AT = '@';
/** KEYS: stream. ARGV: obsolete address, our address, s. Returns the map's address afterwards; nil: none. */
const REPLACE = `
local present = redis.call('GET', KEYS[1])
if present == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
  return ARGV[2]
end
return present`;
/** Schemes that edges accept from the map. */
const FETCHED = /^(ovts?|rtsp|rtspc):\/\/[^\s/]+\/\S+$/i;

/** Options of a virtual host's map. The map opens and closes its link to Redis. */
export interface OriginMapOptions {
  readonly config: OriginMapStoreConfig;
  /** Port where edges pull streams from this server; null: none. */
  readonly ovtPort: number | null;
  /** `ovts` if that port uses TLS. Default: `ovt`. */
  readonly ovtScheme?: 'ovt' | 'ovts';
  readonly clock: Clock;
  readonly logger: Logger;
  /** For tests; default: as in the reference server. */
  readonly expiryS?: number;
  readonly refreshMs?: number;
  /** Called when Redis becomes reachable or unreachable. */
  readonly onReachable?: (reachable: boolean) => void;
  /** Unique among all processes; default: random. */
  readonly node?: string;
  /** For definitions that nodes share; absent: they share none. */
  readonly sharing?: Pick<DefinitionBookOptions, 'vhost' | 'keepers' | 'hasApplication' | 'untold'>;
}

/**
 * Counters, except for leases, definitions and the streams to register: `registered`, and `waiting` for Redis or for the end of another
 * server's entry.
 */
export interface OriginMapFigures {
  readonly found: number;
  readonly absent: number;
  readonly failed: number;
  readonly refused: number;
  readonly registered: number;
  /** Leases of shared work that this node holds, and leases lost to another node. */
  readonly leases: number;
  readonly lost: number;
  /** Definitions that nodes share, and those among them that this node cannot do. */
  readonly definitions: number;
  readonly unplaced: number;
  readonly waiting: number;
}

/** A stream of this server. */
interface Entry {
  readonly key: string;
  readonly address: string;
  /** Shared work that may produce it. */
  readonly works: readonly string[];
  /** The map has our address. */
  holds: boolean;
  /** A registration or renewal is pending. */
  busy: boolean;
  removed: boolean;
  /** The other server's address in the map, as last logged. */
  rival: string;
  /** The reason why Redis refused the registration, as last logged. */
  fault: string;
}

/**
 * Registers streams under `app/stream` if no other server has the name, and looks up others' streams. If another server has registered the
 * name, ours stays a candidate and takes over when that entry expires. Streams continue while Redis is unreachable.
 */
export class OriginMap {
  readonly #link: RedisLink;
  readonly #logger: Logger;
  /** The URL up to the name of a stream; null: this server registers nothing. */
  readonly #prefix: string | null;
  readonly #expiryS: number;
  readonly #entries = new Map<string, Entry>();
  readonly #working = new Set<Promise<void>>();
  /** Thousands of streams may begin or end at once: the link would refuse most of their commands. */
  readonly #turns = new Semaphore(MAX_AT_ONCE);
  readonly #timer: NodeJS.Timeout;
  readonly #lookUps = { found: 0, absent: 0, failed: 0 };
  /** Null: this server shares no work. */
  #leases: LeaseBook | null = null;
  /** Null: nodes share no definitions. */
  #definitions: DefinitionBook | null = null;
  #withdrawn = false;
  #refreshing = false;
  /** The reason why Redis refused the last failed lookup. */
  #fault = '';

  constructor({
    config,
    ovtPort,
    ovtScheme = 'ovt',
    clock,
    logger,
    expiryS = EXPIRY_S,
    refreshMs = REFRESH_MS,
    onReachable,
    node = randomUUID(),
    sharing,
  }: OriginMapOptions) {
    const { originHostName, redisServer } = config;
    this.#logger = logger;
    this.#expiryS = expiryS;
    this.#prefix = originHostName === undefined || ovtPort === null ? null : `${ovtScheme}://${originHostName}:${ovtPort}/`;
    if (originHostName !== undefined && ovtPort === null)
      logger.warn({}, 'OriginMapStore/OriginHostName has no effect: edges are not served, Bind/Publishers names no OVT port');
    this.#link = new RedisLink({
      target: redisTarget(redisServer),
      logger,
      onUp: () => {
        onReachable?.(true);
        this.#definitions?.up();
        this.#leases?.up();
        this.#work(this.#refresh());
      },
      onDown: () => onReachable?.(false),
    });
    if (config.sharedWork?.enable === true) {
      // A node that takes over work recognises by this prefix which addresses are obsolete.
      const name = this.#prefix === null ? node : node + AT + this.#prefix;
      const { group, leaseTime: leaseMs, keepWithoutRedis, shareDefinitions } = config.sharedWork;
      this.#leases = new LeaseBook({ link: this.#link, group, node: name, leaseMs, keepWithoutRedis, clock, logger });
      if (shareDefinitions && sharing !== undefined) {
        this.#definitions = new DefinitionBook({ link: this.#link, group, clock, logger, ...sharing });
      }
    }
    this.#timer = setInterval(() => this.#work(this.#refresh()), refreshMs);
  }

  /** Streams that this server wants to register. */
  get size(): number {
    return this.#entries.size;
  }

  /** Leases of shared work; null: this server shares none. */
  get leases(): LeaseBook | null {
    return this.#leases;
  }

  /** Definitions that nodes share; null: none. */
  get definitions(): DefinitionBook | null {
    return this.#definitions;
  }

  /** Whether Redis answers; otherwise `locate` returns null. */
  get reachable(): boolean {
    return this.#link.up;
  }

  /** Figures since it was opened; `refused`: commands not sent because too many were unanswered. */
  get figures(): OriginMapFigures {
    let registered = 0;
    for (const { holds } of this.#entries.values()) if (holds) registered += 1;
    const leases = { leases: this.#leases?.held ?? 0, lost: this.#leases?.lost ?? 0 };
    const { definitions, unplaced } = this.#definitions?.figures ?? { definitions: 0, unplaced: 0 };
    return {
      ...this.#lookUps,
      ...leases,
      definitions,
      unplaced,
      refused: this.#link.refused,
      registered,
      waiting: this.#entries.size - registered,
    };
  }

  /** Removes every stream from the map, or registers all again, including those added meanwhile. */
  withdraw(withdrawn: boolean): void {
    this.#withdrawn = withdrawn;
    this.#leases?.yield(withdrawn);
    if (!withdrawn) this.#work(this.#refresh());
    else for (const entry of this.#entries.values()) if (!entry.busy) this.#work(this.#release(entry));
  }

  /**
   * Edges can pull the stream from this server; shared work of one of the names `works` may produce it. Does nothing if this server is only
   * an edge.
   */
  add(app: string, stream: string, works: readonly string[] = []): void {
    if (this.#prefix === null) return;
    const key = `${app}/${stream}`;
    const entry = { key, address: this.#prefix + key, works, holds: false, busy: false, removed: false, rival: '', fault: '' };
    this.#entries.set(key, entry);
    this.#work(this.#claim(entry));
  }

  /** The stream has ended. */
  remove(app: string, stream: string): void {
    const entry = this.#entries.get(`${app}/${stream}`);
    if (entry === undefined) return;
    this.#entries.delete(entry.key);
    entry.removed = true;
    if (!entry.busy) this.#work(this.#release(entry));
  }

  /** Resolves with the URL of a stream; null if no other server has it, or Redis does not answer. Never rejects. */
  async locate(app: string, stream: string): Promise<string | null> {
    const key = `${app}/${stream}`;
    const address = await this.#lookUp(key);
    if (address === undefined) {
      this.#lookUps.failed += 1;
      return null;
    }
    this.#lookUps[address === null ? 'absent' : 'found'] += 1;
    // Entries from before a restart of this server are obsolete.
    if (address === null || (this.#prefix !== null && address === this.#prefix + key)) return null;
    if (address.length <= MAX_ADDRESS && FETCHED.test(address)) return address;
    this.#logger.warn({ stream: key }, `the origin map has something for '${key}' that is no URL of OVT or RTSP`);
    return null;
  }

  /** Undefined: Redis does not answer. */
  async #lookUp(key: string): Promise<string | null | undefined> {
    try {
      const address = await this.#link.get(key);
      this.#fault = '';
      return address;
    } catch (error) {
      this.#fault = this.#tell(error, { key, what: 'looked up in', told: this.#fault });
      return undefined;
    }
  }

  /** Logs an error of Redis once; the link logs missing answers. Returns the last logged text. */
  #tell(error: unknown, { key, what, told }: { readonly key: string; readonly what: string; readonly told: string }): string {
    const fault = messageOf(error);
    if (!this.#link.up || fault === told) return told;
    this.#logger.warn({ stream: key }, `'${key}' cannot be ${what} the origin map: ${fault}`);
    return fault;
  }

  /** Resolves when ended streams are removed from the map, or Redis does not answer. Call it after the last stream has ended. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#definitions?.close();
    await this.#leases?.close();
    while (this.#working.size > 0) await Promise.all(this.#working);
    this.#link.close();
  }

  #work(work: Promise<void>): void {
    const settled = work
      .catch((error: unknown) => this.#logger.error({ err: error }, 'the origin map failed inside the server'))
      .finally(() => this.#working.delete(settled));
    this.#working.add(settled);
  }

  async #refresh(): Promise<void> {
    if (this.#refreshing) return;
    this.#refreshing = true;
    try {
      // A server that is only an edge also has to notice when Redis hangs.
      await this.#link.ping();
      const entries = [...this.#entries.values()];
      for (let index = 0; index < entries.length; index += MAX_AT_ONCE) {
        await Promise.all(entries.slice(index, index + MAX_AT_ONCE).map((entry) => this.#claim(entry)));
      }
    } catch {
      // The link has logged it; with the next connection everything is registered again.
    } finally {
      this.#refreshing = false;
    }
  }

  /** Registers a stream, or renews its address, unless another server has the name. Never rejects. */
  async #claim(entry: Entry): Promise<void> {
    if (entry.busy || entry.removed || this.#withdrawn) return;
    entry.busy = true;
    try {
      await this.#turns.take(() => this.#register(entry));
      entry.fault = '';
    } catch (error) {
      entry.fault = this.#tell(error, { key: entry.key, what: 'put into', told: entry.fault });
    }
    entry.busy = false;
    if (entry.removed || this.#withdrawn) await this.#release(entry);
  }

  async #register(entry: Entry): Promise<void> {
    const { key, address, holds } = entry;
    const present = !holds && (await this.#setIfAbsent(entry)) ? address : await this.#replace(entry, await this.#renew(entry));
    entry.holds = present === address;
    if (entry.holds) {
      entry.rival = '';
      if (!holds) this.#logger.info({ stream: key }, `'${key}' is in the origin map as ${address}`);
    } else if (present !== null && present !== entry.rival) {
      entry.rival = present;
      const shown = shownUrl(present).slice(0, MAX_ADDRESS);
      this.#logger.info({ stream: key }, `'${key}' is in the origin map as ${shown}: ours waits`);
    }
  }

  /** Resolves with the map's address afterwards. After a longer absence than the lifetime of an address it may be another server's. */
  async #renew(entry: Entry): Promise<string | null> {
    const { key, address } = entry;
    const present = await this.#link.get(key);
    if (present === address) await this.#link.set(key, address, this.#expiryS);
    else if (present === null && (await this.#setIfAbsent(entry))) return address;
    return present;
  }

  /**
   * The previous holder of the work no longer has the stream, so its address is replaced at once. Resolves with the map's address
   * afterwards.
   */
  async #replace({ key, address, works }: Entry, present: string | null): Promise<string | null> {
    if (present === null || present === address || this.#leases === null) return present;
    const leases = this.#leases;
    const before = works.map((work) => prefixOf(leases.predecessorOf(work)));
    if (!before.some((prefix) => prefix !== null && present === prefix + key)) return present;
    const now = await this.#link.evaluate(REPLACE, [key], [present, address, String(this.#expiryS)]);
    return typeof now === 'string' ? now : null;
  }

  #setIfAbsent({ key, address }: Entry): Promise<boolean> {
    return this.#link.setIfAbsent(key, address, this.#expiryS);
  }

  /** Removes the address from the map if it is ours. Never rejects. */
  async #release(entry: Entry): Promise<void> {
    const { key, address } = entry;
    if (!entry.holds) return;
    entry.holds = false;
    try {
      await this.#turns.take(async () => {
        const present = await this.#link.get(key);
        // A new stream with this name may have started here meanwhile.
        if (present === address && (this.#withdrawn || !this.#entries.has(key))) await this.#link.delete(key);
      });
    } catch {
      // The entry expires.
    }
  }
}

/** The address prefix of a node that shares work; null: the node has none, or is unknown. */
function prefixOf(node: string | null): string | null {
  const [, prefix = null] = node?.split(AT) ?? [];
  return prefix;
}
