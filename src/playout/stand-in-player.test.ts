import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Film, type FilmOptions, FilmSources, frameNumber } from '../../test/fakes/film.ts';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioTrack, videoTrack } from '../../test/fakes/synthetic-media.ts';
import type { ApplicationConfig } from '../config/index.ts';
import { Application } from '../core/application.ts';
import type { IngestStream, SourceCue, SourcePacket, SourceTrack } from '../core/ingest.ts';
import { PublisherKind } from '../core/kinds.ts';
import type { Publisher } from '../core/publishing.ts';
import { QueueRegistry } from '../core/queue-registry.ts';
import type { StandIn, StandInStage } from '../core/stand-in.ts';
import { StreamLineage } from '../core/stream-lineage.ts';
import { TrafficMeter } from '../core/traffic-meter.ts';
import { Urgency } from '../core/urgency.ts';
import type { Packet } from '../media/packet.ts';
import { toMilliseconds } from '../media/timebase.ts';
import { isMediaTrack, type Track } from '../media/track.ts';
import type { ItemSources } from './item-source.ts';
import { LiveStreams } from './live-source.ts';
import { standInPlayers } from './stand-in-player.ts';

/** Encoders are films, too: frames and samples say where they are in theirs. */
const ENCODER: FilmOptions = { seconds: 600, fps: 30, gop: 30, sampleRate: 48_000, start: 1000 };
const LEFT = { code: 'peer-left', detail: 'bye' } as const;

interface Sent {
  readonly type: Track['type'];
  /** ms of the stream. */
  readonly pts: number;
  readonly number: number;
  readonly keyframe: boolean;
  /** ms since the beginning of the test. */
  readonly at: number;
  readonly codec: string;
}

const studios: Studio[] = [];
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
});
afterEach(() => {
  for (const { application } of studios.splice(0)) application.close({ code: 'shutdown', detail: 'the test ends' });
  vi.useRealTimers();
});

class Studio {
  readonly clock = new ManualClock();
  readonly logger = new RecordingLogger();
  readonly films: FilmSources;
  readonly application: Application;
  readonly sent: Sent[] = [];
  readonly tracks: (readonly Track[])[] = [];
  readonly ended: string[] = [];
  /** Encoders on air, by when they began. */
  readonly #encoders = new Map<
    IngestStream,
    { readonly since: number; readonly events: Generator; held: { at: number; push: () => void } | null }
  >();
  now = 0;

  constructor(films: Readonly<Record<string, FilmOptions>>, url: string) {
    studios.push(this);
    this.films = new FilmSources(films);
    const live = new LiveStreams(({ stream }) => this.application.stream(stream), new StreamLineage());
    const standIns = standInPlayers({
      sources: (_settings, { address }) => ({
        open: async (item, opening) => (item.startsWith('stream:') ? live.open(item, address) : await this.films.open(item, opening)),
      }),
      ...{ transcoder: null, clock: this.clock, logger: this.logger },
    });
    const publisher: Publisher = {
      kind: PublisherKind.LLHLS,
      defaultPlaylist: () => null,
      attach: ({ name }) => ({
        onTracks: (tracks) => name === 'tv' && this.tracks.push(tracks),
        onPacket: (packet) => name === 'tv' && this.#take(packet),
        close: ({ detail }) => this.ended.push(`${name}: ${detail}`),
      }),
    };
    const encodes = { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }], images: [] };
    const standIn = [{ url, mediaRootDir: '/', streamName: 'tv', afterMs: 500, keepMs: 0 }];
    const config = {
      ...{ name: 'app', providers: { rtmp: {} }, publishers: { llhls: {} } },
      outputProfiles: { outputProfile: [{ name: 'p', outputStreamName: '${OriginStreamName}', playlists: [], encodes }] },
      sourceLoss: { keepStreamMs: 0, takeOverSilenceMs: 2000, standIn },
    } as unknown as ApplicationConfig;
    let lastId = 0;
    this.application = new Application('v', { name: 'app', config, echo: {} }, new TrafficMeter(this.clock, null), {
      ...{
        clock: this.clock,
        logger: this.logger,
        queues: new QueueRegistry(this.clock),
        publishers: new Map([[publisher.kind, publisher]]),
      },
      ...{ transcoder: null, nextStreamId: () => (lastId += 1), standIns },
    });
  }

  /** Sends from now on, in the order and at the time of decoding, `skip` seconds into its film. */
  publish(streamName = 'tv', { skip = 0, ...film }: Partial<FilmOptions> & { readonly skip?: number } = {}): IngestStream {
    const options = { ...ENCODER, ...film };
    const ingest = this.application.openIngest({
      ...{ streamName, provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1', onClose: () => undefined },
    });
    const events = new Film(options).events(0);
    this.#encoders.set(ingest, { since: this.now - ((options.start ?? 0) + skip) * 1000, events, held: null });
    this.#feed(ingest, skip * 1000);
    return ingest;
  }

  leave(ingest: IngestStream): void {
    this.#encoders.delete(ingest);
    ingest.close(LEFT);
  }

  /** Sends nothing any more, and stays connected. */
  mute(ingest: IngestStream): void {
    this.#encoders.delete(ingest);
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 5) {
      this.clock.advance(5);
      this.now += 5;
      for (const ingest of this.#encoders.keys()) this.#feed(ingest);
      await vi.advanceTimersByTimeAsync(5);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  of(type: Track['type'], from = 0): Sent[] {
    return this.sent.filter((packet) => packet.type === type && packet.at >= from);
  }

  /** How long behind their times frames went out, ms, between two times. */
  lateness(from: number, to: number): number {
    const packets = this.of('video', from).filter(({ at }) => at < to);
    return packets.reduce((sum, { at, pts }) => sum + at - pts, 0) / packets.length;
  }

  lines(text: string): number {
    return this.logger.lines.filter(({ message }) => message.includes(text)).length;
  }

  #feed(ingest: IngestStream, skipMs = 0): void {
    const encoder = this.#encoders.get(ingest);
    if (encoder === undefined) return;
    for (;;) {
      if (encoder.held !== null) {
        if (encoder.held.at > this.now) return;
        encoder.held.push();
        encoder.held = null;
      }
      const { value } = encoder.events.next();
      if (value === undefined) return;
      if (value.type === 'tracks') {
        ingest.setTracks(value.tracks);
        continue;
      }
      const at = toMilliseconds(value.packet.dts, value.timebase) + encoder.since;
      if (skipMs > 0 && at < this.now) continue;
      encoder.held = { at, push: () => ingest.push({ ...value.packet, keyframe: null }) };
    }
  }

  #take({ track, pts, keyframe, data }: Packet): void {
    const codec = isMediaTrack(track) ? track.codec : '';
    this.sent.push({
      type: track.type,
      pts: toMilliseconds(pts, track.timebase),
      number: frameNumber(data),
      keyframe,
      at: this.now,
      codec,
    });
  }
}

/** The longest hole between frames as they are shown; of the last ones some are on their way. */
function hole(packets: readonly Sent[]): number {
  const times = packets
    .map(({ pts }) => pts)
    .sort((a, b) => a - b)
    .slice(0, -3);
  return Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? at)));
}

/** Delay of audio against video in the films, ms, in the media sent between two times. */
function offset(studio: Studio, { fps = 25, sampleRate = 48_000 }: FilmOptions, from: number, to: number): number {
  const of = (type: Track['type']) => studio.sent.filter((packet) => packet.type === type && packet.at > from && packet.at < to);
  const begin = (packets: readonly Sent[], ms: number): number => {
    const [packet] = packets;
    return packet === undefined ? Number.NaN : packet.pts - packet.number * ms;
  };
  return begin(of('audio'), 1_024_000 / sampleRate) - begin(of('video'), 1000 / fps);
}

describe('a slate', () => {
  const slate: FilmOptions = { seconds: 4, fps: 25, gop: 50, bframes: 2, sampleRate: 44_100 };

  it('replaces the encoder and yields to the next one without a gap, in sync with its audio, several times', async () => {
    const studio = new Studio({ slate }, 'file://slate');
    const first = studio.publish();
    await studio.pass(3000);
    studio.leave(first);
    await studio.pass(10_000);
    expect(studio.application.stream('tv')).toMatchObject({ sourceType: 'File', sourceUrl: 'file://slate', source: { present: false } });
    const second = studio.publish('tv', { start: 5 });
    await studio.pass(3000);
    expect(studio.application.stream('tv')).toMatchObject({ sourceType: 'Rtmp', source: { present: true } });
    // At either change the sent media keeps pace with the clock.
    for (const type of ['video', 'audio'] as const) {
      const packets = studio.of(type);
      expect(hole(packets)).toBeLessThan(100);
      expect(hole(packets.map((packet) => ({ ...packet, pts: packet.at })))).toBeLessThan(100);
    }
    const [before, after] = [studio.lateness(2000, 3000), studio.lateness(15_000, 16_000)];
    // Frames of the slate that others need are shown, too: so much the stream is ahead then.
    expect(before - after).toBeGreaterThan(-20);
    expect(before - after).toBeLessThan(250);
    // The slate is four seconds long.
    expect(studio.of('video', 3000).filter(({ number, at }) => number === 0 && at < 13_000).length).toBe(3);
    expect(Math.abs(offset(studio, slate, 3200, 6500))).toBeLessThan(40);
    expect(Math.abs(offset(studio, ENCODER, 13_200, 16_000))).toBeLessThan(40);
    expect(studio.films.closed).toBe(studio.films.opened.length);
    studio.leave(second);
  });

  it('lets the stream run ahead of the clock by at most 1.5 s after many returns', async () => {
    const studio = new Studio({ slate }, 'file://slate');
    const ahead: number[] = [];
    for (let round = 0; round < 12; round += 1) {
      const encoder = studio.publish();
      await studio.pass(2500);
      ahead.push(-studio.lateness(studio.now - 1000, studio.now));
      studio.leave(encoder);
      await studio.pass(2500);
    }
    expect(ahead[5]! - ahead[0]!).toBeGreaterThan(500);
    expect(Math.max(...ahead) - ahead[0]!).toBeLessThan(1500);
    expect(hole(studio.of('video'))).toBeLessThan(100);
    expect(studio.lines('the encoder is back')).toBe(11);
  });

  it('makes up for the silence of an encoder, and returns to it', async () => {
    const studio = new Studio({ slate }, 'file://slate');
    const encoder = studio.publish();
    await studio.pass(3000);
    studio.mute(encoder);
    await studio.pass(3000);
    expect(studio.lines('the encoder is silent')).toBe(1);
    expect(Math.abs(studio.lateness(5000, 6000) - studio.lateness(2000, 3000))).toBeLessThan(200);
    expect(hole(studio.of('video'))).toBeLessThan(100);
    expect(studio.application.stream('tv')).toMatchObject({ sourceUrl: 'file://slate', source: { present: true } });
  });

  it('is silent without audio, and leaves out tracks that the stream does not have', async () => {
    const studio = new Studio({ mute: { ...slate, sampleRate: 0 } }, 'file://mute');
    const encoder = studio.publish();
    await studio.pass(2000);
    studio.leave(encoder);
    await studio.pass(3000);
    expect(hole(studio.of('audio'))).toBeLessThan(100);
    const bare = new Studio({ slate }, 'file://slate');
    const camera = bare.publish('tv', { sampleRate: 0 });
    await bare.pass(2000);
    bare.leave(camera);
    await bare.pass(3000);
    expect([bare.of('audio').length, hole(bare.of('video')) < 100]).toEqual([0, true]);
    const radio = new Studio({ slate }, 'file://slate');
    const voice = radio.publish('tv', { silentFilm: true });
    await radio.pass(2000);
    radio.leave(voice);
    await radio.pass(3000);
    expect([radio.of('video').length, hole(radio.of('audio')) < 100]).toEqual([0, true]);
  });

  it('that is missing or has no video is logged while the encoder is connected, and the stream ends without it', async () => {
    for (const [name, reason] of [
      ['none', 'ENOENT'],
      ['sound', 'it has no video'],
    ] as const) {
      const studio = new Studio({ sound: { ...slate, silentFilm: true } }, `file://${name}`);
      const encoder = studio.publish();
      await studio.pass(1000);
      expect(studio.lines('the stand-in cannot be played')).toBe(1);
      expect(studio.lines(reason)).toBe(1);
      studio.leave(encoder);
      await studio.pass(9000);
      expect(studio.ended).toEqual([]);
      await studio.pass(2000);
      expect(studio.ended).toEqual([expect.stringContaining('neither an encoder nor the stand-in came within 10000 ms')]);
    }
  });

  it('is opened for each loss, not more, and closed with the stream', async () => {
    const studio = new Studio({ slate }, 'file://slate');
    for (let round = 0; round < 4; round += 1) {
      const encoder = studio.publish();
      await studio.pass(1500);
      studio.leave(encoder);
      await studio.pass(500);
    }
    // Once to see whether it can be played, once to play.
    expect(studio.films.opened.length).toBe(8);
    studio.application.stream('tv')!.terminate({ code: 'deleted', detail: 'x' });
    await studio.pass(1000);
    expect(studio.films.closed).toBe(8);
    const { length } = studio.sent;
    await studio.pass(1000);
    expect([studio.sent.length, studio.application.hasStream('tv')]).toEqual([length, false]);
  });
});

describe('a live stream as a stand-in', () => {
  const URL = 'stream://v/app/backup';

  it('continues at once with its last keyframe, without a gap', async () => {
    const studio = new Studio({}, URL);
    const backup = studio.publish('backup', { fps: 25, gop: 50 });
    const encoder = studio.publish();
    await studio.pass(3300);
    studio.leave(encoder);
    await studio.pass(2000);
    expect(studio.application.stream('tv')).toMatchObject({ sourceType: 'Multiplex', sourceUrl: URL });
    expect(hole(studio.of('video'))).toBeLessThan(100);
    expect(hole(studio.of('audio'))).toBeLessThan(100);
    expect(studio.of('video').find(({ at }) => at > 3300)).toMatchObject({ keyframe: true, number: 50 });
    expect(Math.abs(offset(studio, { ...ENCODER, fps: 25 }, 3400, 5000))).toBeLessThan(40);
    const again = studio.publish('tv', { start: 9 });
    await studio.pass(1000);
    expect(studio.application.stream('tv')).toMatchObject({ sourceType: 'Rtmp' });
    expect(hole(studio.of('video'))).toBeLessThan(100);
    studio.leave(again);
    studio.leave(backup);
  });

  it('that ends is looked for again while the stream exists', async () => {
    const studio = new Studio({}, URL);
    const backup = studio.publish('backup');
    const encoder = studio.publish();
    await studio.pass(2000);
    studio.leave(encoder);
    await studio.pass(2000);
    studio.leave(backup);
    await studio.pass(3000);
    expect(studio.lines('the stand-in cannot be played: the stream ended: bye')).toBe(1);
    studio.publish('backup');
    await studio.pass(3000);
    expect(studio.of('video', 7500).length).toBeGreaterThan(10);
    expect(studio.ended).toEqual(['backup: bye']);
  });

  it('that started and ended while the encoder was connected is not used', async () => {
    const studio = new Studio({}, URL);
    const backup = studio.publish('backup');
    const encoder = studio.publish();
    await studio.pass(2000);
    studio.leave(backup);
    await studio.pass(1000);
    expect(studio.lines('the stand-in cannot be played')).toBe(1);
    studio.publish('backup');
    await studio.pass(1000);
    studio.leave(encoder);
    await studio.pass(3000);
    expect(studio.of('video', 4200).length).toBeGreaterThan(30);
  });
});

/** A stage whose stream is the test. */
class Stage implements StandInStage {
  readonly address = { vhost: 'v', app: 'app', stream: 'tv' };
  readonly clock = new ManualClock();
  readonly urgency = Urgency.REAL_TIME;
  readonly closed = false;
  readonly announced: (readonly SourceTrack[])[] = [];
  readonly packets: SourcePacket[] = [];
  readonly cues: { readonly from: number; readonly to: number; readonly text: string }[] = [];
  readonly failures: string[] = [];
  readonly player: StandIn;
  readonly films: FilmSources;
  tracks: readonly Track[];

  constructor(tracks: readonly Track[], film: FilmOptions, wrap: (films: FilmSources) => ItemSources = (films) => films) {
    this.tracks = tracks;
    this.films = new FilmSources({ slate: film });
    const options = { sources: () => wrap(this.films), transcoder: null, clock: this.clock, logger: new RecordingLogger() };
    const settings = { url: 'file://slate', mediaRootDir: '/', streamName: 'tv', afterMs: 500, keepMs: 0 };
    this.player = standInPlayers(options)(settings as Parameters<ReturnType<typeof standInPlayers>>[0], this);
    players.push(this.player);
  }

  setTracks(tracks: readonly SourceTrack[]): void {
    this.announced.push(tracks);
  }

  push(packet: SourcePacket): void {
    this.packets.push(packet);
  }

  pushCue(_language: string, { at, duration, text }: SourceCue): boolean {
    this.cues.push({ from: at * 1000, to: at * 1000 + duration, text });
    return true;
  }

  onFailed(reason: string): void {
    this.failures.push(reason);
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 5) {
      this.clock.advance(5);
      await vi.advanceTimersByTimeAsync(5);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

const players: StandIn[] = [];
afterEach(() => {
  for (const player of players.splice(0)) player.close();
});

describe('the player of a slate', () => {
  const film: FilmOptions = { seconds: 4, fps: 25, gop: 25, sampleRate: 48_000 };
  const videoIn = (id: number): Track => ({ ...videoTrack(), id });

  it('is reopened for other codecs only', async () => {
    const stage = new Stage([videoIn(0), audioTrack()], film);
    for (let round = 0; round < 5; round += 1) {
      stage.tracks = [{ ...videoTrack(), width: 320 + round }, audioTrack()];
      stage.player.prepare();
      await stage.pass(500);
    }
    expect(stage.films.opened).toHaveLength(1);
    stage.tracks = [videoIn(0)];
    stage.player.prepare();
    await stage.pass(500);
    expect(stage.films.opened).toHaveLength(2);
  });

  it('gives all videos of the stream the same frames', async () => {
    const stage = new Stage([videoIn(0), videoIn(1), videoIn(2), audioTrack()], film);
    stage.player.play(stage.clock.now());
    await stage.pass(1000);
    const videos = stage.announced[0]!.filter(({ type }) => type === 'video');
    expect(videos.map(({ id }) => id)).toEqual([0, 1, 2]);
    expect(stage.announced[0]!.filter(({ type }) => type === 'audio')).toHaveLength(1);
    const of = (trackId: number) => stage.packets.filter((packet) => packet.trackId === trackId).map(({ pts, data }) => [pts, data]);
    expect(of(0).length).toBeGreaterThan(20);
    expect(of(1)).toEqual(of(0));
    expect(of(2)).toEqual(of(0));
  });

  it('skips at most a second and a half of missed media', async () => {
    const stage = new Stage([videoIn(0), audioTrack()], { ...film, seconds: 60 });
    stage.player.play(stage.clock.now() - 20_000);
    await stage.pass(300);
    expect(stage.films.opened[0]!.position).toBeGreaterThan(1490);
    expect(stage.films.opened[0]!.position).toBeLessThan(1600);
  });

  it('withdraws its cues when the encoder returns', async () => {
    const subtitles = [{ language: 'en', cues: [{ start: 500, duration: 60_000, settings: '', text: 'please wait' }] }];
    const stage = new Stage([videoIn(0), audioTrack()], { ...film, seconds: 120, subtitles });
    stage.player.play(stage.clock.now());
    await stage.pass(5000);
    stage.player.rest();
    const end = Math.max(...stage.packets.filter(({ trackId }) => trackId === 0).map(({ pts }) => pts / 90));
    // Shown all the time, and not for long behind the last frame.
    expect(stage.cues.slice(1).map(({ from }, index) => Math.abs(from - stage.cues[index]!.to) <= 1)).toEqual([true, true, true, true]);
    expect(stage.cues.at(-1)!.to).toBeGreaterThan(end);
    expect(stage.cues.at(-1)!.to - end).toBeLessThanOrEqual(1000);
    await stage.pass(3000);
    expect(stage.cues).toHaveLength(5);
  });

  it('plays on to its end when the next round cannot be opened, and tries again then', async () => {
    let opened = 0;
    const stage = new Stage([videoIn(0), audioTrack()], film, (films) => ({
      open: async (url, opening) => {
        opened += 1;
        if (opened === 2) throw new Error('EIO: a disk that is tired');
        return await films.open(url, opening);
      },
    }));
    stage.player.play(stage.clock.now());
    await stage.pass(3500);
    expect([opened, stage.failures]).toEqual([2, []]);
    await stage.pass(4000);
    expect(opened).toBeGreaterThan(2);
    expect(stage.failures).toEqual([]);
    const frames = stage.packets.filter(({ trackId }) => trackId === 0).map(({ data }) => frameNumber(data));
    expect(frames.slice(0, 100)).toEqual(Array.from({ length: 100 }, (_, index) => index));
    expect(frames.filter((number) => number === 0)).toHaveLength(2);
  });
});
