/** Lengths of media files, asked for once for each file and change of it. */
import { stat } from 'node:fs/promises';
import type { Clock } from '../../util/clock.ts';
import { FailedAttempts } from '../../util/failed-attempts.ts';
import { messageOf } from '../../util/message-of.ts';
import { Semaphore } from '../../util/semaphore.ts';
import { isLive, type ScheduleItem } from './schedule-definition.ts';
import { grained } from './schedule-timeline.ts';

/** Measures files. */
export interface FileMeter {
  /** The file behind a `file://` URL. Rejects with `PathRefused` when that is none of the media folder. */
  readonly placeOf: (url: string) => Promise<string>;
  /** The length of its media, ms. Rejects for an unplayable file. */
  readonly lengthOf: (url: string) => Promise<number>;
}

/** Lengths of files, as channels ask for them. */
export interface Lengths {
  /** Known length of an item's file, ms; null: unknown. */
  of(item: Pick<ScheduleItem, 'url'>): number | null;
  /**
   * Measures the file of an item; `soon`: before those of long lists. Null if its length is unknown, or for a live stream. Never rejects.
   */
  look(item: Pick<ScheduleItem, 'url'>, soon?: boolean): Promise<number | null>;
  /** Corrects a length after playing: the file ends at this time, ms, whatever its header says. */
  learn(item: Pick<ScheduleItem, 'url'>, length: number): void;
}

interface Measured {
  /** Differs when the file may have been written. */
  readonly identity: string;
  /** Null: it is unknown. */
  readonly length: number | null;
}

const MAX_URLS = 20_000;
/** Readers of media files share the file system threads with everything else. One limit for lists, one for items about to play. */
const MAX_AT_ONCE = 2;
const MAX_SOON = 1;

/** Files that are looked at, by their URLs, and who waits for that. */
interface MeasureQueue {
  readonly semaphore: Semaphore;
  readonly looking: Map<string, Promise<number | null>>;
}

/**
 * Caches lengths by URL; a changed file is measured again on the next lookup, a file without a length now and then. Holds no files open.
 */
export class FileLengths implements Lengths {
  readonly #meter: FileMeter;
  readonly #measured = new Map<string, Measured>();
  readonly #listed: MeasureQueue = { semaphore: new Semaphore(MAX_AT_ONCE), looking: new Map() };
  readonly #soon: MeasureQueue = { semaphore: new Semaphore(MAX_SOON), looking: new Map() };
  /** Files without a length, by their identities: some are read to their ends for it. */
  readonly #attempts: FailedAttempts;

  constructor(meter: FileMeter, clock: Pick<Clock, 'monotonic'>) {
    this.#meter = meter;
    this.#attempts = new FailedAttempts(clock);
  }

  of({ url }: Pick<ScheduleItem, 'url'>): number | null {
    return this.#measured.get(url)?.length ?? null;
  }

  look(item: Pick<ScheduleItem, 'url'>, soon = false): Promise<number | null> {
    if (isLive(item)) return Promise.resolve(null);
    const { url } = item;
    const queue = soon ? this.#soon : this.#listed;
    const looking = queue.looking.get(url) ?? queue.semaphore.take(() => this.#look(url)).finally(() => queue.looking.delete(url));
    queue.looking.set(url, looking);
    return looking;
  }

  learn({ url }: Pick<ScheduleItem, 'url'>, length: number): void {
    const known = this.#measured.get(url);
    if (known !== undefined) this.#measured.set(url, { ...known, length: grained(length) });
  }

  async #look(url: string): Promise<number | null> {
    let identity = '';
    try {
      const path = await this.#meter.placeOf(url);
      const { dev, ino, size, mtimeNs } = await stat(path, { bigint: true });
      identity = [path, dev, ino, size, mtimeNs].join(' ');
      const known = this.#measured.get(url);
      if (known?.identity === identity && known.length !== null) return known.length;
      if (this.#attempts.reasonOf(identity) !== null) return this.#remember(url, { identity, length: null });
      const length = await this.#meter.lengthOf(url);
      if (!(length > 0 && Number.isFinite(length))) throw new Error('it has no length');
      this.#attempts.succeeded(identity);
      return this.#remember(url, { identity, length: grained(length) });
    } catch (error) {
      // The player logs the reason.
      if (identity !== '') this.#attempts.failed(identity, messageOf(error));
      return this.#remember(url, { identity, length: null });
    }
  }

  #remember(url: string, measured: Measured): number | null {
    if (this.#measured.size >= MAX_URLS && !this.#measured.has(url)) this.#measured.clear();
    this.#measured.set(url, measured);
    return measured.length;
  }
}
