/**
 * Child process of `webrtc-fanout`: one stream of 30 frames (9 packets each) and 50 packets of audio a second, sent to
 * viewers in another process. Arguments: way of sending, viewers, seconds, path of
 * the program that counts at the viewers. Prints one line of JSON.
 */
import { fork } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Packet } from '../../src/media/packet.ts';
import type { AudioTrack, VideoTrack } from '../../src/media/track.ts';
import type { PlaySession } from '../../src/services/webrtc/play/play-session.ts';
import { WebrtcPublisher } from '../../src/services/webrtc/play/webrtc-publisher.ts';
import type { SendMode } from '../../src/services/webrtc/transport/fanout/native-fanout.ts';
import { PeerTransport } from '../../src/services/webrtc/transport/peer-transport.ts';
import { systemClock } from '../../src/util/clock.ts';
import { FakeStream } from '../../test/fakes/fake-stream.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { until } from '../../test/harness/poll.ts';

export type LoadOrder =
  | { readonly type: 'watch'; readonly viewer: number; readonly offer: string; readonly candidates: readonly string[] }
  /** Path of the program that empties the sockets from now on. */
  | { readonly type: 'drain'; readonly program: string }
  | { readonly type: 'report' };
export type LoadAnswer =
  | { readonly type: 'answer'; readonly viewer: number; readonly description: string }
  | { readonly type: 'draining' }
  /** Packets that each viewer has received. */
  | { readonly type: 'received'; readonly packets: readonly number[] };

/** What the child prints. */
export interface FanoutResult {
  readonly kind: string;
  /** CPU of the whole process less what it uses without viewers, microseconds for each packet that arrived. */
  readonly perPacket: number;
  /** CPU of the process while media flows and nobody watches, milliseconds a second. */
  readonly unwatched: number;
  /** CPU milliseconds to connect a viewer. */
  readonly setup: number;
  /** Resident memory that a viewer adds while media flows, KiB; the history of packets, which all share, is full before and after. */
  readonly memory: number;
  /** Media packets of the stream, what viewers received on average, and what the one that got least did. */
  readonly expected: number;
  readonly received: number;
  readonly least: number;
}

const PICTURE_MS = 1000 / 30;
const PICTURE_BYTES = 9 * 1150;
const GOP = 60;
const SOUND_MS = 20;
const SOUND_BYTES = 160;
const PACKETS_OF_A_PICTURE = 9;
const WARM_UP_VIEWERS = 10;
/** The history of a source holds 1500 packets, of which 270 come in a second. */
const HISTORY_SECONDS = 6;
const UNWATCHED_SECONDS = 4;
/** Viewers that connect at one time. */
const AT_ONCE = 25;
const CONNECT = { deadlineMs: 60_000, everyMs: 50 };

const COMMON = { publicName: '', language: '', characteristics: '', bypass: true, config: null, bitrateConf: 0 };
const VIDEO: VideoTrack = {
  ...COMMON,
  id: 1,
  type: 'video',
  codec: 'H264',
  variantName: 'video',
  timebase: { num: 1, den: 90_000 },
  width: 1280,
  height: 720,
  framerateConf: 30,
  codecString: 'avc1.42c01e',
};
const AUDIO: AudioTrack = {
  ...COMMON,
  id: 2,
  type: 'audio',
  codec: 'OPUS',
  variantName: 'audio',
  timebase: { num: 1, den: 48_000 },
  sampleRate: 48_000,
  channels: 2,
  codecString: 'opus',
};

function picture(keyframe: boolean): Buffer {
  const unit = Buffer.alloc(PICTURE_BYTES, 7);
  unit.writeUInt32BE(PICTURE_BYTES - 4);
  unit[4] = keyframe ? 0x65 : 0x41;
  return unit;
}

async function main(sendMode: SendMode, viewers: number, seconds: number, drain: string): Promise<FanoutResult> {
  const ports = [{ host: '127.0.0.1', port: 0, addresses: ['127.0.0.1'] }];
  const logger = new RecordingLogger();
  const transport = await PeerTransport.open({ ports, tcp: false, threads: 2, sendMode, clock: systemClock, logger });
  const publisher = new WebrtcPublisher({ transport, clock: systemClock, logger });
  const source = new FakeStream();
  source.tracks = [VIDEO, AUDIO];
  const rules = {
    timeout: 30_000,
    rtx: true,
    bandwidthEstimation: 'REMB',
    ulpfec: false,
    jitterBuffer: false,
    createDefaultPlaylist: true,
  } as const;
  const playlist = publisher.defaultPlaylist(source.tracks, rules);
  source.playlists = playlist === null ? [] : [playlist];
  const stream = publisher.attach(source, rules);
  stream.onTracks(source.tracks);

  const load = fork(fileURLToPath(new URL('./webrtc-load.ts', import.meta.url)), { env: { ...process.env, MILLRACE_NATIVE: '' } });
  load.once('exit', (code) => {
    throw new Error(`the load client ended with ${code}`);
  });
  const sessions: PlaySession[] = [];
  let draining = false;
  let report: Extract<LoadAnswer, { type: 'received' }> | null = null;
  load.on('message', (answer: LoadAnswer) => {
    if (answer.type === 'answer') sessions[answer.viewer]?.answered(answer.description);
    else if (answer.type === 'draining') draining = true;
    else report = answer;
  });
  // The first viewers load code and fill pools.
  const watch = (viewer: number): void => {
    const session = publisher.openSession(
      { vhost: 'default', app: 'app', stream: 'stream', playlist: '' },
      { client: '', onEnded: () => undefined },
    );
    sessions.push(session);
    load.send({ type: 'watch', viewer, offer: session.offer(), candidates: session.candidates() } satisfies LoadOrder);
  };
  const connectUpTo = async (count: number): Promise<void> => {
    while (sessions.length < count) {
      const next = Math.min(count, sessions.length + AT_ONCE);
      while (sessions.length < next) watch(sessions.length);
      await until(`${next} viewers are connected`, () => source.viewers === next, CONNECT);
    }
  };
  const key = picture(true);
  const delta = picture(false);
  const sound = Buffer.alloc(SOUND_BYTES, 1);
  const push = (packet: Omit<Packet, 'dts'>): void => stream.onPacket({ ...packet, dts: packet.pts });
  let pictures = 0;
  let sounds = 0;
  /** Pushes media in real time; resolves with the packets it makes for each viewer. */
  const flow = async (span: number): Promise<number> => {
    const start = performance.now();
    const [fromPicture, fromSound] = [pictures, sounds];
    while (performance.now() - start < span * 1000) {
      const elapsed = performance.now() - start;
      for (; (pictures - fromPicture) * PICTURE_MS <= elapsed; pictures += 1) {
        const keyframe = (pictures - fromPicture) % GOP === 0;
        push({ track: VIDEO, pts: pictures * 3000, duration: 3000, keyframe, data: keyframe ? key : delta });
      }
      for (; (sounds - fromSound) * SOUND_MS <= elapsed; sounds += 1) {
        push({ track: AUDIO, pts: sounds * 960, duration: 960, keyframe: true, data: sound });
      }
      await delay(2);
    }
    return (pictures - fromPicture) * PACKETS_OF_A_PICTURE + sounds - fromSound;
  };
  const reported = async (): Promise<Extract<LoadAnswer, { type: 'received' }>> => {
    // What is on its way arrives.
    await delay(500);
    report = null;
    load.send({ type: 'report' } satisfies LoadOrder);
    return await until('the report', () => report, CONNECT);
  };

  // Code that is run for the first time is compiled while it runs.
  await flow(UNWATCHED_SECONDS);
  const nobody = process.cpuUsage();
  await flow(UNWATCHED_SECONDS);
  const unwatched = cpuMs(nobody) / UNWATCHED_SECONDS;

  await connectUpTo(Math.min(WARM_UP_VIEWERS, viewers / 2));
  await flow(HISTORY_SECONDS);
  const [few, memory, idle] = [sessions.length, residentKiB(), process.cpuUsage()];
  await connectUpTo(viewers);
  const setup = cpuMs(idle) / (viewers - few);

  const earlier = await reported();
  load.send({ type: 'drain', program: drain } satisfies LoadOrder);
  await until('the load client empties its sockets', () => draining, CONNECT);
  const before = process.cpuUsage();
  const startedAt = performance.now();
  const expected = await flow(seconds);
  const cpu = cpuMs(before) - (unwatched * (performance.now() - startedAt)) / 1000;
  const memoryEach = (residentKiB() - memory) / (viewers - few);
  const { packets } = await reported();
  load.removeAllListeners('exit').kill();
  const received = packets.map((count, viewer) => count - (earlier.packets[viewer] ?? 0));
  const total = received.reduce((sum, count) => sum + count, 0);
  return {
    kind: transport.fanout.kind,
    perPacket: (cpu * 1000) / total,
    unwatched,
    setup,
    memory: memoryEach,
    expected,
    received: total / viewers,
    least: Math.min(...received),
  };
}

/** After a collection, when node was told to allow one. */
function residentKiB(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss() / 1024;
}

function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [mode = 'segmented', viewers = '50', seconds = '5', drain = ''] = process.argv.slice(2);
  console.log(JSON.stringify(await main(mode as SendMode, Number(viewers), Number(seconds), drain)));
  process.exit(0);
}
