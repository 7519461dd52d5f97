/** CPU per RTP packet that reaches a WebRTC viewer, by way of sending: addon, addon with plain sends, JavaScript. */
import { median } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import type { FanoutResult } from './lib/webrtc-orders.ts';
import { measureFanout, WebrtcTools } from './lib/webrtc-tools.ts';

interface Way {
  readonly name: string;
  readonly mode: 'segmented' | 'single';
  readonly env: NodeJS.ProcessEnv;
  /** Allowed microseconds per packet, by number of viewers. */
  readonly targets: ReadonlyMap<number, number>;
}

const SIZES = [20, 50, 100, 150, 200, 500];
const WAYS: readonly Way[] = [
  {
    name: 'addon',
    mode: 'segmented',
    env: {},
    targets: new Map([
      [50, 8],
      [150, 5.5],
      [200, 5],
      [500, 4],
    ]),
  },
  { name: 'addon, one send a packet', mode: 'single', env: {}, targets: new Map() },
  { name: 'JavaScript', mode: 'segmented', env: { MILLRACE_NATIVE: 'off' }, targets: new Map() },
];
/** A way that delivers less than this share of the packets to the worst viewer is overloaded: larger numbers are not tried. */
const CARRIED = 0.9;
const SETUP_TARGET_MS = 2;
const MEMORY_TARGET_KIB = 60;
/** Fewer viewers do not show the memory of one viewer. */
const MEMORY_VIEWERS = 200;
/** Packets per second of one viewer in the figure "viewers per core". */
const USUAL_RATE = 270;
/** Packets per second of this bench's stream: 30 frames of 9, and 50 of audio. */
const PACKET_RATE = 30 * 9 + 50;

async function measure(way: Way, viewers: number, seconds: number, { drain }: WebrtcTools): Promise<FanoutResult> {
  return await measureFanout({ sendMode: way.mode, viewers, seconds, drain, drainMode: 'clock' }, { env: way.env });
}

/** The share of sent packets that the worst viewer received. */
function share({ least, expected }: FanoutResult): number {
  return least / expected;
}

export async function run(options: BenchOptions): Promise<Report> {
  const tools = await WebrtcTools.compile();
  try {
    return await measureAll(options, tools);
  } finally {
    await tools.close();
  }
}

async function measureAll({ seconds, rounds }: BenchOptions, tools: WebrtcTools): Promise<Report> {
  const figures: Figure[] = [];
  const notes: string[] = [];
  for (const way of WAYS) {
    for (const viewers of SIZES) {
      const results: FanoutResult[] = [];
      for (let round = 0; round < rounds; round += 1) results.push(await measure(way, viewers, seconds, tools));
      const name = `${way.name}, ${viewers} viewers`;
      const perPacket = median(results.map((result) => result.perPacket));
      const worst = results.reduce((one, other) => (share(other) < share(one) ? other : one));
      const received = `${Math.round(worst.received)} of ${worst.expected} packets a viewer, ${worst.least} at the worst`;
      // An overloaded way does not even produce all packets in time.
      const isCarried = share(worst) >= CARRIED && results.every(({ expected }) => expected >= CARRIED * seconds * PACKET_RATE);
      const target = way.targets.get(viewers);
      const remark = isCarried ? received : `${received}: not carried`;
      figures.push({ name, value: perPacket, unit: 'µs/packet', ...(target !== undefined && { target }), remark });
      if (way.name === 'addon') {
        const setup = median(results.map((result) => result.setup));
        figures.push({ name: `connecting one of ${viewers}`, value: setup, unit: 'ms', target: SETUP_TARGET_MS });
        if (viewers >= MEMORY_VIEWERS) {
          const memory = median(results.map((result) => result.memory));
          figures.push({ name: `memory of one of ${viewers}`, value: memory, unit: 'KiB', target: MEMORY_TARGET_KIB });
        }
      }
      const perCore = Math.round(1_000_000 / perPacket / USUAL_RATE);
      const unwatched = median(results.map((result) => result.unwatched));
      notes.push(`${name}: sent by ${worst.kind}, ${perCore} viewers per core, ${unwatched.toFixed(1)} ms/s without viewers taken off`);
      if (!isCarried && viewers !== SIZES.at(-1)) {
        notes.push(`${way.name}: ${viewers} viewers are more than it carries here, so larger numbers were not tried`);
        break;
      }
    }
  }
  notes.push(
    'whole process, real ICE, DTLS and SRTP, retransmission agreed, loopback; 30 frames of 9 packets and 50 packets of audio a second',
  );
  return { bench: 'webrtc-fanout', figures, notes };
}
