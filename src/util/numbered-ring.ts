/** A numbered ring of the newest entries for any number of followers: notices of the server, and lines of its log. */
import type { Clock } from './clock.ts';
import type { KnownSecrets } from './known-secrets.ts';
import { maskedJson } from './masked-json.ts';
import { maskedUrl } from './masked-url.ts';
import { formatTimestamp } from './timestamp.ts';

/** Longer texts are truncated; only texts of peers are longer. Characters. */
const MAX_TEXT = 1024;

/** An entry of the ring. Its JSON is made once, when the first follower needs it. */
class Numbered<Told extends object> {
  /** Starts at 1, without gaps. */
  readonly number: number;
  readonly notice: Told;
  readonly #ring: NumberedRing<Told>;
  readonly #time: number;
  #json: string | null = null;

  constructor(ring: NumberedRing<Told>, notice: Told, { number, time }: { readonly number: number; readonly time: number }) {
    this.#ring = ring;
    this.notice = notice;
    this.number = number;
    this.#time = time;
  }

  /** Unique among all runs of the server. */
  get id(): string {
    return this.#ring.idOf(this.number);
  }

  /** One line of JSON, without secrets. */
  get json(): string {
    this.#json ??= this.#ring.textOf({ id: this.id, time: formatTimestamp(this.#time), ...this.notice });
    return this.#json;
  }
}

/**
 * A ring of the newest entries. A follower is only a position in it, so followers cost no memory, and a slow follower misses the oldest
 * entries.
 */
export abstract class NumberedRing<Told extends object> {
  readonly #clock: Clock;
  readonly #ring: (Numbered<Told> | undefined)[];
  /** Distinguishes ids of this run from ids of other runs. */
  readonly #run: string;
  #newest = 0;
  #watchers: readonly ((told: Numbered<Told>) => void)[] = [];

  constructor(clock: Clock, kept: number) {
    this.#clock = clock;
    this.#ring = new Array<Numbered<Told> | undefined>(kept).fill(undefined);
    this.#run = clock.now().toString(36);
  }

  /** Number of the newest entry; 0 before the first. */
  get newest(): number {
    return this.#newest;
  }

  /** Number of the oldest kept entry; `newest + 1` if nothing is kept. */
  get oldest(): number {
    return Math.max(1, this.#newest - this.#ring.length + 1);
  }

  /** The entry of that number, while it is kept. */
  at(number: number): Numbered<Told> | undefined {
    const told = this.#ring[number % this.#ring.length];
    return told?.number === number ? told : undefined;
  }

  /** `watcher` is called for each new entry, and must neither throw nor wait. Returns a function that ends this. */
  watch(watcher: (told: Numbered<Told>) => void): () => void {
    this.#watchers = [...this.#watchers, watcher];
    return () => {
      this.#watchers = this.#watchers.filter((other) => other !== watcher);
    };
  }

  idOf(number: number): string {
    return `${this.#run}-${number}`;
  }

  /** The number in an id of this run; null for all other ids. */
  numberOf(id: string): number | null {
    const [run, digits = ''] = id.split('-', 2);
    if (run !== this.#run || !/^\d{1,15}$/.test(digits)) return null;
    const number = Number(digits);
    return number <= this.#newest ? number : null;
  }

  /** `value` as one line, without secrets. */
  abstract textOf(value: object): string;

  protected append(notice: Told): void {
    this.#newest += 1;
    const told = new Numbered(this, notice, { number: this.#newest, time: this.#clock.now() });
    this.#ring[this.#newest % this.#ring.length] = told;
    for (const watcher of this.#watchers) watcher(told);
  }
}

/** A text for followers. Secrets are replaced before the text is cut, so that no beginning of a secret remains. */
export function textWithoutSecrets(text: string, secrets: KnownSecrets): string {
  const told = secrets.masked(maskedUrl(maskedJson(text)));
  return told.length <= MAX_TEXT ? told : `${told.slice(0, MAX_TEXT)}…`;
}
