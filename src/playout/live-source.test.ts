import { afterEach, expect, it } from 'vitest';
import { FakeChannel, gaps, isMonotonic } from '../../test/fakes/fake-channel.ts';
import { Film, type FilmOptions, FilmSources, frameNumber } from '../../test/fakes/film.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { AVCC } from '../../test/fixtures/bitstreams.ts';
import type { ApplicationConfig } from '../config/index.ts';
import { buildCue, parseCue } from '../containers/markers/cue.ts';
import { Application } from '../core/application.ts';
import type { IngestStream, SourceTrack } from '../core/ingest.ts';
import { ProviderKind, SourceType } from '../core/kinds.ts';
import { QueueRegistry } from '../core/queue-registry.ts';
import { StreamLineage } from '../core/stream-lineage.ts';
import type { StreamTap } from '../core/stream-taps.ts';
import { TrafficMeter } from '../core/traffic-meter.ts';
import { Urgency } from '../core/urgency.ts';
import type { Packet } from '../media/packet.ts';
import { EventFormat } from '../media/timed-event.ts';
import { systemClock } from '../util/clock.ts';
import type { ItemSources } from './item-source.ts';
import { LiveStreams } from './live-source.ts';

const applications: Application[] = [];
afterEach(() => {
  for (const application of applications.splice(0)) application.close({ code: 'shutdown', detail: 'the test ends' });
});

const CHANNEL = { vhost: 'default', app: 'app', stream: 'tv' };
const LIVE = 'stream://default/app/camera';

/** A channel, and a live stream that is published into an application. */
class Studio {
  readonly application: Application;
  readonly channel: FakeChannel;
  readonly live: LiveStreams;
  readonly lineage = new StreamLineage();
  readonly logger = new RecordingLogger();
  watched = 0;
  #camera: IngestStream | null = null;
  #filming = false;

  constructor(films: Readonly<Record<string, FilmOptions>> = {}) {
    const config = {
      name: 'app',
      providers: { rtmp: {} },
      publishers: {},
      outputProfiles: {
        outputProfile: [],
        mediaOptions: { subtitles: { enable: true, rendition: [{ label: 'English', language: 'en', autoSelect: true, forced: false }] } },
      },
    } as unknown as ApplicationConfig;
    this.application = new Application('default', { name: 'app', config, echo: {} }, new TrafficMeter(systemClock, null), {
      ...{ clock: systemClock, logger: this.logger, queues: new QueueRegistry(systemClock), publishers: new Map() },
      ...{ transcoder: null, nextStreamId: () => 1 },
    });
    applications.push(this.application);
    this.live = new LiveStreams(({ stream }) => this.application.stream(stream), this.lineage);
    const files = new FilmSources(films);
    const sources: ItemSources = {
      open: async (url, options) => (url.startsWith('stream:') ? this.live.open(url, CHANNEL) : await files.open(url, options)),
    };
    this.channel = new FakeChannel(films, { sources });
  }

  get camera(): IngestStream {
    this.#camera ??= this.application.openIngest({
      ...{ streamName: 'camera', provider: ProviderKind.RTMP, sourceType: SourceType.RTMP, sourceUrl: 'x' },
      onClose: () => undefined,
      onWatched: () => {
        this.watched += 1;
      },
    });
    return this.#camera;
  }

  /** Publishes as time passes, from now on until `halt`. */
  film(options: Omit<FilmOptions, 'seconds'>): void {
    const events = new Film({ ...options, seconds: 1000 }).events(0);
    const { clock, timers } = this.channel;
    const startedAt = clock.monotonic();
    this.#filming = true;
    const next = (): void => {
      if (!this.#filming || this.camera.closed) return;
      const { value } = events.next();
      if (value === undefined) return;
      if (value.type === 'tracks') {
        this.camera.setTracks(value.tracks);
        next();
        return;
      }
      const { packet, timebase } = value;
      const due = startedAt + (packet.dts * timebase.num * 1000) / timebase.den;
      timers.later(() => {
        this.camera.push(packet);
        next();
      }, due - clock.monotonic());
    };
    next();
  }

  halt(): void {
    this.#filming = false;
  }
}

const item = (studio: Studio, at: number, until = Number.POSITIVE_INFINITY) => ({
  url: LIVE,
  from: 0,
  at: studio.channel.startedAt + at,
  until: studio.channel.startedAt + until,
});

it('follows a file without a hole, and a file follows it', async () => {
  const studio = new Studio({ a: { seconds: 5.2, bframes: 2 }, b: { seconds: 5 } });
  const { channel } = studio;
  studio.film({ fps: 30, gop: 45, sampleRate: 44_100 });
  channel.playout.cue(channel.item('a'));
  await channel.timers.pass(2700);
  channel.playout.cue(item(studio, 5200, 11_117));
  await channel.timers.pass(6000);
  expect(channel.playout.onAir?.url).toBe(LIVE);
  expect(channel.playout.position).toBeCloseTo(3500, -1);
  channel.playout.cue(channel.item('b', { at: 11_117 }));
  await channel.timers.pass(5000);
  const video = channel.track(0);
  const shown = video.map(({ pts }) => pts);
  expect(gaps(shown).most).toBeLessThan(41);
  expect(isMonotonic(video.map(({ dts }) => dts))).toBe(true);
  expect(gaps(channel.track(100).map(({ pts }) => pts)).most).toBeLessThan(1024 / 44.1 + 0.1);
  // It begins with the newest keyframe there was: 4.5 s after the camera began, at 5.2 s.
  const first = video.find(({ pts }) => Math.abs(pts - 5200) < 1)!;
  expect(first).toMatchObject({ number: 135, keyframe: true });
  expect(video.find(({ pts }) => Math.abs(pts - 11_117) < 1)).toMatchObject({ number: 0, keyframe: true });
  // Sound and video of one moment of the camera are played at one moment.
  const live = channel.track(100).filter(({ pts }) => pts > 5300 && pts < 11_000);
  for (const { pts, number } of live) expect(Math.abs(pts - 5200 - ((number * 1024) / 44.1 - 4500))).toBeLessThan(40);
});

it('is cut with the frames that earlier frames refer to, although nothing is read ahead', async () => {
  for (const until of [8005, 8040, 8070, 8105]) {
    const studio = new Studio({ a: { seconds: 4.51 }, b: { seconds: 5 } });
    const { channel } = studio;
    studio.film({ fps: 30, gop: 45, bframes: 2 });
    channel.playout.cue(channel.item('a'));
    await channel.timers.pass(2700);
    // With a keyframe that has just come.
    channel.playout.cue(item(studio, 4510, until));
    await channel.timers.pass(4000);
    channel.playout.cue(channel.item('b', { at: until }));
    await channel.timers.pass(2500);
    const video = channel.track(0);
    const begin = video.findIndex(({ number, pts }) => number === 135 && pts > 4000);
    const end = video.findIndex(({ pts, number }, index) => index > begin && number === 0 && pts > until - 1);
    const numbers = video.slice(begin, end).map(({ number }) => number);
    expect(numbers.length).toBeGreaterThan(90);
    // Keyframe 135, then each third frame, decoded before the two that are shown before it.
    const missing = numbers
      .filter((number) => (number - 135) % 45 !== 0)
      .flatMap((number) => {
        const behind = (number - 135) % 45;
        const reference = number + ((3 - (behind % 3)) % 3);
        return numbers.includes(reference) ? [] : [number];
      });
    expect(missing).toEqual([]);
    expect(isMonotonic(video.map(({ dts }) => dts))).toBe(true);
    expect(Math.max(...video.slice(begin, end).map(({ pts }) => pts))).toBeLessThan(until);
  }
});

it('fails when its packets contain no keyframe, and when its keyframes are too far apart', async () => {
  const studio = new Studio();
  const { channel } = studio;
  studio.film({ gop: 100_000 });
  await channel.timers.pass(100);
  channel.playout.cue(item(studio, 100));
  await channel.timers.pass(9500);
  expect(channel.told).toEqual([]);
  await channel.timers.pass(1500);
  expect(channel.told).toEqual([['failed', LIVE, expect.any(Number), 'no keyframe of it came for 10000 ms']]);
  studio.halt();
  const late = new Studio();
  late.channel.playout.cue(item(late, 0));
  // Tapped before the only keyframe, which waits for its time.
  late.channel.playout.cue(null);
  void late.camera;
  late.film({ gop: 100_000 });
  late.channel.playout.cue(item(late, 3_600_000));
  await late.channel.timers.pass(50_000);
  expect(late.channel.told).toEqual([]);
  await late.channel.timers.pass(20_000);
  const reason = expect.stringMatching(/keyframes are too far apart/);
  expect(late.channel.told).toEqual([['failed', LIVE, expect.any(Number), reason]]);
});

it('holds some thousand packets, and fails beyond that', async () => {
  let tap: StreamTap | null = null;
  let taps = 0;
  const stream = {
    tap: (listener: StreamTap) => {
      tap = listener;
      taps += 1;
      return () => {
        taps -= 1;
      };
    },
  };
  const source = new LiveStreams(() => stream, new StreamLineage()).open(LIVE, CHANNEL);
  const packet = {
    track: { id: 0, timebase: { num: 1, den: 1000 } },
    pts: 0,
    dts: 0,
    duration: 40,
    keyframe: true,
    data: new Uint8Array(1),
  };
  const push = (): void => tap?.onPacket(packet as unknown as Packet);
  for (let index = 0; index < 5000; index += 1) push();
  expect([taps, (await source.next())?.type]).toEqual([1, 'packet']);
  for (let index = 0; index < 2; index += 1) push();
  await expect(source.next()).rejects.toThrow('its packets come faster than they can be processed');
  expect(taps).toBe(0);
  source.close();
});

it('counts as a consumer of packets until it is closed', async () => {
  const studio = new Studio();
  const { channel } = studio;
  studio.film({});
  await channel.timers.pass(100);
  const stream = studio.application.stream('camera')!;
  const before = stream.urgency;
  expect(before).toBe(Urgency.NONE);
  channel.playout.cue(item(studio, 0));
  await channel.timers.pass(1000);
  expect(studio.watched).toBe(1);
  expect(stream.urgency).toBe(Urgency.LOW_LATENCY);
  channel.playout.close();
  expect(stream.urgency).toBe(before);
});

it('fails when its packets stop, and when it ends, after its last packets', async () => {
  for (const end of ['halt', 'close'] as const) {
    const studio = new Studio();
    const { channel } = studio;
    studio.film({ gop: 25 });
    await channel.timers.pass(2010);
    channel.playout.cue(item(studio, 2010));
    await channel.timers.pass(3000);
    studio.halt();
    if (end === 'close') studio.camera.close({ code: 'peer-left', detail: 'it has left' });
    await channel.timers.pass(2000);
    const failed = channel.told.find(([what]) => what === 'failed')!;
    expect(failed[3]).toContain(end === 'halt' ? 'no packet came for 500 ms' : 'the stream ended: it has left');
    expect(failed[2]).toBeGreaterThan(5000);
    expect(failed[2]).toBeLessThan(5900);
    const sent = channel.stream.packets.length;
    await channel.timers.pass(1000);
    expect(channel.stream.packets.length).toBe(sent);
  }
});

it('continues when its parameters change', async () => {
  const studio = new Studio();
  const { channel } = studio;
  studio.film({ gop: 25 });
  await channel.timers.pass(1000);
  channel.playout.cue(item(studio, 1000));
  await channel.timers.pass(2000);
  const [video, audio] = new Film({ seconds: 1, sampleRate: 48_000 }).tracks;
  studio.camera.setTracks([{ ...video!, config: AVCC.baseline360 } as SourceTrack, audio!]);
  await channel.timers.pass(2000);
  expect(channel.stream.trackSets.length).toBe(2);
  expect(channel.stream.tracks[0]).toMatchObject({ id: 0, config: AVCC.baseline360 });
  expect(gaps(channel.track(0).map(({ pts }) => pts)).most).toBeCloseTo(40, 0);
  expect(channel.told.map(([what]) => what)).toEqual(['on air']);
});

it('passes on events and cues of its stream at their times, but not the end of its playlists', async () => {
  const studio = new Studio();
  const { channel } = studio;
  studio.film({ gop: 25 });
  await channel.timers.pass(1000);
  const stream = studio.application.stream('camera')!;
  const data = Buffer.from('ID3');
  const send = (format: EventFormat): boolean => stream.inject({ format, target: 'all', data, at: null }, true);
  // Before it is on air.
  send(EventFormat.ID3);
  channel.playout.cue(item(studio, 1000, 6000));
  await channel.timers.pass(2000);
  expect([channel.stream.events, channel.stream.cues]).toEqual([[], []]);
  for (const format of [EventFormat.ID3, EventFormat.CONCLUSION, EventFormat.AMF]) send(format);
  stream.subtitles.send([{ label: 'English', cues: [{ startOffset: 200, duration: 900, settings: 'line:0', text: 'Hello' }] }]);
  await channel.timers.pass(100);
  expect(channel.stream.events.map(({ format, target }) => [format, target])).toEqual([
    [EventFormat.ID3, 'all'],
    [EventFormat.AMF, 'all'],
  ]);
  expect(channel.stream.cues).toEqual([]);
  await channel.timers.pass(400);
  expect(channel.stream.cues).toMatchObject([{ language: 'en', duration: 900, settings: 'line:0', text: 'Hello' }]);
  const [event] = channel.stream.events;
  const [cue] = channel.stream.cues;
  expect(Math.round(((cue?.at ?? 0) - (event?.at ?? 0)) * 1000)).toBe(200);
  // In the time of the channel, a second behind its beginning: the camera gave it the time of its newest frame.
  const shown = channel.stream.packets.filter(({ trackId }) => trackId === 0).map(({ pts }) => pts / 90_000);
  expect(shown.filter((pts) => pts > (event?.at ?? 0)).length).toBeGreaterThan(10);
  expect(shown.filter((pts) => pts < (event?.at ?? 0)).length).toBeGreaterThan(20);
});

it('passes the breaks of its stream on ahead of time, and ends them with the item at the latest', async () => {
  const studio = new Studio({ b: { seconds: 5 } });
  const { channel } = studio;
  studio.film({ gop: 25 });
  await channel.timers.pass(1000);
  const stream = studio.application.stream('camera')!;
  channel.playout.cue(item(studio, 1000, 9000));
  await channel.timers.pass(2000);
  const begin = (duration: number): void => {
    stream.inject({ format: EventFormat.CUE, target: 'all', data: buildCue({ type: 'out', duration, elapsed: 0 }), at: null }, true);
  };
  const told = () => channel.stream.events.map(({ data, at, settled }) => [parseCue(data).type, at, settled]);
  const shown = () => Math.max(...channel.stream.packets.filter(({ trackId }) => trackId === 0).map(({ pts }) => pts / 90_000));
  begin(1000);
  await channel.timers.pass(200);
  const [[type, out = 0, settled] = []] = told() as [string, number, boolean][];
  expect([type, settled]).toEqual(['out', true]);
  // A keyframe interval ahead, and told before that.
  expect(out - shown()).toBeGreaterThan(0.5);
  await channel.timers.pass(3000);
  expect(told().slice(1)).toEqual([['in', expect.closeTo(out + 1, 2), true]]);
  begin(60_000);
  await channel.timers.pass(1500);
  channel.playout.cue(channel.item('b', { at: 9000 }));
  await channel.timers.pass(3000);
  expect(told().slice(2)).toEqual([
    ['out', expect.any(Number), true],
    ['in', expect.closeTo(9, 1), true],
  ]);
  await channel.timers.pass(1000);
  expect(channel.stream.events).toHaveLength(4);
});

it.each(['its stream ends', 'nothing follows', 'it is stopped'])('ends its break when %s', async (what) => {
  const studio = new Studio();
  const { channel } = studio;
  studio.film({ gop: 25 });
  await channel.timers.pass(1000);
  channel.playout.cue(item(studio, 1000, what === 'nothing follows' ? 6000 : undefined));
  await channel.timers.pass(2000);
  const data = buildCue({ type: 'out', duration: 60_000, elapsed: 0 });
  studio.application.stream('camera')!.inject({ format: EventFormat.CUE, target: 'all', data, at: null }, true);
  await channel.timers.pass(2000);
  expect(channel.stream.events).toHaveLength(1);
  if (what === 'its stream ends') studio.camera.close({ code: 'peer-left', detail: 'it has left' });
  if (what === 'it is stopped') channel.playout.stop();
  await channel.timers.pass(3000);
  const ends = channel.stream.events.slice(1).map((event) => [parseCue(event.data).type, event.at]);
  const last = Math.max(...channel.stream.packets.filter(({ trackId }) => trackId === 0).map(({ pts }) => pts / 90_000));
  expect(ends).toEqual([['in', expect.closeTo(last + 0.04, 1)]]);
});

it('is refused when it does not exist, for an invalid address, and when it leads to the channel itself', async () => {
  const studio = new Studio();
  const { channel, live } = studio;
  channel.playout.cue({ ...item(studio, 0), url: 'stream://default/app/nobody' });
  await channel.timers.pass(100);
  expect(channel.told.at(-1)).toEqual(['failed', 'stream://default/app/nobody', expect.any(Number), expect.stringContaining('no stream')]);
  expect(() => live.open('stream://default/app', CHANNEL)).toThrow(/is not stream:/);
  expect(() => live.open('stream://default/app/tv', CHANNEL)).toThrow(/would be made of itself/);
  studio.film({});
  await channel.timers.pass(100);
  // `camera` plays `other`, which would play `camera`.
  const other = { ...CHANNEL, stream: 'other' };
  const camera = { ...CHANNEL, stream: 'camera' };
  const tapped = live.open(LIVE, other);
  expect(() => live.open('stream://default/app/other', camera)).toThrow(/would be made of itself/);
  tapped.close();
  tapped.close();
  expect(() => live.open('stream://default/app/other', camera)).toThrow(/there is no stream/);
});

it('is refused when it is made of the channel, through any other streams, and a refusal leaves nothing behind', async () => {
  const studio = new Studio();
  const { live, lineage } = studio;
  studio.film({});
  await studio.channel.timers.pass(100);
  const end = lineage.add({ ...CHANNEL, stream: 'camera' }, CHANNEL);
  expect(() => live.open(LIVE, CHANNEL)).toThrow(
    'default/app/tv would be made of itself: default/app/tv <- default/app/camera <- default/app/tv',
  );
  expect(lineage.loopOf({ ...CHANNEL, stream: 'camera' }, { ...CHANNEL, stream: 'x' })).toBeNull();
  end();
  const tapped = live.open(LIVE, CHANNEL);
  expect(lineage.loopOf({ ...CHANNEL, stream: 'camera' }, CHANNEL)).toContain('made of itself');
  tapped.close();
  expect(lineage.loopOf({ ...CHANNEL, stream: 'camera' }, CHANNEL)).toBeNull();
});

it('is found by a percent-encoded URL, and by one in capitals', async () => {
  const studio = new Studio();
  const { live } = studio;
  studio.film({});
  await studio.channel.timers.pass(100);
  for (const url of ['stream://default/app/c%61mera', 'STREAM://default/%61pp/camera']) live.open(url, CHANNEL).close();
  for (const url of ['stream://default/app/cam%2Fera', 'stream://default/app/camera?x', 'file://default/app/camera'])
    expect(() => live.open(url, CHANNEL)).toThrow(/is not stream:/);
});

it('removes a listener that throws, and the stream continues', async () => {
  const studio = new Studio();
  const { channel } = studio;
  studio.film({});
  await channel.timers.pass(100);
  const heard: number[] = [];
  let faults = 0;
  const stream = studio.application.stream('camera')!;
  stream.tap({
    onTracks: () => undefined,
    onPacket: () => {
      faults += 1;
      throw new Error('it fails');
    },
    onEnd: () => undefined,
  });
  const leave = stream.tap({ onTracks: () => undefined, onPacket: ({ data }) => heard.push(frameNumber(data)), onEnd: () => undefined });
  await channel.timers.pass(500);
  const count = heard.length;
  expect([faults, count > 20]).toEqual([1, true]);
  leave();
  leave();
  await channel.timers.pass(500);
  expect([heard.length, studio.camera.closed]).toEqual([count, false]);
});
