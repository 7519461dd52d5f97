import { describe, expect, it } from 'vitest';
import type { SourcePacket } from '../../src/core/ingest.ts';
import { FakeIngestStream } from '../../test/fakes/fake-ingest-gate.ts';
import { type FilmOptions, FilmSources, frameNumber } from '../../test/fakes/film.ts';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { ManualTimers } from '../../test/fakes/manual-timers.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { ProviderKind, SourceType } from '../core/kinds.ts';
import { Urgency } from '../core/urgency.ts';
import { ChannelPlayout, type ChannelPlayoutOptions } from './channel-playout.ts';
import type { CuedItem, PlayoutListener } from './playout.ts';

const TICKS = 90;

type Told = readonly [what: string, url: string, at: number, detail?: number | string];

class Channel implements PlayoutListener {
  readonly clock = new ManualClock();
  readonly timers = new ManualTimers(this.clock);
  readonly logger = new RecordingLogger();
  readonly stream = new FakeIngestStream(
    { host: 'localhost', app: 'app' },
    { streamName: 'tv', provider: ProviderKind.SCHEDULED, sourceType: SourceType.SCHEDULED, sourceUrl: '', onClose: () => undefined },
  );
  readonly sources: FilmSources;
  readonly playout: ChannelPlayout;
  readonly startedAt = this.clock.now();
  readonly told: Told[] = [];
  /** Where each packet went out, ms since the start. */
  readonly sentAt: number[] = [];
  onEndingHook: (item: CuedItem, endsAt: number) => void = () => undefined;
  onEndedHook: (item: CuedItem) => void = () => undefined;
  onFailedHook: (item: CuedItem) => void = () => undefined;

  constructor(films: Readonly<Record<string, FilmOptions>>, options: Partial<ChannelPlayoutOptions> = {}) {
    this.sources = new FilmSources(films);
    const push = this.stream.push.bind(this.stream);
    this.stream.push = (packet) => {
      this.sentAt.push(this.now);
      push(packet);
    };
    this.playout = new ChannelPlayout({
      stream: this.stream,
      video: true,
      audio: [{}],
      sources: this.sources,
      errorToleranceMs: 500,
      listener: this,
      clock: this.clock,
      logger: this.logger,
      later: this.timers.later,
      ...options,
    });
  }

  /** Ms since the start. */
  get now(): number {
    return this.clock.now() - this.startedAt;
  }

  /** `at` and `until` in ms since the start. */
  item(name: string, { from = 0, at = 0, until = Number.POSITIVE_INFINITY } = {}): CuedItem {
    return { url: `file://${name}`, from, at: this.startedAt + at, until: this.startedAt + until };
  }

  /** Plays them one behind the other, again and again. */
  loop(names: readonly string[]): void {
    let next = 0;
    const cue = (at: number): void => {
      this.playout.cue({ url: `file://${names[next % names.length]}`, from: 0, at, until: Number.POSITIVE_INFINITY });
      next += 1;
    };
    this.onEndingHook = (_item, endsAt) => cue(endsAt);
    cue(this.startedAt);
  }

  onAir(item: CuedItem): void {
    this.told.push(['on air', item.url, this.now]);
  }

  onEnding(item: CuedItem, endsAt: number): void {
    this.told.push(['ending', item.url, this.now, endsAt - this.startedAt]);
    this.onEndingHook(item, endsAt);
  }

  onEnded(item: CuedItem): void {
    this.told.push(['ended', item.url, this.now]);
    this.onEndedHook(item);
  }

  onFailed(item: CuedItem, reason: string): void {
    this.told.push(['failed', item.url, this.now, reason]);
    this.onFailedHook(item);
  }

  /** Packets of a track; times in ms since the first packet of video, whose time is `from`. */
  track(id: number): { readonly pts: number; readonly dts: number; readonly number: number; readonly keyframe: boolean | null }[] {
    const origin = this.stream.packets.find(({ trackId }) => trackId === (this.stream.tracks[0]?.id ?? 0))?.pts ?? 0;
    const of = ({ trackId }: SourcePacket): boolean => trackId === id;
    return this.stream.packets.filter(of).map(({ pts, dts, data, keyframe }) => ({
      pts: (pts - origin) / TICKS,
      dts: (dts - origin) / TICKS,
      number: frameNumber(data),
      keyframe,
    }));
  }
}

/** Largest distance between frames as they are shown, and of frames that lie closer together than `frame`. */
function gaps(times: readonly number[]): { most: number; least: number } {
  const sorted = [...times].sort((a, b) => a - b);
  const steps = sorted.slice(1).map((time, index) => time - (sorted[index] ?? 0));
  return { most: Math.max(...steps), least: Math.min(...steps) };
}

function isMonotonic(times: readonly number[]): boolean {
  return times.every((time, index) => index === 0 || time > (times[index - 1] ?? 0));
}

const ODD: Readonly<Record<string, FilmOptions>> = {
  a: { seconds: 7.36, fps: 25, sampleRate: 44_100 },
  b: { seconds: 5.1, fps: 30, bframes: 2, gop: 30, sampleRate: 48_000, start: 1.4 },
  c: { seconds: 6.234, fps: 24, bframes: 3, gop: 48, sampleRate: 32_000, audioDelay: 0.011 },
};

describe('a channel', () => {
  it('plays odd items without a hole, and each in step with its sound', async () => {
    const channel = new Channel(ODD);
    channel.loop(['a', 'b', 'c']);
    await channel.timers.pass(60_000);
    const video = channel.track(0);
    const audio = channel.track(100);
    expect(isMonotonic(video.map(({ dts }) => dts))).toBe(true);
    expect(isMonotonic(audio.map(({ dts }) => dts))).toBe(true);
    expect(video.every(({ pts, dts }) => pts >= dts)).toBe(true);
    const shown = gaps(video.map(({ pts }) => pts));
    expect(shown.most).toBeLessThan(1000 / 24 + 1);
    const heard = gaps(audio.map(({ pts }) => pts));
    expect(heard.most).toBeLessThan(1024 / 32 + 0.1);
    expect(heard.least).toBeGreaterThan(1024 / 48 - 0.1);
    // Frame and sample numbers begin again with each item: where they say that a moment of the film is.
    const names = channel.told.filter(([what]) => what === 'on air').map(([, url]) => url.slice(-1));
    expect(names).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c', 'a']);
    let begin = 0;
    const offsets: number[] = [];
    for (const name of names) {
      const { fps = 25, sampleRate = 48_000, audioDelay = 0 } = ODD[name]!;
      const length = channel.sources.length(`file://${name}`);
      const of = <T extends { pts: number }>(list: readonly T[]): T[] =>
        list.filter(({ pts }) => pts >= begin + 100 && pts < begin + length - 100);
      for (const { pts, number } of of(video)) expect(Math.abs(pts - begin - (number * 1000) / fps)).toBeLessThan(0.1);
      for (const { pts, number } of of(audio)) offsets.push(pts - begin - ((number * 1024) / sampleRate + audioDelay) * 1000);
      begin += length;
    }
    expect(Math.max(...offsets.map(Math.abs))).toBeLessThan(40);
    expect(channel.stream.trackSets.length).toBe(names.length);
  });

  it('is no more than a packet away from the wall clock after a day of items', async () => {
    const sparse: Readonly<Record<string, FilmOptions>> = {
      a: { seconds: 17.3333, fps: 3, gop: 3, sampleRate: 0 },
      b: { seconds: 31.1, fps: 2, gop: 10, bframes: 1, sampleRate: 0 },
      c: { seconds: 23.777, fps: 1, gop: 8, sampleRate: 0 },
    };
    const channel = new Channel(sparse, { audio: [] });
    channel.stream.urgency = Urgency.NONE;
    channel.loop(['a', 'b', 'c']);
    await channel.timers.pass(86_400_000);
    const last = channel.told.filter(([what]) => what === 'on air').at(-1)!;
    const video = channel.track(0);
    const begins = video.findLast(({ number, keyframe }) => number === 0 && keyframe === true)!;
    const items = channel.told.filter(([what]) => what === 'on air').length;
    expect(items).toBeGreaterThan(3500);
    const planned = Array.from({ length: items - 1 }, (_, index) => channel.sources.length(`file://${'abc'[index % 3]}`)).reduce(
      (a, b) => a + b,
      0,
    );
    expect(Math.abs(begins.pts - planned)).toBeLessThan(50);
    expect(Math.abs(last[2] - planned)).toBeLessThan(1000);
    expect(isMonotonic(video.map(({ dts }) => dts))).toBe(true);
    expect(channel.stream.packets.length).toBeGreaterThan(150_000);
  }, 60_000);
});
