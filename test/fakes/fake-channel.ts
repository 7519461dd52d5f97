/** A channel on a manual clock, with films instead of files. */
import type { SourcePacket } from '../../src/core/ingest.ts';
import { ProviderKind, SourceType } from '../../src/core/kinds.ts';
import { ChannelPlayout, type ChannelPlayoutOptions } from '../../src/playout/channel-playout.ts';
import type { CuedItem, PlayoutListener } from '../../src/playout/playout.ts';
import { FakeIngestStream } from './fake-ingest-gate.ts';
import { type FilmOptions, FilmSources, frameNumber } from './film.ts';
import { ManualClock } from './manual-clock.ts';
import { ManualTimers } from './manual-timers.ts';
import { RecordingLogger } from './recording-logger.ts';

export const TICKS = 90;

export type Told = readonly [what: string, url: string, at: number, detail?: number | string, mediaEnd?: number | null];

export class FakeChannel implements PlayoutListener {
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
  /** Time of each packet, ms since the start. */
  readonly sentAt: number[] = [];
  /** Number of packets before each announcement of tracks. */
  readonly tracksBefore: number[] = [];
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
    const setTracks = this.stream.setTracks.bind(this.stream);
    this.stream.setTracks = (tracks) => {
      setTracks(tracks);
      this.tracksBefore.push(this.stream.packets.length);
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

  /** Plays items one after the other, in a loop. */
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

  onEnding(item: CuedItem, endsAt: number, mediaEnd: number | null): void {
    this.told.push(['ending', item.url, this.now, endsAt - this.startedAt, mediaEnd]);
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

/** The largest and the smallest distance between frames in order of presentation. */
export function gaps(times: readonly number[]): { most: number; least: number } {
  const sorted = [...times].sort((a, b) => a - b);
  const steps = sorted.slice(1).map((time, index) => time - (sorted[index] ?? 0));
  return { most: Math.max(...steps), least: Math.min(...steps) };
}

export function isMonotonic(times: readonly number[]): boolean {
  return times.every((time, index) => index === 0 || time > (times[index - 1] ?? 0));
}
