/** A server with two channels of the same items, three unequal films and a camera: one with the items unchanged, one encoded. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { apiPath } from './api-client.ts';
import type { Boundary, ChannelPage } from './channel-watcher.ts';
import type { Child } from './child.ts';
import { type FlashFilm, makeFlashFilm, publishFlashFilm } from './flash-films.ts';
import { PartTimes } from './part-times.ts';
import { decodeBeeps, decodeFrames, flashesOf, offsetsOf, PlaylistRecording } from './playlist-recording.ts';
import { until } from './poll.ts';
import { startServer, type TestServer } from './server.ts';

const X264 = ['-c:v', 'libx264', '-preset', 'ultrafast'];
const X265 = ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=error', '-tag:v', 'hvc1'];
const FILMS: readonly (FlashFilm & { readonly seconds: number })[] = [
  { colour: 'red', size: '320x180', fps: 25, sampleRate: 44_100, seconds: 7, encode: [...X264, '-g', '25', '-c:a', 'aac', '-ac', '1'] },
  {
    ...{ colour: 'green', size: '426x240', fps: 30, sampleRate: 48_000, seconds: 6 },
    encode: ['-c:v', 'libx264', '-preset', 'veryfast', '-g', '45', '-bf', '2', '-c:a', 'aac', '-ac', '2'],
  },
  { colour: 'blue', size: '256x144', fps: 30, sampleRate: 48_000, seconds: 6, encode: [...X265, '-g', '30', '-c:a', 'aac', '-ac', '2'] },
];
const CAMERA: FlashFilm = {
  ...{ colour: 'yellow', size: '480x270', fps: 30, sampleRate: 48_000 },
  encode: [...X264, '-tune', 'zerolatency', '-g', '30', '-c:a', 'aac', '-ac', '2'],
};
const CAMERA_SECONDS = 6;
/** Length of a round, from the first item to its repetition, seconds. */
export const ROUND_SECONDS = FILMS.reduce((sum, { seconds }) => sum + seconds, CAMERA_SECONDS);
/** Listed segments, a second each: a recorder may be this late on a busy machine. */
const SEGMENTS = 20;
/** At the beginning, players look for their position behind the live edge. */
const SETTLED_SECONDS = 3;
const SETTLE_DEADLINE_MS = 40_000;
/** On a busy machine boundaries are spoilt by other work: this many further rounds are watched then. */
const PATIENCE_ROUNDS = 2;
/** Limits of what viewers may notice at a boundary, ms. */
const MAX_GAP_MS = 100;
const MAX_OFFSET_MS = 40;
/** The grid of audio frames shifts by up to one frame of 21 ms from round to round. A larger shift would accumulate. */
const MAX_DRIFT_MS = 30;

const PROFILE = {
  name: 'made',
  outputStreamName: `\${OriginStreamName}`,
  encodes: {
    videos: [{ name: 'video', codec: 'h264', bitrate: 300_000, width: 320, height: 180, framerate: 30, keyFrameInterval: 30 }],
    // One audio has a configured sample rate, the other follows its source.
    audios: [
      { name: 'aac', codec: 'aac', bitrate: 96_000, samplerate: 48_000, channel: 2 },
      { name: 'opus', codec: 'opus', bitrate: 64_000 },
    ],
  },
  playlists: [{ name: 'made', fileName: 'made', renditions: [{ name: 'made', video: 'video', audio: 'aac' }] }],
};

/** Selects one of the two channels. */
export type ChannelKind = 'bypass' | 'made';

/** Its creator closes it. */
export class FlashChannel {
  readonly server: TestServer;
  readonly folder: string;
  readonly #camera: Child;

  private constructor(server: TestServer, folder: string, camera: Child) {
    this.server = server;
    this.folder = folder;
    this.#camera = camera;
  }

  static async start(): Promise<FlashChannel> {
    const folder = mkdtempSync(path.join(tmpdir(), 'millrace-flashes-'));
    const media = path.join(folder, 'media');
    mkdirSync(media);
    for (const film of FILMS) makeFlashFilm(path.join(media, `${film.colour}.mp4`), film.seconds, film);
    const scheduleFilesDir = (kind: ChannelKind): string => path.join(folder, kind);
    const folders = `<MediaRootDir>${media}</MediaRootDir><ScheduleFilesDir>${scheduleFilesDir('bypass')}</ScheduleFilesDir>`;
    const server = await startServer({
      ...{ segmentDuration: 1, segmentCount: SEGMENTS, hostNames: ['127.0.0.1'], webrtc: {} },
      providers: `<Schedule>${folders}</Schedule>`,
    });
    const camera = publishFlashFilm(server.rtmp('camera'), CAMERA);
    const channel = new FlashChannel(server, folder, camera);
    try {
      await channel.#makeSecond({ mediaRootDir: media, scheduleFilesDir: scheduleFilesDir('made') });
      const started = async (): Promise<boolean> => (await server.api.call('GET', apiPath.stream('camera'))).status === 200;
      await until('the camera to be there', started);
      return channel;
    } catch (error) {
      await channel.close();
      throw error;
    }
  }

  /** Puts the channel on air; it is playable when this resolves. */
  async play(kind: ChannelKind): Promise<void> {
    const items = [
      ...FILMS.map(({ colour }) => ({ url: `file://${colour}.mp4` })),
      { url: 'stream://default/app/camera', duration: CAMERA_SECONDS * 1000 },
    ];
    const body = { stream: { name: 'tv' }, programs: [{ name: 'round', scheduled: new Date().toISOString(), repeat: true, items }] };
    const app = kind === 'bypass' ? apiPath.app('default', 'app') : apiPath.app('second', 'made');
    await this.server.api.create(`${app}/scheduledChannels`, body);
    await until(`the channel '${kind}' to be playable`, async () => (await fetch(this.hls(kind))).status === 200, { deadlineMs: 30_000 });
  }

  hls(kind: ChannelKind): string {
    return kind === 'bypass' ? this.server.http('tv', 'llhls.m3u8') : this.server.http('tv', 'made.m3u8', 'made', 'localhost');
  }

  /** WebRTC URL of the encoded channel. */
  get socket(): string {
    return `ws://localhost:${this.server.ports.http}/made/tv`;
  }

  /** Starts recording video and audio. */
  async record(kind: ChannelKind): Promise<ChannelRecording> {
    const text = await (await fetch(this.hls(kind))).text();
    const audio = /URI="([^"]+)"/.exec(text)?.[1] ?? '';
    const video = text.split('\n').find((line) => line !== '' && !line.startsWith('#')) ?? '';
    const urlOf = (uri: string): string => new URL(uri, this.hls(kind)).href;
    const open = (uri: string): PlaylistRecording => new PlaylistRecording(urlOf(uri));
    const times = [new PartTimes(`video of ${kind}`, urlOf(video)), new PartTimes(`audio of ${kind}`, urlOf(audio))];
    return new ChannelRecording(open(video), open(audio), times, this.folder);
  }

  async close(): Promise<void> {
    await this.#camera.kill();
    await this.server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #makeSecond(schedule: object): Promise<void> {
    const { api } = this.server;
    await api.create('/v1/vhosts', [{ name: 'second', host: { names: ['localhost'] } }]);
    const llhls = { chunkDuration: 0.5, partHoldBack: 1.5, segmentDuration: 1, segmentCount: SEGMENTS, crossDomains: { urls: ['*'] } };
    const application = { name: 'made', type: 'live', providers: { schedule }, publishers: { llhls, webrtc: {} } };
    await api.create(`${apiPath.vhost('second')}/apps`, [{ ...application, outputProfiles: { outputProfile: [PROFILE] } }]);
  }
}

/** The segments of both tracks of a channel. */
export class ChannelRecording {
  readonly #video: PlaylistRecording;
  readonly #audio: PlaylistRecording;
  readonly #times: readonly PartTimes[];
  readonly #folder: string;

  constructor(video: PlaylistRecording, audio: PlaylistRecording, times: readonly PartTimes[], folder: string) {
    this.#video = video;
    this.#audio = audio;
    this.#times = times;
    this.#folder = folder;
  }

  /**
   * Stops recording. Decoding blocks the process, and with it the requests of other recordings, so all are stopped before the first is
   * judged.
   */
  async stop(): Promise<void> {
    await Promise.all([this.#video.stop(), this.#audio.stop(), this.facts()]);
  }

  /** Availability of parts, mainly around discontinuities, as text for debugging. */
  async facts(): Promise<string> {
    const lines = await Promise.all(this.#times.map((times) => times.stop()));
    return lines.flat().join('\n');
  }

  /** All faults of the recording, decoded separately for each map, and the number of such runs. */
  async problems(): Promise<{ readonly problems: string[]; readonly runs: number }> {
    const [video, audio] = await Promise.all([this.#video.stop(), this.#audio.stop()]);
    const decoded = video.map((run) => ({ number: run.number, ...decodeFrames(run, this.#folder) }));
    const heard = audio.map((run) => ({ number: run.number, ...decodeBeeps(run, this.#folder) }));
    const complaints = [...decoded, ...heard].filter(({ complaints: what }) => what !== '');
    const delays = [...this.#video.delays, ...this.#audio.delays];
    const problems = [...delays, ...complaints.map(({ number, complaints: what }) => `the run from segment ${number} on: ${what}`)];
    const [videoNumbers, audioNumbers] = [decoded, heard].map((runs) => runs.map(({ number }) => number).join(' '));
    if (videoNumbers !== audioNumbers) problems.push(`discontinuities of video at ${videoNumbers}, of audio at ${audioNumbers}`);
    const shown = decoded.flatMap((run) => run.frames.map(({ at }) => at));
    const gaps = shown.slice(1).map((at, index) => ({ at, ms: (at - (shown[index] ?? at)) * 1000 }));
    for (const { at, ms } of gaps) if (ms > MAX_GAP_MS || ms <= 0) problems.push(`${ms.toFixed(0)} ms between two frames at ${at} s`);
    const flashes = decoded.flatMap((run) => flashesOf(run.frames));
    const beeps = heard.flatMap((run) => run.beeps);
    // The last beep may be in a missing segment.
    for (const [index, offset] of offsetsOf(flashes.slice(0, -1), beeps).entries()) {
      if (!(Math.abs(offset) <= MAX_OFFSET_MS)) problems.push(`beep ${offset.toFixed(0)} ms behind the flash at ${flashes[index]} s`);
    }
    if (flashes.length < 10) problems.push(`${flashes.length} flashes`);
    return { problems, runs: video.length };
  }
}

/** Boundaries seen on one page, and their faults. */
export class BoundaryJudge {
  readonly #page: ChannelPage;

  constructor(page: ChannelPage) {
    this.#page = page;
  }

  /** Waits until it plays steadily; earlier observations are discarded. */
  async settle(): Promise<void> {
    const frames = SETTLED_SECONDS * 20;
    await until('the player to have settled', async () => (await this.#look()) >= frames, { deadlineMs: SETTLE_DEADLINE_MS });
    this.#page.watched.forget();
  }

  /**
   * Watches for `seconds`, and until each kind of boundary was shown while the machine was not busy. On a machine that stays busy for some
   * rounds, each kind must have been shown at least once.
   */
  async watch(seconds: number): Promise<void> {
    const begun = performance.now();
    const done = async (): Promise<boolean> => {
      await this.#look();
      const passed = (performance.now() - begun) / 1000;
      const isPatient = passed < seconds + PATIENCE_ROUNDS * ROUND_SECONDS;
      const counted = isPatient ? this.judged : this.#page.watched.boundaries;
      return passed >= seconds && new Set(counted.map(({ to }) => to)).size === FILMS.length + 1;
    };
    const deadlineMs = (seconds + (PATIENCE_ROUNDS + 2) * ROUND_SECONDS) * 1000;
    // A missing boundary is one of the reported problems, beside the observations so far.
    await until('every kind of boundary', done, { deadlineMs, everyMs: 500 }).catch(() => undefined);
  }

  get judged(): Boundary[] {
    return this.#page.watched.boundaries.filter(({ busy, offset }) => !busy && offset !== null);
  }

  /** `hears`: judges beeps, too. */
  problems({ hears }: { readonly hears: boolean }): string[] {
    const { watched } = this.#page;
    const told = (what: string, at: number): string => [what, ...watched.notesBefore(at)].join('\n    ');
    const problems = [
      ...watched.errors.map(({ at, what }) => told(what, at)),
      ...watched.stalls.map(({ at, what }) => told(`it ran dry ${what}`, at)),
    ];
    const seen = new Set(watched.boundaries.map(({ to }) => to));
    const unseen = [...FILMS, CAMERA].map(({ colour }) => colour).filter((colour) => !seen.has(colour));
    if (unseen.length > 0) problems.push(`nobody saw the boundary to ${unseen.join(', ')}`);
    for (const boundary of this.judged) {
      const { shownGap, mediaGap } = boundary;
      if (shownGap > MAX_GAP_MS) problems.push(`${nameOf(boundary)}: nothing new for ${shownGap.toFixed(0)} ms`);
      if (mediaGap > MAX_GAP_MS) problems.push(`${nameOf(boundary)}: ${mediaGap.toFixed(0)} ms of media are missing`);
    }
    if (!hears) return problems;
    for (const run of new Set(this.judged.map((boundary) => boundary.run))) problems.push(...offProblems(this.judged, run));
    return problems;
  }

  async #look(): Promise<number> {
    await this.#page.look();
    return this.#page.watched.frames;
  }
}

function nameOf({ from, to, between }: Boundary): string {
  return `${from} to ${to}, from the frame at ${between.map((time) => time.toFixed(3)).join(' to that at ')} s`;
}

/** Faults in the beeps of one run. Their delay after the flashes is unknown, but equal for all items of a run. */
function offProblems(judged: readonly Boundary[], run: number): string[] {
  const boundaries = judged.filter((boundary) => boundary.run === run);
  const offsets = boundaries.map(({ offset }) => offset ?? 0);
  const common = (Math.min(...offsets) + Math.max(...offsets)) / 2;
  return boundaries.flatMap((boundary, index) => {
    const problems: string[] = [];
    const off = (boundary.offset ?? 0) - common;
    if (Math.abs(off) > MAX_OFFSET_MS) problems.push(`${nameOf(boundary)}: beeps ${off.toFixed(0)} ms off`);
    const earlier = boundaries.slice(0, index).find(({ to }) => to === boundary.to);
    const drift = (boundary.offset ?? 0) - (earlier?.offset ?? boundary.offset ?? 0);
    if (Math.abs(drift) > MAX_DRIFT_MS)
      problems.push(`${nameOf(boundary)}: beeps ${drift.toFixed(0)} ms from where they were in a round before`);
    return problems;
  });
}
