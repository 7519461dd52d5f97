/** A playout without media: it advances with a manual clock, and records what viewers would see. */
import type { CuedItem, Playout, PlayoutListener } from '../../src/playout/playout.ts';
import type { Clock } from '../../src/util/clock.ts';

/** The media of a URL. Unlisted URLs cannot be opened. */
export interface FakeMedia {
  /** Length of a file, ms; absent: a live stream. */
  length?: number;
  /** Length that a lookup finds before it is played, ms; default: the true length. */
  says?: number;
  /** Its first frame is sent this long before it is shown, ms. */
  early?: number;
  /** The media ends this much earlier on the wall clock, ms, because the clock was set. */
  hurries?: number;
  /** Time to open it, ms; default: 0. */
  opens?: number;
  /** Position at which reading fails, ms. */
  breaksAt?: number;
  /** The media cannot be opened now. */
  missing?: boolean;
}

/** A span of time with the item on air. */
export interface Aired {
  readonly url: string;
  /** Wall clock, ms. */
  readonly from: number;
  /** Position in the source at the beginning, ms. */
  readonly position: number;
  to: number;
}

interface Opened {
  readonly cued: CuedItem;
  readonly since: number;
}

export class FakePlayout implements Playout {
  /** The items that were on air, in order. */
  readonly aired: Aired[] = [];
  /** Number of cued items. */
  cues = 0;
  /** When each item was cued last, wall clock ms. */
  readonly cuedAt = new Map<CuedItem, number>();
  closed = false;
  readonly #clock: Clock;
  readonly #media: ReadonlyMap<string, FakeMedia>;
  readonly #listener: PlayoutListener;
  #cued: Opened | null = null;
  #air: { readonly cued: CuedItem; readonly aired: Aired; until: number; told: boolean } | null = null;

  readonly #onClose: () => void;

  constructor(clock: Clock, media: ReadonlyMap<string, FakeMedia>, listener: PlayoutListener, onClose: () => void = () => undefined) {
    this.#clock = clock;
    this.#media = media;
    this.#listener = listener;
    this.#onClose = onClose;
  }

  get onAir(): CuedItem | null {
    return this.#air?.cued ?? null;
  }

  get cued(): CuedItem | null {
    return this.#cued?.cued ?? null;
  }

  get position(): number | null {
    const aired = this.#air?.aired;
    return aired === undefined ? null : aired.position + this.#clock.now() - aired.from;
  }

  cue(item: CuedItem | null): void {
    if (this.closed) throw new Error('cued after the close');
    this.#cued = item === null ? null : { cued: item, since: this.#clock.now() };
    if (item === null) return;
    this.cues += 1;
    this.cuedAt.set(item, this.#clock.now());
  }

  endAt(until: number): void {
    if (this.#air !== null) Object.assign(this.#air, { until, told: false });
  }

  stop(): void {
    this.#end(this.#clock.now());
  }

  close(): void {
    this.#end(this.#clock.now());
    this.closed = true;
    this.#onClose();
  }

  /** Performs all due actions. */
  step(): void {
    if (this.closed) return;
    const now = this.#clock.now();
    this.#stepCue(now);
    this.#stepAir(now);
  }

  #stepCue(now: number): void {
    if (this.#cued === null) return;
    const { cued, since } = this.#cued;
    const media = this.#media.get(cued.url);
    if (now - since < (media?.opens ?? 0)) return;
    const late = Math.max(0, since - cued.at);
    const position = cued.from + (media?.length === undefined ? 0 : late);
    const broken =
      media !== undefined && position >= Math.min(media.length ?? Number.POSITIVE_INFINITY, media.breaksAt ?? Number.POSITIVE_INFINITY);
    if (media === undefined || media.missing === true || broken) {
      this.#cued = null;
      this.#listener.onFailed(cued, media === undefined ? 'there is no such file' : 'nothing came of it');
      return;
    }
    const at = Math.max(since, cued.at);
    if (now < at - (media.early ?? 0)) return;
    this.#cued = null;
    // Frames are sent at their times, even if the check comes late.
    const from = cued.at > since + (media.opens ?? 0) ? cued.at : now;
    this.#end(from);
    const aired = { url: cued.url, from, position: position + (cued.at > since ? 0 : now - at), to: from };
    this.aired.push(aired);
    this.#air = { cued, aired, until: cued.until, told: false };
    this.#listener.onAir(cued);
  }

  #stepAir(now: number): void {
    const air = this.#air;
    if (air === null) return;
    const { aired, cued } = air;
    const media = this.#media.get(cued.url) ?? { missing: true };
    const fails = aired.from + (media.breaksAt ?? Number.POSITIVE_INFINITY) - aired.position;
    if (media.missing === true || now >= fails) {
      this.#end(Math.min(now, fails));
      this.#listener.onFailed(cued, 'it cannot be read any further');
      return;
    }
    const mediaEnds = aired.from + (media.length ?? Number.POSITIVE_INFINITY) - aired.position - (media.hurries ?? 0);
    const ends = Math.min(air.until, mediaEnds);
    if (!air.told && ends - now <= 2500) {
      air.told = true;
      this.#listener.onEnding(cued, ends, mediaEnds <= air.until ? (media.length ?? null) : null);
    }
    if (now < ends) return;
    aired.to = ends;
    if (this.#cued !== null) return;
    this.#end(ends);
    this.#listener.onEnded(cued);
  }

  #end(now: number): void {
    if (this.#air === null) return;
    const { aired } = this.#air;
    aired.to = aired.to > aired.from ? Math.min(aired.to, now) : now;
    this.#air = null;
  }
}
