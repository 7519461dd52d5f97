import { expect, test } from 'vitest';
import { BandwidthEstimator } from './bandwidth-estimator.ts';

const PACKET = 1200;
const FEEDBACK_US = 100_000;

interface Path {
  /** Bits per second. */
  readonly capacity: number;
  /** The longest a packet waits, µs; beyond, it is lost. */
  readonly queue?: number;
  /** Lost regardless of the queue: every n-th packet. */
  readonly everyLost?: number;
}

/** Video at 30 frames a second with a keyframe of ten frames' size each second, through a queue, and the viewer's reports. */
class Simulation {
  readonly estimator = new BandwidthEstimator();
  readonly estimates: number[] = [];
  /** The initial values of both clocks. */
  readonly #sentFrom: number;
  readonly #arrivedFrom: number;
  #sequence: number;
  #now = 0;
  #free = 0;
  #frame = 0;

  constructor({ sentFrom = 0, arrivedFrom = 0, sequence = 0 } = {}) {
    this.#sentFrom = sentFrom;
    this.#arrivedFrom = arrivedFrom;
    this.#sequence = sequence;
  }

  run(seconds: number, rate: number, path: Path, demand = rate): number | undefined {
    this.estimates.length = 0;
    const until = this.#now + seconds * 1e6;
    let first = this.#sequence;
    let packets: { sent: number; arrival: number }[] = [];
    let told = this.#now;
    while (this.#now < until) {
      for (let n = this.#packetsOfFrame(rate); n > 0; n -= 1) {
        packets.push({ sent: this.#now, arrival: this.#carry(path) });
        this.#sequence = (this.#sequence + 1) & 0xffff;
      }
      this.#now += 1e6 / 30;
      this.#frame += 1;
      if (this.#now - told < FEEDBACK_US) continue;
      this.#report(first, packets, demand);
      packets = [];
      first = this.#sequence;
      told = this.#now;
    }
    return this.estimates.at(-1);
  }

  #packetsOfFrame(rate: number): number {
    const share = this.#frame % 30 === 0 ? 10 / 39 : 1 / 39;
    return Math.max(1, Math.round((rate * share) / (8 * PACKET)));
  }

  #carry({ capacity, queue = Number.POSITIVE_INFINITY, everyLost = 0 }: Path): number {
    if (everyLost > 0 && this.#sequence % everyLost === 0) return Number.NaN;
    const start = Math.max(this.#now, this.#free);
    if (start - this.#now > queue) return Number.NaN;
    this.#free = start + (PACKET * 8 * 1e6) / capacity;
    return this.#free + 20_000;
  }

  #report(first: number, packets: readonly { sent: number; arrival: number }[], demand: number): void {
    const sends = new Uint32Array(packets.flatMap(({ sent }) => [Math.round(this.#sentFrom + sent) >>> 0, PACKET]));
    const wrap = 2 ** 24 * 64_000;
    const arrivals = Float64Array.from(packets, ({ arrival }) => (this.#arrivedFrom + arrival) % wrap);
    const estimate = this.estimator.report({ first, arrivals }, sends, demand);
    if (estimate !== null) this.estimates.push(estimate);
  }
}

test('a wide path is estimated at 1.5 times the sent rate, unaffected by bursts of keyframes', () => {
  const simulation = new Simulation();
  simulation.run(20, 1_500_000, { capacity: 2_000_000 });
  expect(simulation.estimates.length).toBeGreaterThan(15);
  for (const estimate of simulation.estimates) {
    expect(estimate).toBeGreaterThanOrEqual(1_500_000 * 1.5);
    expect(estimate).toBeLessThan(1_500_000 * 2.2);
  }
});

test('a low bitrate of simple content does not lower the estimate', () => {
  const simulation = new Simulation();
  expect(simulation.run(5, 400_000, { capacity: 10_000_000 }, 2_000_000)).toBe(3_000_000);
});

test.each([Number.POSITIVE_INFINITY, 300_000])('a narrow path is estimated by the rate of arrivals, with a queue of %d µs', (queue) => {
  const simulation = new Simulation();
  simulation.run(5, 2_000_000, { capacity: 10_000_000 });
  const estimate = simulation.run(4, 2_000_000, { capacity: 1_000_000, queue });
  expect(estimate).toBeGreaterThan(850_000);
  expect(estimate).toBeLessThan(1_100_000);
});

test('the estimate does not grow while a queue drains, and grows afterwards', () => {
  const simulation = new Simulation();
  simulation.run(3, 2_000_000, { capacity: 10_000_000 });
  simulation.run(4, 2_000_000, { capacity: 1_000_000 });
  simulation.run(2, 500_000, { capacity: 1_000_000 });
  for (const estimate of simulation.estimates) expect(estimate).toBeLessThan(1_100_000);
  simulation.run(8, 500_000, { capacity: 1_000_000 });
  expect(simulation.estimates.at(-1)).toBeGreaterThanOrEqual(750_000);
  expect(simulation.run(4, 500_000, { capacity: 5_000_000 })).toBeGreaterThanOrEqual(750_000);
});

test('losses by chance count when they are many', () => {
  const few = new Simulation().run(5, 1_000_000, { capacity: 10_000_000, everyLost: 20 });
  expect(few).toBeGreaterThanOrEqual(1_500_000);
  const many = new Simulation().run(5, 1_000_000, { capacity: 10_000_000, everyLost: 4 });
  expect(many).toBeGreaterThan(800_000);
  expect(many).toBeLessThan(950_000);
});

test('wraps of clocks and sequence numbers do not change the estimates', () => {
  const plain = new Simulation();
  const wrapping = new Simulation({ sentFrom: 2 ** 32 - 3e6, arrivedFrom: 2 ** 24 * 64_000 - 2e6, sequence: 65_000 });
  for (const simulation of [plain, wrapping]) simulation.run(10, 1_500_000, { capacity: 1_000_000 });
  expect(wrapping.estimates.map(Math.round)).toEqual(plain.estimates.map(Math.round));
});

test("a jump of the receiver's clock restarts the estimate", () => {
  const estimator = new BandwidthEstimator();
  const tell = (first: number, at: number): number | null => {
    const arrivals = Float64Array.from({ length: 20 }, (_unused, n) => at + n * 60_000);
    const sends = new Uint32Array(40).map((_unused, n) => (n % 2 === 1 ? PACKET : (n / 2) * 60_000 + first * 60_000));
    return estimator.report({ first, arrivals }, sends, 100_000);
  };
  expect(tell(0, 1e6)).not.toBeNull();
  expect(tell(20, 900e6)).not.toBeNull();
  expect(estimator.estimate).toBeGreaterThanOrEqual(150_000);
});

test('late packets do not count as lost, and unknown packets are ignored', () => {
  const estimator = new BandwidthEstimator();
  const times = (n: number): number => 1e6 + n * 10_000;
  let last: number | null = null;
  for (let round = 0; round < 30; round += 1) {
    const first = round * 10;
    const sends = new Uint32Array(40).map((_unused, n) => (n % 2 === 1 ? PACKET : times(first - 10 + n / 2)));
    // Each packet is reported twice: as missing, and in the next report as received.
    const arrivals = Float64Array.from({ length: 20 }, (_unused, n) => (n < 10 ? times(first - 10 + n) + 50_000 : Number.NaN));
    if (round === 0) sends.fill(0, 0, 20);
    last = estimator.report({ first: (first - 10) & 0xffff, arrivals }, sends, 100_000) ?? last;
  }
  expect(last).toBeCloseTo(1.5 * (PACKET * 8 * 100), -5);
  expect(new BandwidthEstimator().report({ first: 0, arrivals: new Float64Array(10) }, new Uint32Array(20), 1000)).toBeNull();
});
