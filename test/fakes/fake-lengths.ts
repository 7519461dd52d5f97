/** Lengths of media that do not exist. */
import type { Lengths } from '../../src/services/schedule/file-lengths.ts';
import { isLive, type ScheduleItem } from '../../src/services/schedule/schedule-definition.ts';
import { grained } from '../../src/services/schedule/schedule-timeline.ts';
import type { FakeMedia } from './fake-playout.ts';

type Item = Pick<ScheduleItem, 'url'>;

export class FakeLengths implements Lengths {
  /** Lookups hang from now on. */
  hangs = false;
  readonly #media: ReadonlyMap<string, FakeMedia>;
  readonly #known = new Map<string, { readonly said: number | null; readonly length: number | null }>();

  constructor(media: ReadonlyMap<string, FakeMedia>) {
    this.#media = media;
  }

  of({ url }: Item): number | null {
    return this.#known.get(url)?.length ?? null;
  }

  async look(item: Item): Promise<number | null> {
    if (this.hangs) await new Promise(() => undefined);
    const { length = null, says = length, missing = false } = this.#media.get(item.url) ?? {};
    const said = isLive(item) || missing || says === null ? null : grained(says);
    // A learned length is valid while the file stays the same.
    if (this.#known.get(item.url)?.said !== said) this.#known.set(item.url, { said, length: said });
    return this.of(item);
  }

  learn({ url }: Item, length: number): void {
    this.#known.set(url, { said: this.#known.get(url)?.said ?? null, length: grained(length) });
  }
}
