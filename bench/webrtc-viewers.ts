/**
 * WebRTC viewers across a network: the cost of a packet against a bare sender, the number of viewers of 2.5 Mbit/s that receive everything,
 * their delay, and the effect of many simultaneous connections on other viewers.
 */
import { median } from './lib/measure.ts';
import { NetworkPair, type Segmentation } from './lib/network-pair.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import type { FanoutOrder, FanoutResult, SpanResult } from './lib/webrtc-orders.ts';
import { measureFanout, WebrtcTools } from './lib/webrtc-tools.ts';

/** 2.5 Mbit/s: 30 frames per second, with a keyframe every two seconds. */
const STREAM = { keyframe: 45, frame: 8, warmUp: 3, sendMode: 'segmented', drainMode: 'wait' } as const;
const FEW = 200;
const MANY = 1000;
/** Tried if a thousand viewers are too many. */
const FEWER = [700, 400];
const CROWD = { viewers: 800, perSecond: 100 };
/** `VIEWERS_PARTS=many,crowd` selects parts; all of them take some minutes. */
const PARTS = ['cost', 'cut', 'many', 'crowd'] as const;
const P99_TARGET_MS = 10;
const MEMORY_TARGET_KIB = 60;

/** Shared by all runs. */
class ViewersBench {
  readonly #pair: NetworkPair;
  readonly #tools: WebrtcTools;
  readonly #options: BenchOptions;
  readonly figures: Figure[] = [];
  readonly notes: string[] = [
    'server and viewers in two network namespaces joined by a veth pair, MTU 1500; real ICE, DTLS and SRTP; viewers at a lower priority (nice 10)',
  ];

  constructor(pair: NetworkPair, tools: WebrtcTools, options: BenchOptions) {
    this.#pair = pair;
    this.#tools = tools;
    this.#options = options;
  }

  async #measure(
    order: Pick<FanoutOrder, 'viewers'> & Partial<FanoutOrder>,
    segmentation: Segmentation = 'receiver',
  ): Promise<FanoutResult> {
    const [pair, { drain }] = [this.#pair, this.#tools];
    await pair.setSegmentation(segmentation);
    const places = { host: pair.host('server'), elsewhere: { prefix: pair.inside('viewers'), host: pair.host('viewers') } };
    const { seconds } = this.#options;
    return await measureFanout({ ...STREAM, seconds, drain, ...places, ...order }, { prefix: pair.inside('server') });
  }

  /** The cost of a packet with few viewers, beside bare senders. */
  async cost(): Promise<void> {
    const ways = ['gso', 'mmsg', 'sendto'] as const;
    const bare = { program: this.#tools.bareSender, ways };
    const results: FanoutResult[] = [];
    for (let round = 0; round < this.#options.rounds; round += 1) {
      results.push(await this.#measure({ viewers: FEW, bare, deafness: this.#pair.deafness }));
    }
    const middle = (figure: (result: FanoutResult) => number): number => median(results.map(figure));
    const server = middle(({ perPacket }) => perPacket);
    for (const way of ways) {
      const baseline = middle((result) => result.bare[way]?.perPacket ?? Number.NaN);
      this.figures.push({ name: `${FEW} viewers that wait, beside a bare ${way}`, value: server, unit: 'µs/packet', baseline });
    }
    const [value, baseline] = [middle(({ deaf }) => deaf?.server ?? Number.NaN), middle(({ deaf }) => deaf?.bare ?? Number.NaN)];
    this.figures.push({ name: 'the same, nobody receives, beside a bare gso', value, unit: 'µs/packet', baseline });
    const last = results.at(-1);
    if (last !== undefined) this.#tell(`${FEW} viewers`, last);
  }

  /** As `cost`, with a kernel that splits messages before the device. */
  async cut(): Promise<void> {
    const result = await this.#measure({ viewers: FEW, bare: { program: this.#tools.bareSender, ways: ['gso'] } }, 'sender');
    const baseline = result.bare.gso?.perPacket ?? Number.NaN;
    this.figures.push({
      name: `${FEW} viewers, cut by the sender, beside a bare gso`,
      value: result.perPacket,
      unit: 'µs/packet',
      baseline,
    });
    this.#tell(`${FEW} viewers, cut by the sender`, result);
  }

  /** A thousand viewers, or as many as receive everything. */
  async many(): Promise<void> {
    for (const viewers of [MANY, ...FEWER]) {
      const bare = { program: this.#tools.bareSender, ways: ['gso'] as const };
      const result = await this.#measure({ viewers, bare, whole: true });
      const missing = 100 * (1 - result.received / result.expected);
      this.figures.push({ name: `packets that ${viewers} viewers miss`, value: missing, unit: '%', target: 0, remark: received(result) });
      this.figures.push({
        name: `CPU at ${viewers} viewers`,
        value: result.perPacket,
        unit: 'µs/packet',
        baseline: result.bare.gso?.perPacket ?? 0,
      });
      this.figures.push({ name: `frame to last packet, ${viewers} viewers, median`, value: result.delay.median, unit: 'ms' });
      const { p99 } = result.delay;
      this.figures.push({
        name: `frame to last packet, ${viewers} viewers, p99`,
        value: p99,
        unit: 'ms',
        target: P99_TARGET_MS,
        remark: `a bare gso: ${result.bare.gso?.delay.p99.toFixed(1)}, median ${result.bare.gso?.delay.median.toFixed(1)}`,
      });
      this.figures.push({ name: `memory of one of ${viewers}`, value: result.memory, unit: 'KiB', target: MEMORY_TARGET_KIB });
      this.#tell(`${viewers} viewers that take what was sent as one message in one piece`, result);
      if (missing === 0 && p99 <= P99_TARGET_MS) return;
    }
  }

  /** Many viewers that connect at once. */
  async crowd(): Promise<void> {
    const result = await this.#measure({ viewers: FEW, whole: true, crowd: CROWD });
    const { crowd } = result;
    if (crowd === null) return;
    const name = `${CROWD.viewers} more in ${CROWD.viewers / CROWD.perSecond} s`;
    this.figures.push({ name: `${name}: not connected`, value: crowd.failed, unit: '', target: 0 });
    this.figures.push({ name: `${name}: request to connection, p99`, value: crowd.wait.p99, unit: 'ms' });
    this.figures.push({ name: `${name}: packets that the ${FEW} miss`, value: crowd.lost, unit: '', target: 0 });
    const [before, meanwhile] = [result.delay.p99, crowd.delay.p99];
    this.figures.push({
      name: `${name}: p99 of the frames of the ${FEW}`,
      value: meanwhile,
      unit: 'ms',
      remark: `${before.toFixed(1)} before`,
    });
  }

  #tell(name: string, result: FanoutResult): void {
    const { congested, droppedFrames, bare } = result;
    this.notes.push(`${name}: ${spanText(result)}, ${congested} datagrams refused by the socket, ${droppedFrames} frames given up`);
    for (const [way, span] of Object.entries(bare)) this.notes.push(`  a bare ${way}: ${spanText(span)}`);
  }
}

function received({ received: mean, expected, least }: SpanResult): string {
  return `${mean.toFixed(1)} of ${expected} packets a viewer, ${least} at the worst`;
}

function spanText(span: SpanResult): string {
  const share = Math.round(span.idle * 100);
  const misses = `${span.lost} missing by number, ${span.overflows} found a full socket`;
  return `${Math.round(span.rate)} Mbit/s, ${misses}, viewers ${span.perPacketViewers.toFixed(2)} µs/packet, machine ${share} % idle`;
}

export async function run(options: BenchOptions): Promise<Report> {
  const pair = await NetworkPair.open();
  if (typeof pair === 'string') return { bench: 'webrtc-viewers', figures: [], notes: [`skipped: ${pair}`] };
  try {
    const tools = await WebrtcTools.compile();
    try {
      const bench = new ViewersBench(pair, tools, options);
      const wanted = process.env['VIEWERS_PARTS']?.split(',') ?? PARTS;
      for (const part of PARTS) if (wanted.includes(part)) await bench[part]();
      return { bench: 'webrtc-viewers', figures: bench.figures, notes: bench.notes };
    } finally {
      await tools.close();
    }
  } finally {
    await pair.close();
  }
}
