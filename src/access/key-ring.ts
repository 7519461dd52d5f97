/** Publish keys and play tokens: admits clients that present a key of the application, and ends their sessions when the key is removed. */
import type { Clock } from '../util/clock.ts';
import { MAX_KEY_LENGTH, MIN_KEY_LENGTH } from '../util/key-hash.ts';
import type { AccessCheck, AccessPlace, AccessRequest, Denied, Direction, Passed } from './access-check.ts';
import { type ApplicationKeys, type HostKeys, LIST_OF, type ReadyKey, readyKey } from './access-keys.ts';
import { KeyIndex } from './key-index.ts';
import { queryParameter } from './signed-url.ts';

/** Query keys of the secrets. */
export const QUERY_KEYS: Readonly<Record<Direction, string>> = { incoming: 'key', outgoing: 'token' };
const WORDS: Readonly<Record<Direction, string>> = { incoming: 'publish key', outgoing: 'play token' };
const BEARER = /^Bearer +(\S+) *$/i;
const TEMPLATE = '*';

const DENIALS = {
  'key-missing': (word: string) => `there is no ${word} in the request`,
  'key-wrong': (word: string) => `the ${word} is none of this application`,
  'key-expired': (word: string) => `the ${word} has expired`,
  'key-other-stream': (word: string) => `the ${word} is for other streams`,
} as const;

function deny(code: keyof typeof DENIALS, direction: Direction): Denied {
  return { admitted: false, code, reason: DENIALS[code](WORDS[direction]), challenge: 'Bearer' };
}

/** A virtual host with its keys. */
interface KeyedHost {
  readonly name: string;
  readonly keys?: HostKeys | undefined;
}

type ReadyLists = { readonly [direction in Direction]: KeyIndex | null };
const NO_KEYS = new KeyIndex([]);
const OPEN_LISTS: ReadyLists = { incoming: null, outgoing: null };

interface ReadyHost {
  readonly applications: ReadonlyMap<string, ReadyLists>;
  readonly template: ReadyLists;
}

/** The main thread and each delivery thread have one. Needs no closing: sessions remove themselves. */
export class KeyRing {
  readonly #clock: Clock;
  #hosts = new Map<string, ReadyHost>();
  /** Keys by all their inputs, so that unchanged lists are not rebuilt. */
  #ready = new Map<string, ReadyKey>();
  #grants = new Set<string>();
  /** Present users of keys by grant: for each a function that ends the session. */
  readonly #present = new Map<string, Set<(reason: string) => void>>();
  /** Time of the last valid use of a key, by grant, wall clock ms. */
  readonly #usedAt = new Map<string, number>();
  readonly #freshUses = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** No application has keys. */
  get isEmpty(): boolean {
    return this.#hosts.size === 0;
  }

  /** Sets all virtual hosts. Users of keys that are gone are disconnected. */
  follow(hosts: readonly KeyedHost[]): void {
    const before = this.#ready;
    this.#ready = new Map();
    this.#hosts = new Map();
    for (const { name, keys } of hosts) if (keys !== undefined) this.#hosts.set(name, this.#readyHost(name, keys, before));
    this.#grants = new Set(Array.from(this.#ready.values(), ({ grant }) => grant));
    for (const grant of this.#usedAt.keys()) if (!this.#grants.has(grant)) this.#usedAt.delete(grant);
    for (const grant of this.#freshUses) if (!this.#grants.has(grant)) this.#freshUses.delete(grant);
    for (const [grant, ends] of [...this.#present]) {
      if (!this.#grants.has(grant)) for (const end of [...ends]) end(REMOVED);
    }
  }

  /** Whether a key is required. */
  covers(vhost: string, app: string, direction: Direction): boolean {
    return this.#hosts.size > 0 && this.#listOf(vhost, app, direction) !== null;
  }

  /** Whether the key of this grant still exists. */
  holds(grant: string): boolean {
    return this.#grants.has(grant);
  }

  /** Null if no key is needed. A request without an application is refused if any application has keys. */
  check(vhost: string, { app, stream }: AccessPlace, direction: Direction): AccessCheck | null {
    if (!this.#hosts.has(vhost)) return null;
    const keys = app === undefined ? NO_KEYS : this.#listOf(vhost, app, direction);
    if (keys === null) return null;
    return { covers: () => true, judge: (request) => this.#judge(keys, stream ?? '', request) };
  }

  /** Records keys that were used validly elsewhere, by their grants. */
  noteUses(grants: readonly string[]): void {
    for (const grant of grants) if (this.#grants.has(grant)) this.#usedAt.set(grant, this.#clock.now());
  }

  /** Grants of keys that were used validly here since the last call. */
  takeUses(): readonly string[] {
    if (this.#freshUses.size === 0) return [];
    const uses = [...this.#freshUses];
    this.#freshUses.clear();
    return uses;
  }

  /** Times of the last use by key title, for a record that outlives this ring. */
  get uses(): ReadonlyMap<string, number> {
    const uses = new Map<string, number>();
    for (const { title, grant } of this.#ready.values()) {
      const time = this.#usedAt.get(grant);
      if (time !== undefined) uses.set(title, time);
    }
    return uses;
  }

  /** Takes over the `uses` of another ring, for present keys without a later use. */
  restoreUses(uses: ReadonlyMap<string, number>): void {
    for (const { title, grant } of this.#ready.values()) {
      const time = uses.get(title);
      if (time !== undefined && !this.#usedAt.has(grant)) this.#usedAt.set(grant, time);
    }
  }

  /** Time of the last use of the key with this grant, wall clock ms; undefined: the grant is unknown. */
  usedAt(grant: string): number | undefined {
    return this.#usedAt.get(grant);
  }

  #listOf(vhost: string, app: string, direction: Direction): KeyIndex | null {
    const host = this.#hosts.get(vhost);
    return host === undefined ? null : (host.applications.get(app) ?? host.template)[direction];
  }

  #judge(keys: KeyIndex, stream: string, request: AccessRequest): Passed | Denied {
    const { direction } = request;
    const shown = shownKeys(request);
    if (shown.length === 0) return deny('key-missing', direction);
    const comparable = shown.filter(({ length }) => length >= MIN_KEY_LENGTH && length <= MAX_KEY_LENGTH);
    const fitting = keys.find(comparable);
    const now = this.#clock.now();
    // An unreadable time counts as past.
    const current = fitting.filter(({ expiresAt }) => now < expiresAt);
    const [key] = current.filter(({ isFor }) => isFor(stream));
    if (key !== undefined) return this.#pass(key, direction);
    if (current.length > 0) return deny('key-other-stream', direction);
    return deny(fitting.length > 0 ? 'key-expired' : 'key-wrong', direction);
  }

  #pass({ grant, expiresAt }: ReadyKey, direction: Direction): Passed {
    this.#usedAt.set(grant, this.#clock.now());
    this.#freshUses.add(grant);
    return {
      admitted: true,
      expiresAt,
      expiry: `its ${WORDS[direction]} has expired`,
      grant,
      watch: (end) => this.#watch(grant, end),
    };
  }

  #watch(grant: string, end: (reason: string) => void): () => void {
    const ends = this.#present.get(grant) ?? new Set();
    this.#present.set(grant, ends.add(end));
    // The key may have been removed between the verdict and the beginning of the session.
    if (!this.#grants.has(grant)) queueMicrotask(() => end(REMOVED));
    return () => {
      ends.delete(end);
      if (ends.size === 0 && this.#present.get(grant) === ends) this.#present.delete(grant);
    };
  }

  #readyHost(vhost: string, { applications, template }: HostKeys, before: ReadonlyMap<string, ReadyKey>): ReadyHost {
    const ready = (app: string, lists: ApplicationKeys): ReadyLists => {
      const list = (direction: Direction): KeyIndex | null => {
        const place = { vhost, app, list: LIST_OF[direction] };
        const keys = lists[place.list]?.map((key) => {
          const text = JSON.stringify([place, key]);
          const made = before.get(text) ?? readyKey(place, key);
          this.#ready.set(text, made);
          return made;
        });
        return keys === undefined ? null : new KeyIndex(keys);
      };
      const [incoming, outgoing] = [list('incoming'), list('outgoing')];
      return incoming === null && outgoing === null ? OPEN_LISTS : { incoming, outgoing };
    };
    return {
      applications: new Map(Array.from(applications, ([app, lists]) => [app, ready(app, lists)])),
      template: ready(TEMPLATE, template),
    };
  }
}

const REMOVED = 'the key that it came with was removed';

/** A client's credentials: a bearer token, and the value of the query. */
function shownKeys({ direction, url, client }: AccessRequest): string[] {
  const bearer = BEARER.exec(client.authorization ?? '')?.[1];
  const queried = queryParameter(url, QUERY_KEYS[direction]);
  return [bearer, queried].filter((key) => key !== undefined && key !== null && key !== '') as string[];
}
