/** Definitions in Redis: work that the API of one node defines is known to all nodes of a group, so that any of them can do it. */
import { randomUUID } from 'node:crypto';
import { MAX_DEFINITION_BYTES, WORK_NOUNS, type Work, type WorkKeeper } from '../core/shared-work.ts';
import { isAddressableName } from '../core/stream-address.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import type { RedisLink } from './redis-link.ts';
import type { UntoldChanges } from './untold-changes.ts';

const LOOK_MS = 1000;
/** Definitions and deletions of a virtual host. */
export const MAX_SHARED_DEFINITIONS = 2000;
const MAX_NAME = 1024;
/** Entries that one command reads, and entries written at once. */
const MAX_AT_ONCE = 100;
/** A deletion is remembered this long: a node that was away for longer brings a deleted definition back. */
const DELETED_MS = 30 * 86_400_000;
/** The version of a definition that no node is known to have changed. */
const FOUND = 1;

/**
 * KEYS: definitions, their changes, their deletions, state. ARGV: name, version, text, maximum, a new epoch, end of the memory of deletions.
 * Returns '1' and the epoch if that is the definition now; '0' and a definition of another node that is as new or newer; 'full'.
 */
const WRITE = `
local text = ARGV[2] .. ' ' .. ARGV[3]
local present = redis.call('HGET', KEYS[1], ARGV[1])
if present == text then return {'1', redis.call('HGET', KEYS[4], 'epoch') or ''} end
if present and tonumber(string.match(present, '^%d+')) >= tonumber(ARGV[2]) then return {'0', present} end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ARGV[6], 'LIMIT', 0, 10)) do
  redis.call('ZREM', KEYS[3], name)
  redis.call('ZREM', KEYS[2], name)
  redis.call('HDEL', KEYS[1], name)
end
if not present and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[4]) then
  local oldest = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
  if not oldest then return {'full'} end
  redis.call('ZREM', KEYS[3], oldest)
  redis.call('ZREM', KEYS[2], oldest)
  redis.call('HDEL', KEYS[1], oldest)
end
local number = redis.call('HINCRBY', KEYS[4], 'number', 1)
redis.call('HSETNX', KEYS[4], 'epoch', ARGV[5])
redis.call('HSET', KEYS[1], ARGV[1], text)
redis.call('ZADD', KEYS[2], number, ARGV[1])
if ARGV[3] == '' then redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1]) else redis.call('ZREM', KEYS[3], ARGV[1]) end
return {'1', redis.call('HGET', KEYS[4], 'epoch')}`;

/**
 * KEYS: definitions, their changes, state. ARGV: number of the last change that is known, maximum. Returns the epoch, which is another one
 * after Redis has lost its keys, and the next changes: name, definition, number.
 */
const READ = `
local answer = {redis.call('HGET', KEYS[3], 'epoch') or ''}
local changes = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for index = 1, #changes, 2 do
  table.insert(answer, changes[index])
  table.insert(answer, redis.call('HGET', KEYS[1], changes[index]) or '')
  table.insert(answer, changes[index + 1])
end
return answer`;

/** The owner provides the link, and calls `up`. */
export interface DefinitionBookOptions {
  readonly link: Pick<RedisLink, 'up' | 'evaluate'>;
  readonly group: string;
  readonly vhost: string;
  readonly keepers: readonly WorkKeeper[];
  readonly hasApplication: (app: string) => boolean;
  readonly untold: UntoldChanges;
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Logger;
}

/** The last known change of a piece of work. */
interface Entry {
  readonly work: Work;
  readonly version: number;
  /** JSON; '': deleted. */
  readonly text: string;
  /** This node has it, or has deleted it. */
  isDone: boolean;
  /** Redis has it. */
  isTold: boolean;
  /** Why this node cannot do it, as last logged. */
  fault: string;
}

/**
 * The last change of each piece of work counts, by the clocks of the nodes. Every node adopts what others define, waits for its lease, and
 * deletes what others delete. The creator calls `start` when the keepers have their work, and `close`.
 */
export class DefinitionBook {
  readonly #options: DefinitionBookOptions;
  readonly #keys: readonly [definitions: string, changes: string, deletions: string, state: string];
  readonly #entries = new Map<string, Entry>();
  /** Work that the API is changing: changes of other nodes wait. */
  readonly #held = new Map<string, number>();
  /** Work that is being adopted or dropped: the API waits. */
  readonly #settling = new Map<string, Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  /** The number of the last change that was read. */
  #last = '0';
  /** '': Redis has none. */
  #epoch = '';
  #isUnread = true;
  #turn: Promise<void> | null = null;
  #isReady = false;
  /** Resolved with `#isReady`, and at the end. */
  readonly #known = Promise.withResolvers<void>();
  #fault = '';
  #isFull = false;

  constructor(options: DefinitionBookOptions) {
    const { group, vhost } = options;
    this.#options = options;
    // All keys of a group hash to one slot of a cluster.
    const key = (what: string): string => `millrace:{${group}}:${what}:${vhost}`;
    this.#keys = [key('definitions'), key('definition-changes'), key('definition-deletions'), key('definition-state')];
  }

  /** Whether this node knows the definitions of the others. */
  get ready(): boolean {
    return this.#isReady;
  }

  /** Resolves when this node knows the definitions of the others, after `ms` at the latest. Never rejects. */
  async known(ms: number): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, ms);
    await Promise.race([this.#known.promise, late.promise]);
    clearTimeout(timer);
  }

  /** Definitions of all nodes, and those among them that this node cannot do. */
  get figures(): { readonly definitions: number; readonly unplaced: number } {
    const live = [...this.#entries.values()].filter(({ text }) => text !== '');
    return { definitions: live.length, unplaced: live.filter(({ isDone }) => !isDone).length };
  }

  /** The keepers have their work. */
  start(): void {
    this.#timer ??= setInterval(() => void this.look(), LOOK_MS);
    void this.look();
  }

  /** Redis can be used, for the first time or again: it may have lost something. */
  up(): void {
    this.#isUnread = true;
    if (this.#timer !== undefined) void this.look();
  }

  /** Tells and learns changes. Never rejects. */
  look(): Promise<void> {
    this.#turn ??= this.#look().finally(() => {
      this.#turn = null;
    });
    return this.#turn;
  }

  /** As `WorkSharing.change`. */
  async change<T>(work: Work, change: (tell: (definition: object | null) => void) => Promise<T>): Promise<T> {
    const name = nameOf(work);
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1);
    try {
      await this.#settling.get(name);
      let text: string | null = null;
      const result = await change((definition) => {
        text = definition === null ? '' : JSON.stringify(definition);
      });
      if (text !== null) await this.#record(work, text);
      return result;
    } finally {
      const left = (this.#held.get(name) ?? 1) - 1;
      if (left > 0) this.#held.set(name, left);
      else this.#held.delete(name);
    }
  }

  /** Resolves when nothing is under way. Idempotent. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#known.resolve();
    await this.#turn;
  }

  async #look(): Promise<void> {
    const { link, logger } = this.#options;
    if (!link.up) return;
    try {
      await this.#read();
      const untold = [...this.#entries].filter(([, { isTold }]) => !isTold);
      for (let index = 0; index < untold.length; index += MAX_AT_ONCE) {
        await Promise.all(untold.slice(index, index + MAX_AT_ONCE).map(([name, entry]) => this.#write(name, entry)));
      }
      this.#fault = '';
    } catch (error) {
      const fault = messageOf(error);
      if (link.up && fault !== this.#fault) logger.warn({}, `definitions cannot be shared: ${fault}`);
      this.#fault = fault;
      return;
    }
    await this.#settle();
    this.#isReady = true;
    this.#known.resolve();
  }

  async #read(): Promise<void> {
    const { link } = this.#options;
    const [definitions, changes, , state] = this.#keys;
    for (;;) {
      if (this.#isUnread) await this.#readAgain();
      const answer = await link.evaluate(READ, [definitions, changes, state], [this.#last, String(MAX_AT_ONCE)]);
      const [epoch = '', ...found] = (Array.isArray(answer) ? answer : []).map(String);
      this.#noteEpoch(epoch);
      if (this.#isUnread) continue;
      for (let index = 0; index + 2 < found.length; index += 3) {
        this.#learn(found[index] ?? '', found[index + 1] ?? '');
        this.#last = found[index + 2] ?? this.#last;
      }
      if (found.length < MAX_AT_ONCE * 3) return;
    }
  }

  /** Another epoch: Redis has lost its keys. */
  #noteEpoch(epoch: string): void {
    if (this.#epoch !== '' && epoch !== this.#epoch) this.#isUnread = true;
    this.#epoch = epoch;
  }

  async #readAgain(): Promise<void> {
    this.#isUnread = false;
    this.#last = '0';
    try {
      await this.#offer();
    } catch (error) {
      this.#isUnread = true;
      throw error;
    }
  }

  /** Everything that this node knows is told again, as Redis may not know it. */
  async #offer(): Promise<void> {
    const { keepers, vhost, untold } = this.#options;
    for (const entry of this.#entries.values()) entry.isTold = false;
    // Of an earlier run, or of the book before a change of the settings.
    for (const { work, version, text } of untold.of(vhost)) {
      if (version <= (this.#entries.get(nameOf(work))?.version ?? 0)) continue;
      this.#entries.set(nameOf(work), { work, version, text, isDone: false, isTold: false, fault: '' });
    }
    const isKnown = (work: Work): boolean => this.#entries.has(nameOf(work));
    for (const keeper of keepers) {
      for await (const { work, definition } of keeper.definitions(vhost, isKnown)) {
        const name = nameOf(work);
        const text = JSON.stringify(definition);
        if (this.#entries.has(name) || !this.#isSharable(work, text)) continue;
        this.#entries.set(name, { work, version: FOUND, text, isDone: true, isTold: false, fault: '' });
      }
    }
  }

  #learn(name: string, found: string): void {
    const work = workOf(name, this.#options.vhost);
    const [, version = '', text = ''] = /^(\d{1,15}) (.*)$/s.exec(found) ?? [];
    const present = this.#entries.get(name);
    if (work === null || version === '' || text.length > MAX_DEFINITION_BYTES) {
      if (found !== '') this.#options.logger.limited.warn({}, 'Redis has a definition that cannot be read');
      return;
    }
    if (present !== undefined && present.version === Number(version) && present.text === text) {
      this.#told(present);
      return;
    }
    if (present === undefined ? this.#entries.size >= MAX_SHARED_DEFINITIONS * 2 : present.version > Number(version)) return;
    if (present !== undefined) this.#told(present);
    this.#entries.set(name, { work, version: Number(version), text, isDone: false, isTold: true, fault: '' });
  }

  /** Rejects if Redis does not answer. */
  async #write(name: string, entry: Entry): Promise<void> {
    const { link, clock, logger } = this.#options;
    const now = clock.now();
    const values = [name, `${entry.version}`, entry.text, `${MAX_SHARED_DEFINITIONS}`, randomUUID(), `${now - DELETED_MS}`];
    const [answer = '', more = ''] = [await link.evaluate(WRITE, this.#keys, values)].flat().map(String);
    if (answer === '0') this.#learn(name, more);
    if (answer === '1') {
      this.#noteEpoch(more);
      this.#told(entry);
    }
    if (answer === 'full' && !this.#isFull) {
      logger.error({}, `not all definitions are shared: there are more than ${MAX_SHARED_DEFINITIONS}`);
    }
    this.#isFull = answer === 'full' || (this.#isFull && answer === '0');
  }

  #told(entry: Entry): void {
    entry.isTold = true;
    this.#options.untold.remove(entry).catch((error: unknown) => {
      this.#options.logger.warn({ err: error }, 'a change that was told to other nodes is kept in the state folder');
    });
  }

  /** A change by the API of this node. Rejects if neither Redis nor the disk takes it. */
  async #record(work: Work, text: string): Promise<void> {
    if (!this.#isSharable(work, text)) return;
    const { link, clock, untold } = this.#options;
    const name = nameOf(work);
    const version = Math.max((this.#entries.get(name)?.version ?? 0) + 1, clock.now());
    const entry: Entry = { work, version, text, isDone: true, isTold: false, fault: '' };
    this.#entries.set(name, entry);
    if (link.up) {
      try {
        await this.#write(name, entry);
      } catch {
        // The link has logged it.
      }
    }
    if (!entry.isTold && this.#entries.get(name) === entry) await untold.save({ work, version, text });
  }

  #isSharable(work: Work, text: string): boolean {
    if (nameOf(work).length <= MAX_NAME && Buffer.byteLength(text) <= MAX_DEFINITION_BYTES) return true;
    const { kind, app, name } = work;
    this.#options.logger.warn({ app, work: name }, `the ${WORK_NOUNS[kind]} '${name}' is too large to be shared: other nodes cannot do it`);
    return false;
  }

  /** Adopts and deletes what other nodes have changed. Never rejects. */
  async #settle(): Promise<void> {
    const forgotten = this.#options.clock.now() - DELETED_MS;
    for (const [name, entry] of [...this.#entries]) {
      const keeper = this.#options.keepers.find(({ kind }) => kind === entry.work.kind);
      const isGone = entry.text === '';
      if (isGone && entry.isDone && entry.isTold && entry.version < forgotten) this.#entries.delete(name);
      if (keeper === undefined || this.#held.has(name) || this.#entries.get(name) !== entry) continue;
      // An application may have been deleted, with all of its work.
      if (entry.isDone && (isGone || keeper.has(entry.work))) continue;
      const settled = this.#bring(keeper, entry).finally(() => this.#settling.delete(name));
      this.#settling.set(name, settled);
      await settled;
    }
  }

  /** Never rejects. */
  async #bring(keeper: WorkKeeper, entry: Entry): Promise<void> {
    const { hasApplication, logger } = this.#options;
    const { work, text } = entry;
    const { vhost, app, name, kind } = work;
    const fields = { vhost, app, work: name };
    const isHere = keeper.has(work);
    const title = `the ${WORK_NOUNS[kind]} '${name}'`;
    entry.isDone = false;
    try {
      if (text === '') {
        if (isHere && (await keeper.drop(work))) logger.info(fields, `${title} is deleted here too: another node has deleted it`);
      } else {
        if (!hasApplication(app)) throw new Error(`there is no application '${vhost}/${app}'`);
        const isTheirs = await keeper.adopt(work, definitionIn(text));
        if (!isHere && isTheirs) logger.info(fields, `${title} of another node is kept here too`);
      }
      entry.isDone = true;
      entry.fault = '';
    } catch (error) {
      const fault = messageOf(error);
      const what = text === '' ? 'cannot be deleted' : 'of another node cannot be done';
      if (fault !== entry.fault) logger.limited.warn({ ...fields, err: error }, `${title} ${what} by this node: ${fault}`);
      entry.fault = fault;
    }
  }
}

function nameOf({ kind, app, name }: Work): string {
  return JSON.stringify([kind, app, name]);
}

function isKind(kind: unknown): kind is Work['kind'] {
  return typeof kind === 'string' && Object.hasOwn(WORK_NOUNS, kind);
}

/** Null: it is no name of work. */
function workOf(text: string, vhost: string): Work | null {
  try {
    const [kind, app, name, ...rest] = JSON.parse(text) as unknown[];
    if (typeof app !== 'string' || typeof name !== 'string' || rest.length > 0 || text.length > MAX_NAME) return null;
    return isKind(kind) && isAddressableName(app) && (kind === 'push' || isAddressableName(name)) ? { kind, vhost, app, name } : null;
  } catch {
    return null;
  }
}

/** Throws an `Error`. */
function definitionIn(text: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null) throw new Error('its definition is no JSON object');
  return value as Readonly<Record<string, unknown>>;
}
