/** Keeps the newest notices, numbered, for all who follow the server live. */
import type { Clock } from '../../util/clock.ts';
import { maskedJson } from '../../util/masked-json.ts';
import { maskedUrl } from '../../util/masked-url.ts';
import { formatTimestamp } from '../../util/timestamp.ts';
import { BurstFold } from './burst-fold.ts';
import { NOTICE_TYPES, type Notice, type NoticeGroup, type Notices } from './notice.ts';

/** Notices that are kept. */
const KEPT = 4096;
/** Names and reasons are shorter; what a peer wrote is cut there, characters. */
const MAX_TEXT = 1024;

/** What a board works with. */
export interface NoticeBoardOptions {
  readonly clock: Clock;
  /** Of the texts, before anybody sees them; default: nothing is taken out but secrets. */
  readonly hide?: (text: string) => string;
  /** Default: 4096. */
  readonly kept?: number;
}

/** A notice that was posted. Its text is made when the first follower wants it, once for all. */
export class PostedNotice {
  /** From 1 on, without holes. */
  readonly number: number;
  readonly notice: Notice;
  readonly #board: NoticeBoard;
  readonly #time: number;
  #json: string | null = null;

  constructor(board: NoticeBoard, notice: Notice, { number, time }: { readonly number: number; readonly time: number }) {
    this.#board = board;
    this.notice = notice;
    this.number = number;
    this.#time = time;
  }

  /** Unique among all runs of the server. */
  get id(): string {
    return this.#board.idOf(this.number);
  }

  /** One line of JSON, without secrets. */
  get json(): string {
    this.#json ??= this.#board.textOf({ id: this.id, time: formatTimestamp(this.#time), ...this.notice });
    return this.#json;
  }
}

/**
 * A ring of the newest notices: whoever follows has a place in it, and nothing of its own, so that followers cost no memory and a slow one
 * misses the oldest. Sessions and refusals that come in floods are told as sums (`BurstFold`). One for the server, which closes it.
 */
export class NoticeBoard implements Notices {
  /** Told by group since the start. */
  readonly counts: Record<NoticeGroup, number> = { streams: 0, sessions: 0, tasks: 0, refusals: 0, alerts: 0, config: 0 };
  readonly #options: NoticeBoardOptions;
  readonly #ring: (PostedNotice | undefined)[];
  readonly #fold: BurstFold;
  /** By which ids of other runs are known. */
  readonly #run: string;
  #newest = 0;
  #watchers: readonly ((posted: PostedNotice) => void)[] = [];

  constructor(options: NoticeBoardOptions) {
    const { clock, kept = KEPT } = options;
    this.#options = options;
    this.#ring = new Array<PostedNotice | undefined>(kept).fill(undefined);
    this.#fold = new BurstFold(clock, (notice) => this.#append(notice));
    this.#run = clock.now().toString(36);
  }

  /** Number of the newest notice; 0 before the first. */
  get newest(): number {
    return this.#newest;
  }

  /** Number of the oldest one that is kept; `newest + 1` when none is. */
  get oldest(): number {
    return Math.max(1, this.#newest - this.#ring.length + 1);
  }

  /** Notices that were told as part of a sum. */
  get folded(): number {
    return this.#fold.folded;
  }

  post(notice: Notice): void {
    if (!this.#fold.takes(notice)) this.#append(notice);
  }

  /** The notice of that number, while it is kept. */
  at(number: number): PostedNotice | undefined {
    const posted = this.#ring[number % this.#ring.length];
    return posted?.number === number ? posted : undefined;
  }

  /** `watcher` is called for each notice from now on, and must neither throw nor wait. Returns what ends that. */
  watch(watcher: (posted: PostedNotice) => void): () => void {
    this.#watchers = [...this.#watchers, watcher];
    return () => {
      this.#watchers = this.#watchers.filter((other) => other !== watcher);
    };
  }

  idOf(number: number): string {
    return `${this.#run}-${number}`;
  }

  /** The number behind an id of this run; null for all others. */
  numberOf(id: string): number | null {
    const [run, digits = ''] = id.split('-', 2);
    if (run !== this.#run || !/^\d{1,15}$/.test(digits)) return null;
    const number = Number(digits);
    return number <= this.#newest ? number : null;
  }

  /** `value` as one line, without secrets. */
  textOf(value: object): string {
    const json = maskedJson(JSON.stringify(value, (_key, member: unknown) => (typeof member === 'string' ? cut(member) : member)));
    return this.#options.hide === undefined ? json : this.#options.hide(json);
  }

  /** What waits to be told as a sum is told now; nothing follows. Idempotent. */
  close(): void {
    this.#fold.close();
  }

  #append(notice: Notice): void {
    this.#newest += 1;
    const posted = new PostedNotice(this, notice, { number: this.#newest, time: this.#options.clock.now() });
    this.#ring[this.#newest % this.#ring.length] = posted;
    this.counts[NOTICE_TYPES[notice.type]] += 1;
    for (const watcher of this.#watchers) watcher(posted);
  }
}

function cut(text: string): string {
  return maskedUrl(text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`);
}
