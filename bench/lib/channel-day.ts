/** A scheduled channel over a day that passes as fast as its files can be read. */
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import type { SourcePacket, SourceTrack } from '../../src/core/ingest.ts';
import { StreamLineage } from '../../src/core/stream-lineage.ts';
import { Urgency } from '../../src/core/urgency.ts';
import { ChannelPlayout } from '../../src/playout/channel-playout.ts';
import { ChannelSources } from '../../src/playout/channel-sources.ts';
import { lengthOfBytes } from '../../src/playout/file-source.ts';
import type { ItemSources } from '../../src/playout/item-source.ts';
import { LiveStreams } from '../../src/playout/live-source.ts';
import { MediaRoot } from '../../src/playout/media-root.ts';
import { definitionFromJson } from '../../src/services/schedule/definition-json.ts';
import { FileLengths, type Lengths } from '../../src/services/schedule/file-lengths.ts';
import { ScheduledChannel } from '../../src/services/schedule/scheduled-channel.ts';
import { AllowedFolders } from '../../src/util/allowed-folders.ts';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { ManualTimers } from '../../test/fakes/manual-timers.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { Child } from '../../test/harness/child.ts';

const DAY_MS = 86_400_000;
const MIDNIGHT = Date.UTC(2026, 0, 1);
/** The interval of the service's checks. */
const TICK_MS = 100;
/** The wall clock is faster than the monotonic clock by this share, more than the error of a quartz. */
const SLEW = 50e-6;
const TICKS_PER_MS = 90;

/** A file of the day; `onAir`: end by the schedule, ms, null for the end of the file. */
interface Film {
  readonly name: string;
  readonly width: number;
  /** Frames a second, in ffmpeg's form. */
  readonly rate: readonly [num: number, den: number];
  readonly frames: number;
  readonly sampleRate: number;
  readonly onAir: number | null;
}

/** The lengths are multiples neither of each other, nor of milliseconds, nor of audio frames. */
const FILMS: readonly Film[] = [
  { name: 'a.mp4', width: 64, rate: [25, 2], frames: 771, sampleRate: 16_000, onAir: null },
  { name: 'b.mp4', width: 96, rate: [10, 1], frames: 400, sampleRate: 22_050, onAir: 31_037 },
  { name: 'c.mp4', width: 128, rate: [15_000, 1001], frames: 307, sampleRate: 24_000, onAir: null },
];

/** Results; times in ms. */
export interface Day {
  /** Deviation of an item's first frame from its time in the schedule: the largest, and the last. */
  readonly most: number;
  readonly last: number;
  /** Maximum gap between the end of a frame and the next frame. */
  readonly hole: number;
  readonly items: number;
  readonly packets: number;
  readonly files: number;
  /** Duration of the simulation. */
  readonly seconds: number;
}

/** A wall clock in whole milliseconds that is faster than the monotonic clock. */
class SlewedClock extends ManualClock {
  readonly #began = this.monotonic();

  constructor() {
    super(MIDNIGHT);
  }

  override now(): number {
    return Math.floor(this.wallAt(this.monotonic()));
  }

  /** The wall clock at the time `at` of the monotonic clock. */
  wallAt(at: number): number {
    return MIDNIGHT + (at - this.#began) * (1 + SLEW);
  }
}

/** Counts reads in progress: time stands still until they are complete. */
class Reading {
  #open = 0;

  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#open += 1;
    try {
      return await work();
    } finally {
      this.#open -= 1;
    }
  }

  readonly rest = async (): Promise<void> => {
    do await nextTurn();
    while (this.#open > 0);
  };

  /** Wraps sources so that their reads are counted. */
  awaited(sources: ItemSources): ItemSources {
    return {
      open: (url, opening) =>
        this.during(async () => {
          const source = await sources.open(url, opening);
          return { live: source.live, start: source.start, next: () => this.during(() => source.next()), close: () => source.close() };
        }),
    };
  }
}

/** Examines the output of a channel. */
class DayMeter {
  packets = 0;
  items = 0;
  most = 0;
  last = 0;
  hole = 0;
  readonly #clock: SlewedClock;
  #film: Film | null = null;
  #isFirst = false;
  #shownUntil = Number.NaN;
  #planned = MIDNIGHT;

  constructor(clock: SlewedClock) {
    this.#clock = clock;
  }

  /** Consecutive films never have the same tracks, so each item has its call. */
  setTracks(tracks: readonly SourceTrack[]): void {
    const video = tracks.find((track) => track.type === 'video');
    const film = FILMS[this.items % FILMS.length];
    if (film === undefined || video?.width !== film.width) throw new Error(`item ${this.items} should be ${film?.name}`);
    if (this.#film !== null) this.#planned += onAirMs(this.#film);
    this.#film = film;
    this.#isFirst = true;
    this.items += 1;
  }

  push({ trackId, pts }: SourcePacket): void {
    this.packets += 1;
    if (trackId !== 0 || this.#film === null) return;
    const at = pts / TICKS_PER_MS;
    if (this.#isFirst) {
      this.#isFirst = false;
      this.last = Math.abs(this.#clock.wallAt(at) - this.#planned);
      this.most = Math.max(this.most, this.last);
    }
    if (at > this.#shownUntil) this.hole = Math.max(this.hole, at - this.#shownUntil);
    this.#shownUntil = at + frameMs(this.#film);
  }
}

function frameMs({ rate: [num, den] }: Film): number {
  return (1000 * den) / num;
}

function onAirMs(film: Film): number {
  return film.onAir ?? film.frames * frameMs(film);
}

/** Makes the films in `folder`, once. */
async function shoot(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  for (const { name, width, rate, frames, sampleRate } of FILMS) {
    const file = path.join(folder, name);
    if (existsSync(file)) continue;
    const unfinished = `${file}.${process.pid}.part`;
    const video = ['-f', 'lavfi', '-i', `testsrc2=size=${width}x72:rate=${rate.join('/')}`, '-frames:v', `${frames}`];
    const audio = ['-f', 'lavfi', '-i', `sine=frequency=440:sample_rate=${sampleRate}`];
    const encode = [
      '-c:v',
      'libx264',
      '-preset',
      'ultrafast',
      '-bf',
      '0',
      '-g',
      '50',
      '-c:a',
      'aac',
      '-b:a',
      '24k',
      '-shortest',
      '-f',
      'mp4',
    ];
    const child = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-y', ...audio, ...video, ...encode, unfinished]);
    const { code } = await child.exited;
    if (code !== 0) throw new Error(`ffmpeg could not make ${name}: ${child.stderr}`);
    renameSync(unfinished, file);
  }
}

/**
 * Schedule, playout, file readers and files are real. Simulated are the time, which stands still during reads, with a wall clock that gains
 * on the monotonic clock; the timers; and the stream, which only checks times.
 */
export async function playDay(folder: string): Promise<Day> {
  await shoot(folder);
  const clock = new SlewedClock();
  const reading = new Reading();
  const timers = new ManualTimers(clock, reading.rest);
  const logger = new RecordingLogger();
  const meter = new DayMeter(clock);
  const root = new MediaRoot(folder, new AllowedFolders(null, ''));
  const lengths = new FileLengths(
    {
      placeOf: (url) => root.pathOf(url),
      lengthOf: async (url) => {
        const bytes = await root.open(url);
        try {
          return await lengthOfBytes(bytes, logger);
        } finally {
          await bytes.close();
        }
      },
    },
    clock,
  );
  const awaited: Lengths = {
    of: (item) => lengths.of(item),
    look: (item) => reading.during(() => lengths.look(item)),
    learn: (item, length) => lengths.learn(item, length),
  };
  const address = { vhost: 'default', app: 'app', stream: 'tv' };
  const sources = new ChannelSources({
    channel: address,
    root,
    foreign: null,
    live: new LiveStreams(() => undefined, new StreamLineage()),
    clock,
    logger,
  });
  const items = FILMS.map(({ name, onAir }) => ({ url: `file://${name}`, ...(onAir !== null && { duration: onAir }) }));
  const program = { name: 'day', scheduled: new Date(MIDNIGHT).toISOString(), repeat: true, items };
  const channel = new ScheduledChannel({
    definition: definitionFromJson({ stream: { name: 'tv', bypassTranscoder: true }, programs: [program] }),
    open: (_settings, listener) =>
      new ChannelPlayout({
        stream: {
          setTracks: (tracks) => meter.setTracks(tracks),
          push: (packet) => meter.push(packet),
          countBytes: () => undefined,
          pushCue: () => true,
          pushEvent: () => true,
          urgency: Urgency.NONE,
          closed: false,
        },
        ...{ video: true, audio: [{}], sources: reading.awaited(sources), errorToleranceMs: 500, listener, clock, logger },
        later: timers.later,
      }),
    ...{ lengths: awaited, isRunning: () => false, clock, logger },
  });
  const tick = (): void => {
    channel.tick();
    timers.later(tick, TICK_MS);
  };
  const since = performance.now();
  await reading.rest();
  tick();
  await timers.pass(DAY_MS);
  channel.close();
  const troubles = logger.lines.filter(({ level }) => level === 'warn' || level === 'error');
  if (troubles.length > 0) throw new Error(`the day did not pass as planned: ${troubles[0]?.message}`);
  const { most, last, hole, packets } = meter;
  return { most, last, hole, packets, items: meter.items, files: FILMS.length, seconds: (performance.now() - since) / 1000 };
}
