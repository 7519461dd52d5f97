/** A scheduled channel without media, on a manual clock. */

import { definitionFromJson } from '../../src/services/schedule/definition-json.ts';
import type { ScheduleDefinition } from '../../src/services/schedule/schedule-definition.ts';
import { ScheduledChannel } from '../../src/services/schedule/scheduled-channel.ts';
import { FakeLengths } from './fake-lengths.ts';
import { type Aired, type FakeMedia, FakePlayout } from './fake-playout.ts';
import { ManualClock } from './manual-clock.ts';
import { RecordingLogger } from './recording-logger.ts';

/** The time at which a station's clock begins. */
export const MIDNIGHT = Date.UTC(2026, 0, 1);

const STEP_MS = 20;
const TICK_STEPS = 5;

/** A program; `at` in seconds after midnight. */
export interface FakeProgram {
  readonly at?: number;
  readonly repeat?: boolean;
  readonly items?: readonly (string | object)[];
}

/** A schedule in short form: items are names, `a` is `file://a`, and `@a` is `stream://default/app/a`. */
export function schedule(programs: readonly FakeProgram[], fallback: readonly (string | object)[] = []): ScheduleDefinition {
  return definitionFromJson({
    stream: { name: 'tv' },
    fallbackProgram: { items: fallback.map(itemOf) },
    programs: programs.map(({ at = 0, repeat = true, items = [] }, index) => ({
      ...{ name: `p${index}`, scheduled: new Date(MIDNIGHT + at * 1000).toISOString(), repeat, items: items.map(itemOf) },
    })),
  });
}

function itemOf(item: string | object): object {
  if (typeof item === 'string') return { url: item.startsWith('@') ? `stream://default/app/${item.slice(1)}` : `file://${item}` };
  return { ...item, ...itemOf((item as { readonly url: string }).url) };
}

export class FakeStation {
  readonly clock = new ManualClock(MIDNIGHT);
  readonly logger = new RecordingLogger();
  /** Media by URL; the test may change it at any time. */
  readonly media: Map<string, FakeMedia>;
  readonly playouts: FakePlayout[] = [];
  /** Why the stream cannot begin; null: it can. */
  refused: string | null = null;
  readonly lengths: FakeLengths;
  #channel: ScheduledChannel | null = null;
  #lost: ((reason: string) => void) | null = null;

  /** `files`: lengths in seconds by name; live streams are `@name` with 0. */
  constructor(files: Readonly<Record<string, number>>) {
    this.media = new Map(
      Object.entries(files).map(([name, seconds]) =>
        name.startsWith('@') ? [`stream://default/app/${name.slice(1)}`, {}] : [`file://${name}`, { length: seconds * 1000 }],
      ),
    );
    this.lengths = new FakeLengths(this.media);
  }

  get channel(): ScheduledChannel {
    if (this.#channel === null) throw new Error('the channel has not begun');
    return this.#channel;
  }

  get playout(): FakePlayout {
    const playout = this.playouts.at(-1);
    if (playout === undefined) throw new Error('no playout was opened');
    return playout;
  }

  /** Starts the channel `seconds` after midnight. */
  async start(definition: ScheduleDefinition, seconds = 0): Promise<void> {
    this.clock.advance(MIDNIGHT + seconds * 1000 - this.clock.now());
    this.#channel = new ScheduledChannel({
      definition,
      open: (_settings, listener, onLost) => {
        if (this.refused !== null) throw new Error(this.refused);
        this.#lost = onLost;
        const playout = new FakePlayout(this.clock, this.media, listener);
        this.playouts.push(playout);
        return playout;
      },
      lengths: this.lengths,
      isRunning: (url) => this.media.get(url)?.missing === false || (this.media.has(url) && this.media.get(url)?.missing !== true),
      ...{ clock: this.clock, logger: this.logger },
    });
    await this.#rest();
  }

  /** The stream is ended from outside. */
  lose(reason: string): void {
    this.#lost?.(reason);
  }

  /** Changes the schedule, and waits until the channel has taken the change. */
  async update(definition: ScheduleDefinition): Promise<void> {
    this.channel.update(definition);
    await this.#rest();
  }

  /** Advances the clock to `seconds` after midnight. */
  async until(seconds: number): Promise<void> {
    for (let steps = 0; this.clock.now() < MIDNIGHT + seconds * 1000; steps += 1) {
      this.clock.advance(STEP_MS);
      for (const playout of this.playouts) playout.step();
      if (steps % TICK_STEPS === 0) this.channel.tick();
      if (steps % TICK_STEPS === 0) await this.#rest();
    }
  }

  /** Items that were on air: `name+position from-to`, in seconds; the present item has no end. */
  get aired(): string[] {
    return this.playouts.flatMap(({ aired, onAir }) =>
      aired.map((each, index) => this.#shown(each, onAir !== null && index === aired.length - 1)),
    );
  }

  /** Intervals longer than `least` ms without an item on air, between two items. */
  holes(least = 0): string[] {
    return this.playouts.flatMap(({ aired }) =>
      aired.flatMap(({ from }, index) => {
        const before = aired[index - 1]?.to ?? from;
        return from - before > least ? [`${seconds(before)}-${seconds(from)}`] : [];
      }),
    );
  }

  /** Messages of a level. */
  lines(level: 'warn' | 'info' | 'error'): string[] {
    return this.logger.lines.filter((line) => line.level === level).map(({ message }) => message);
  }

  #shown({ url, from, position, to }: Aired, isOn: boolean): string {
    const name = url.replace('file://', '').replace('stream://default/app/', '@');
    const into = Math.round(position / 100) / 10;
    return `${name}${into === 0 || url.startsWith('stream') ? '' : `+${into}`} ${seconds(from)}-${isOn ? '' : seconds(to)}`;
  }

  async #rest(): Promise<void> {
    for (let turns = 0; turns < 10; turns += 1) await Promise.resolve();
  }
}

function seconds(at: number): string {
  return String(Math.round((at - MIDNIGHT) / 100) / 10);
}
