/** Keeps the newest notices, numbered, for all who follow the server live. */
import type { Clock } from '../../util/clock.ts';
import { KnownSecrets } from '../../util/known-secrets.ts';
import { maskedJson } from '../../util/masked-json.ts';
import { NumberedRing, textWithoutSecrets } from '../../util/numbered-ring.ts';
import { BurstFold } from './burst-fold.ts';
import { NOTICE_TYPES, type Notice, type NoticeGroup, type Notices } from './notice.ts';

/** Notices that are kept. */
const MAX_KEPT = 4096;

/** Options of a board. */
export interface NoticeBoardOptions {
  readonly clock: Clock;
  /** Filter for all texts; default: removes secrets only. */
  readonly hide?: (text: string) => string;
  /** Texts to hide, besides secrets in URLs and in members of definitions. */
  readonly secrets?: KnownSecrets;
  /** Default: 4096. */
  readonly kept?: number;
}

/**
 * A ring of the newest notices. A follower is only a position in it, so followers cost no memory and a slow one misses the oldest notices.
 * Floods of sessions and refusals are summed up (`BurstFold`). One for the server, which closes it.
 */
export class NoticeBoard extends NumberedRing<Notice> implements Notices {
  /** Notices posted since the start, by group. */
  readonly counts: Record<NoticeGroup, number> = { streams: 0, sessions: 0, tasks: 0, refusals: 0, alerts: 0, config: 0 };
  readonly #hide: (text: string) => string;
  readonly #secrets: KnownSecrets;
  readonly #fold: BurstFold;

  constructor({ clock, hide = (text) => text, secrets = new KnownSecrets(), kept = MAX_KEPT }: NoticeBoardOptions) {
    super(clock, kept);
    this.#hide = hide;
    this.#secrets = secrets;
    this.#fold = new BurstFold(clock, (notice) => this.append(notice));
  }

  /** Notices that became part of a sum. */
  get folded(): number {
    return this.#fold.folded;
  }

  post(notice: Notice): void {
    if (!this.#fold.takes(notice)) this.append(notice);
  }

  textOf(value: object): string {
    const told = (_key: string, member: unknown): unknown =>
      typeof member === 'string' ? textWithoutSecrets(member, this.#secrets) : member;
    return this.#hide(maskedJson(JSON.stringify(value, told)));
  }

  /** Posts pending sums now; no further sums follow. Idempotent. */
  close(): void {
    this.#fold.close();
  }

  protected override append(notice: Notice): void {
    this.counts[NOTICE_TYPES[notice.type]] += 1;
    super.append(notice);
  }
}
