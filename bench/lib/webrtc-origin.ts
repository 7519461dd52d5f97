/**
 * Child process of the WebRTC benches: one stream of 30 video frames and 50 audio packets per second, sent to viewers in another process.
 * Its argument is a `FanoutOrder` as JSON; it prints one line of JSON, a `FanoutResult`.
 */
import { execFile, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Packet } from '../../src/media/packet.ts';
import type { AudioTrack, VideoTrack } from '../../src/media/track.ts';
import type { PlaySession } from '../../src/services/webrtc/play/play-session.ts';
import { WebrtcPublisher } from '../../src/services/webrtc/play/webrtc-publisher.ts';
import { PeerTransport } from '../../src/services/webrtc/transport/peer-transport.ts';
import { systemClock } from '../../src/util/clock.ts';
import { FakeStream } from '../../test/fakes/fake-stream.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { until } from '../../test/harness/poll.ts';
import { median, percentile } from './measure.ts';
import {
  type BareWay,
  type CrowdResult,
  DECRYPTING,
  type Delay,
  type FanoutOrder,
  type FanoutResult,
  type LoadAnswer,
  type LoadOrder,
  type LoadReport,
  type SpanResult,
} from './webrtc-orders.ts';

const LOOPBACK = '127.0.0.1';
const FRAME_MS = 1000 / 30;
/** Ticks of the RTP clock per frame. */
const FRAME_TICKS = 3000;
const USUAL_PACKETS = 9;
/** Bytes of a frame per packet, and the resulting sizes of video and audio packets with RTP header and tag. */
const PACKET_BYTES = 1150;
const VIDEO_DATAGRAM = 1188;
const AUDIO_DATAGRAM = 196;
const GOP = 60;
const AUDIO_MS = 20;
const AUDIO_BYTES = 160;
const WARM_UP_VIEWERS = 10;
/** Time to fill the history of a source: 1500 packets at 270 packets per second. */
const HISTORY_SECONDS = 6;
const UNWATCHED_SECONDS = 4;
/** Viewers connecting at once. */
const MAX_AT_ONCE = 25;
const CONNECT = { deadlineMs: 60_000, everyMs: 50 };
const SENDERS = 2;
/** Wait for connections after the last request, s. */
const CROWD_PATIENCE_SECONDS = 4;
const RULES = {
  timeout: 30_000,
  rtx: true,
  bandwidthEstimation: 'REMB',
  ulpfec: false,
  jitterBuffer: false,
  createDefaultPlaylist: true,
} as const;

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

function frameOf(keyframe: boolean, packets: number): Buffer {
  const unit = Buffer.alloc(packets * PACKET_BYTES, 7);
  unit.writeUInt32BE(unit.length - 4);
  unit[4] = keyframe ? 0x65 : 0x41;
  return unit;
}

/** Content of a span of media, and its cost. */
interface Span {
  readonly cpuMs: number;
  readonly seconds: number;
  /** Packets for each viewer. */
  readonly expected: number;
}

/** The server, its stream and its viewers. */
class Origin {
  readonly #order: FanoutOrder;
  readonly #transport: PeerTransport;
  readonly #publisher: WebrtcPublisher;
  readonly #source = new FakeStream();
  readonly #stream: ReturnType<WebrtcPublisher['attach']>;
  readonly #load: ReturnType<typeof fork>;
  readonly #sessions: PlaySession[] = [];
  readonly #key: Buffer;
  readonly #delta: Buffer;
  readonly #audio = Buffer.alloc(AUDIO_BYTES, 1);
  #frames = 0;
  #audioPackets = 0;
  /** Times at which frames were passed to the server, ms of the monotonic clock, by RTP timestamp. */
  readonly #handedOver = new Map<number, number>();
  #ports: readonly number[] | null = null;
  #report: LoadReport | null = null;

  constructor(order: FanoutOrder, transport: PeerTransport, logger: RecordingLogger) {
    this.#order = order;
    this.#transport = transport;
    this.#key = frameOf(true, order.keyframe ?? USUAL_PACKETS);
    this.#delta = frameOf(false, order.frame ?? USUAL_PACKETS);
    this.#publisher = new WebrtcPublisher({ transport, clock: systemClock, logger });
    this.#source.tracks = [VIDEO, AUDIO];
    const playlist = this.#publisher.defaultPlaylist(this.#source.tracks, RULES);
    this.#source.playlists = playlist === null ? [] : [playlist];
    this.#stream = this.#publisher.attach(this.#source, RULES);
    this.#stream.onTracks(this.#source.tracks);
    const [program = process.execPath, ...before] = [...(order.elsewhere?.prefix ?? []), process.execPath];
    const env = { ...process.env, MILLRACE_NATIVE: '' };
    this.#load = fork(fileURLToPath(new URL('./webrtc-load.ts', import.meta.url)), { env, execPath: program, execArgv: before });
    this.#load.once('exit', (code) => {
      throw new Error(`the load client ended with ${code}`);
    });
    this.#load.on('message', (answer: LoadAnswer) => {
      if (answer.type === 'answer') this.#sessions[answer.viewer]?.answered(answer.description);
      else if (answer.type === 'draining') this.#ports = answer.ports;
      else this.#report = answer;
    });
  }

  /** Sends media in real time for `seconds`. */
  async flow(seconds: number): Promise<Span> {
    const { keyframe = USUAL_PACKETS, frame = USUAL_PACKETS } = this.#order;
    const before = process.cpuUsage();
    const start = performance.now();
    const [firstFrame, firstAudio] = [this.#frames, this.#audioPackets];
    let expected = 0;
    for (let elapsed = 0; elapsed < seconds * 1000; elapsed = performance.now() - start) {
      for (; (this.#frames - firstFrame) * FRAME_MS <= elapsed; this.#frames += 1) {
        const isKey = (this.#frames - firstFrame) % GOP === 0;
        expected += isKey ? keyframe : frame;
        this.#handedOver.set(this.#frames * FRAME_TICKS, Number(process.hrtime.bigint()) / 1e6);
        this.#push({
          track: VIDEO,
          pts: this.#frames * FRAME_TICKS,
          duration: FRAME_TICKS,
          keyframe: isKey,
          data: isKey ? this.#key : this.#delta,
        });
      }
      for (; (this.#audioPackets - firstAudio) * AUDIO_MS <= elapsed; this.#audioPackets += 1) {
        expected += 1;
        this.#push({ track: AUDIO, pts: this.#audioPackets * 960, duration: 960, keyframe: true, data: this.#audio });
      }
      await delay(2);
    }
    return { cpuMs: cpuMs(before), seconds: (performance.now() - start) / 1000, expected };
  }

  #push(packet: Omit<Packet, 'dts'>): void {
    this.#stream.onPacket({ ...packet, dts: packet.pts });
  }

  get viewers(): number {
    return this.#source.viewers;
  }

  watch(): void {
    const viewer = this.#sessions.length;
    const session = this.#publisher.openSession(
      { vhost: 'default', app: 'app', stream: 'stream', playlist: '' },
      { client: '', onEnded: () => undefined },
    );
    this.#sessions.push(session);
    this.#load.send({ type: 'watch', viewer, offer: session.offer(), candidates: session.candidates() } satisfies LoadOrder);
  }

  async connectUpTo(count: number): Promise<void> {
    while (this.#sessions.length < count) {
      const next = Math.min(count, this.#sessions.length + MAX_AT_ONCE);
      while (this.#sessions.length < next) this.watch();
      await until(`${next} viewers are connected`, () => this.viewers === next, CONNECT);
    }
  }

  /** Packets of viewers since the previous report, including those in transit. */
  async reported(): Promise<LoadReport> {
    await delay(500);
    this.#report = null;
    this.#load.send({ type: 'report' } satisfies LoadOrder);
    return await until('the report', () => this.#report, CONNECT);
  }

  /** From now on a small program empties the sockets. */
  async drain(): Promise<void> {
    const { drain: program, drainMode: mode, whole = false } = this.#order;
    this.#load.send({ type: 'drain', program, mode, whole } satisfies LoadOrder);
    await until('the load client empties its sockets', () => this.#ports !== null, CONNECT);
  }

  /** Sends to the drained viewers with the bare sender; `reported` includes packets in transit. */
  async bareFlow(way: BareWay, forSeconds: number): Promise<Span & { readonly viewers: number; readonly startMs: number }> {
    const { keyframe = USUAL_PACKETS, frame = USUAL_PACKETS, bare, elsewhere } = this.#order;
    const sizes = [VIDEO_DATAGRAM, AUDIO_DATAGRAM, frame, keyframe].map(String);
    const ports = this.#ports ?? [];
    const start = performance.now();
    const output = await new Promise<string>((resolve, reject) => {
      const child = execFile(bare?.program ?? '', [way, String(SENDERS), String(forSeconds), ...sizes], (error, stdout) => {
        if (error === null) resolve(stdout);
        else reject(error);
      });
      child.stdin?.end(ports.map((port) => `${elsewhere?.host ?? LOOPBACK} ${port}\n`).join(''));
    });
    const result = JSON.parse(output) as { sent: number; refused: number; cpuMs: number; startNs: number };
    const expected = (result.sent + result.refused) / ports.length;
    const seconds = (performance.now() - start) / 1000;
    return { cpuMs: result.cpuMs, seconds, expected, viewers: ports.length, startMs: result.startNs / 1e6 };
  }

  /** Delays from frames to their last packets. */
  delayOf({ arrivals }: LoadReport): Delay {
    const delays = arrivals.flatMap(([timestamp, at]) => {
      const handedOver = this.#handedOver.get(timestamp);
      return handedOver === undefined ? [] : [at / 1e6 - handedOver];
    });
    return delayAmong(delays);
  }

  /** Delays of the bare sender, whose first frame was due at `startMs`. */
  bareDelayOf({ arrivals }: LoadReport, startMs: number): Delay {
    return delayAmong(arrivals.map(([timestamp, at]) => at / 1e6 - startMs - (timestamp / FRAME_TICKS) * FRAME_MS));
  }

  get counters(): ReturnType<PeerTransport['fanout']['counters']> {
    return this.#transport.fanout.counters();
  }

  close(): void {
    this.#load.removeAllListeners('exit').kill();
  }
}

async function main(order: FanoutOrder): Promise<FanoutResult> {
  const { viewers, seconds, host = LOOPBACK, sendMode } = order;
  const ports = [{ host, port: 0, addresses: [host] }];
  const logger = new RecordingLogger();
  const shares = { waiting: 0, play: 0, publish: 0 };
  const transport = await PeerTransport.open({ ports, tcp: false, threads: SENDERS, shares, sendMode, clock: systemClock, logger });
  const origin = new Origin(order, transport, logger);
  // Code is compiled in its first runs.
  await origin.flow(order.warmUp ?? UNWATCHED_SECONDS);
  const nobody = await origin.flow(order.warmUp ?? UNWATCHED_SECONDS);
  const unwatched = nobody.cpuMs / nobody.seconds;

  // The first viewers load code and fill pools.
  const few = Math.min(WARM_UP_VIEWERS, viewers / 2);
  await origin.connectUpTo(few);
  await origin.flow(order.warmUp ?? HISTORY_SECONDS);
  const [memory, idle] = [residentKiB(), process.cpuUsage()];
  await origin.connectUpTo(viewers);
  const setup = cpuMs(idle) / (viewers - few);

  await origin.drain();
  const meter = new ReceptionMeter(origin, order);
  await meter.begin();
  const from = origin.counters;
  const media = await meter.measure(0, () => origin.flow(seconds));
  const memoryEach = (residentKiB() - memory) / (viewers - few);
  const to = origin.counters;
  const delay = origin.delayOf(media.report);
  const [server, crowd] = [
    order.deafness === undefined ? null : await deafly(order.deafness, () => origin.flow(seconds)),
    order.crowd === undefined ? null : await connectCrowd(origin, order.crowd),
  ];
  const bare: Partial<Record<BareWay, SpanResult & { delay: Delay }>> = {};
  for (const way of order.bare?.ways ?? []) {
    const { span, report, result } = await meter.measure(DECRYPTING, () => origin.bareFlow(way, seconds));
    bare[way] = { ...result, perPacket: (span.cpuMs * 1000) / result.total, delay: origin.bareDelayOf(report, span.startMs) };
  }
  const alone =
    order.deafness === undefined || order.bare === undefined ? null : await deafly(order.deafness, () => origin.bareFlow('gso', seconds));
  origin.close();
  return {
    ...media.result,
    kind: transport.fanout.kind,
    perPacket: ((media.span.cpuMs - unwatched * media.span.seconds) * 1000) / media.result.total,
    unwatched,
    setup,
    memory: memoryEach,
    delay,
    congested: to.congested - from.congested,
    droppedFrames: to.droppedFrames - from.droppedFrames,
    bare,
    deaf:
      server === null || alone === null
        ? null
        : {
            server: ((server.cpuMs - unwatched * server.seconds) * 1000) / (server.expected * viewers),
            bare: (alone.cpuMs * 1000) / (alone.expected * alone.viewers),
          },
    crowd,
  };
}

/** Runs `work` while packets are not received. */
async function deafly<T>({ begin, end }: NonNullable<FanoutOrder['deafness']>, work: () => Promise<T>): Promise<T> {
  const run = async ([program = '', ...args]: readonly string[]): Promise<unknown> => promisify(execFile)(program, args);
  await run(begin);
  try {
    return await work();
  } finally {
    await run(end);
  }
}

/** Measures received packets, one span at a time. */
class ReceptionMeter {
  readonly #origin: Origin;
  readonly #meanBytes: number;
  #earlier: LoadReport | null = null;

  constructor(origin: Origin, { keyframe = USUAL_PACKETS, frame = USUAL_PACKETS }: FanoutOrder) {
    this.#origin = origin;
    const video = (keyframe + (GOP - 1) * frame) / (GOP * FRAME_MS);
    this.#meanBytes = (video * VIDEO_DATAGRAM + AUDIO_DATAGRAM / AUDIO_MS) / (video + 1 / AUDIO_MS);
  }

  /** Excludes the packets so far from the next span. */
  async begin(): Promise<void> {
    this.#earlier = await this.#origin.reported();
  }

  /** Packets received during `work` by viewers from number `first` on. */
  async measure<T extends Span>(
    first: number,
    work: () => Promise<T>,
  ): Promise<{ readonly span: T; readonly report: LoadReport; readonly result: Omit<SpanResult, 'perPacket'> }> {
    const machine = machineTimes();
    const span = await work();
    const now = machineTimes();
    const report = await this.#origin.reported();
    const packets = report.packets.slice(first);
    const total = packets.reduce((sum, count) => sum + count, 0);
    const result = {
      total,
      perPacketViewers: ((report.cpuMs - (this.#earlier?.cpuMs ?? 0)) * 1000) / total,
      expected: span.expected,
      received: total / packets.length,
      least: Math.min(...packets),
      lost: report.lost,
      overflows: report.overflows - (this.#earlier?.overflows ?? 0),
      rate: (total * this.#meanBytes * 8) / span.seconds / 1e6,
      idle: (now.idle - machine.idle) / (now.total - machine.total),
    };
    this.#earlier = report;
    return { span, report, result };
  }
}

/** Connects viewers while others watch. Their order of arrival is taken as the order of their requests. */
async function connectCrowd(
  origin: Origin,
  { viewers, perSecond }: { readonly viewers: number; readonly perSecond: number },
): Promise<CrowdResult> {
  const [before, start] = [origin.viewers, performance.now()];
  const requests: number[] = [];
  const waits: number[] = [];
  let isOver = false;
  let last = 0;
  const flowing = origin.flow(viewers / perSecond + CROWD_PATIENCE_SECONDS).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const now = performance.now() - start;
    for (; requests.length < Math.min(viewers, (now * perSecond) / 1000); requests.push(now)) origin.watch();
    for (; waits.length < origin.viewers - before; waits.push(now - (requests[waits.length] ?? 0))) last = now;
    await delay(2);
  }
  await flowing;
  const report = await origin.reported();
  const seen = origin.delayOf(report);
  return {
    connected: waits.length,
    failed: viewers - waits.length,
    seconds: last / 1000,
    wait: delayAmong(waits),
    lost: report.lost,
    delay: seen,
  };
}

function delayAmong(values: readonly number[]): Delay {
  return { median: median(values), p99: percentile(values, 99) };
}

/** CPU time of the machine, in ticks. */
function machineTimes(): { readonly idle: number; readonly total: number } {
  const [, ...ticks] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').trim().split(/\s+/).map(Number);
  const [, , , idle = 0, waiting = 0] = ticks;
  // The time of guests is included in that of users.
  return { idle: idle + waiting, total: ticks.slice(0, 8).reduce((sum, count) => sum + count, 0) };
}

/** Resident memory after a garbage collection, if node allows it. */
function residentKiB(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss() / 1024;
}

function cpuMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(JSON.stringify(await main(JSON.parse(process.argv[2] ?? '') as FanoutOrder)));
  process.exit(0);
}
