/**
 * The capacity plan of docs/guide/scale.md: what viewers need, and what that costs. `node scripts/cluster-plan.ts` prints the tables of the
 * page; arguments as `egressPrice=4 coreHourPrice=0.02 viewers=50000` replace inputs. A test compares page, benches and this file.
 */
import { fileURLToPath } from 'node:url';

/** A measured input: the row of docs/reference/performance.md that it comes from, and the text of its cell. */
export interface Measured {
  readonly value: number;
  readonly unit: string;
  readonly what: string;
  readonly row: string;
  readonly cell: string;
}

/** Measured with one stream of 720p30 at 2.5 Mbit/s with audio, plain HTTP. */
export const MEASURED = {
  llhlsCpu: {
    value: 1.33,
    unit: 'ms/s',
    what: 'CPU of an LL-HLS viewer',
    row: 'CPU of one edge for each viewer over LL-HLS (2.7 Mbit/s, 4.6 parts a second)',
    cell: '1.33 ms/s',
  },
  llhlsRate: {
    value: 2.7,
    unit: 'Mbit/s',
    what: 'traffic of an LL-HLS viewer',
    row: 'CPU of one edge for each viewer over LL-HLS (2.7 Mbit/s, 4.6 parts a second)',
    cell: '2.7 Mbit/s',
  },
  webrtcCpu: {
    value: 1.24,
    unit: 'ms/s',
    what: 'CPU of a WebRTC viewer',
    row: 'CPU of one edge for each viewer over WebRTC (280 packets a second, all delivered)',
    cell: '1.24 ms/s',
  },
  webrtcRate: {
    value: 2.54,
    unit: 'Mbit/s',
    what: 'traffic of a WebRTC viewer',
    row: '1 000 viewers, 2.54 Gbit/s, a packet; p99',
    cell: '2.54 Gbit/s',
  },
  originCpu: {
    value: 5.7,
    unit: 'ms/s',
    what: 'CPU of an origin for a stream',
    row: 'CPU of the origin for a stream, of ten, without edges',
    cell: '5.7 ms/s',
  },
  firstEdgeCpu: {
    value: 11,
    unit: 'ms/s',
    what: 'more with the first edge',
    row: 'what the first edge adds / the second / the third',
    cell: '11.0',
  },
  furtherEdgeCpu: {
    value: 1.4,
    unit: 'ms/s',
    what: 'more with each further edge',
    row: 'what the first edge adds / the second / the third',
    cell: '1.4 ms/s',
  },
} as const satisfies Record<string, Measured>;

/** An input that each reader replaces by its own. */
export interface Assumed {
  readonly value: number;
  readonly unit: string;
  readonly what: string;
}

/** The prices are round examples, of no provider. */
export const ASSUMED = {
  cores: { value: 8, unit: 'cores', what: 'cores of a machine' },
  network: { value: 25, unit: 'Gbit/s', what: 'network interface of a machine' },
  memory: { value: 16, unit: 'GB', what: 'memory of a machine' },
  cpuShare: { value: 0.6, unit: '', what: 'busy share of the cores, at most' },
  networkShare: { value: 0.7, unit: '', what: 'busy share of the interface, at most' },
  spare: { value: 0.1, unit: '', what: 'further edges, for those that fail or are replaced' },
  cdnLocations: { value: 100, unit: '', what: 'locations of the CDN that fetch from the edges, each as one viewer' },
  coreHourPrice: { value: 0.03, unit: 'per core and hour', what: 'price of a core' },
  memoryHourPrice: { value: 0.004, unit: 'per GB and hour', what: 'price of memory' },
  egressPrice: { value: 5, unit: 'per TB', what: 'price of traffic from your machines' },
  cdnPrice: { value: 10, unit: 'per TB', what: 'price of traffic from the CDN' },
} as const satisfies Record<string, Assumed>;

/** The inputs as numbers. */
export type PlanInputs = Readonly<Record<keyof typeof MEASURED | keyof typeof ASSUMED, number>>;
/** How viewers get one stream. */
export type PlanWay = 'LL-HLS from edges' | 'LL-HLS behind a CDN' | 'WebRTC from edges';
export const WAYS: readonly PlanWay[] = ['LL-HLS from edges', 'LL-HLS behind a CDN', 'WebRTC from edges'];
const VIEWERS = [10_000, 100_000, 1_000_000];
/** One that serves, and one that takes over. */
const ORIGINS = 2;
const MIN_EDGES = 2;
const MS_PER_CORE = 1000;
const MBIT_PER_GBIT = 1000;
const BITS_PER_BYTE = 8;
const MB_PER_TB = 1e6;
const SECONDS_PER_HOUR = 3600;

/** An hour of one stream; prices in the currency of the inputs. */
export interface Plan {
  readonly viewersPerEdge: number;
  readonly edges: number;
  readonly machines: number;
  /** CPU of the origin's main thread, ms/s; 1000 is a whole core. */
  readonly originCpu: number;
  /** TB in an hour, from our machines and from the CDN. */
  readonly egress: number;
  readonly cdnEgress: number;
  readonly corePrice: number;
  readonly memoryPrice: number;
  readonly trafficPrice: number;
}

/** The inputs of this file. */
export function planInputs(): PlanInputs {
  return Object.fromEntries(Object.entries({ ...MEASURED, ...ASSUMED }).map(([name, { value }]) => [name, value])) as PlanInputs;
}

/** Viewers whom the CPU of a machine carries, and its network. */
export function viewersOfMachine(way: PlanWay, inputs: PlanInputs): { readonly byCpu: number; readonly byNetwork: number } {
  const isWebrtc = way === 'WebRTC from edges';
  const [cpu, rate] = isWebrtc ? [inputs.webrtcCpu, inputs.webrtcRate] : [inputs.llhlsCpu, inputs.llhlsRate];
  return {
    byCpu: Math.floor((inputs.cores * MS_PER_CORE * inputs.cpuShare) / cpu),
    byNetwork: Math.floor((inputs.network * MBIT_PER_GBIT * inputs.networkShare) / rate),
  };
}

/** Machines, traffic and costs of `viewers` of one stream for an hour. */
export function plan(viewers: number, way: PlanWay, inputs: PlanInputs): Plan {
  const { byCpu, byNetwork } = viewersOfMachine(way, inputs);
  const viewersPerEdge = Math.min(byCpu, byNetwork);
  const hasCdn = way === 'LL-HLS behind a CDN';
  const watching = hasCdn ? Math.min(viewers, inputs.cdnLocations) : viewers;
  const edges = Math.max(MIN_EDGES, Math.ceil((watching / viewersPerEdge) * (1 + inputs.spare)));
  const machines = edges + ORIGINS;
  const rate = way === 'WebRTC from edges' ? inputs.webrtcRate : inputs.llhlsRate;
  /** TB of an hour of one viewer. */
  const hour = (rate * SECONDS_PER_HOUR) / BITS_PER_BYTE / MB_PER_TB;
  const [egress, cdnEgress] = [watching * hour, hasCdn ? viewers * hour : 0];
  return {
    viewersPerEdge,
    edges,
    machines,
    originCpu: inputs.originCpu + inputs.firstEdgeCpu + (edges - 1) * inputs.furtherEdgeCpu,
    egress,
    cdnEgress,
    corePrice: machines * inputs.cores * inputs.coreHourPrice,
    memoryPrice: machines * inputs.memory * inputs.memoryHourPrice,
    trafficPrice: egress * inputs.egressPrice + cdnEgress * inputs.cdnPrice,
  };
}

/** Thousands with blanks, and small numbers with two digits. */
function short(value: number): string {
  if (value < 10 && !Number.isInteger(value)) return value.toFixed(2);
  return Math.round(value)
    .toString()
    .replaceAll(/\B(?=(?:\d{3})+$)/g, ' ');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |`.replaceAll('| --- ', '|---').replace('--- |', '---|'))
    .join('\n');
}

/** The tables of the page: measured inputs, assumptions, machines, costs of an hour. */
export function planTables(inputs: PlanInputs, viewers: readonly number[] = VIEWERS): string[] {
  const all = viewers.flatMap((count) => WAYS.map((way) => ({ count, way, ...plan(count, way, inputs) })));
  return [
    table(
      ['Input', 'Value', 'Row of the benches'],
      Object.entries(MEASURED).map(([name, { what, unit, row }]) => [
        `${what}, \`${name}\``,
        `${inputs[name as keyof PlanInputs]} ${unit}`,
        row,
      ]),
    ),
    table(
      ['Assumption', 'Example'],
      Object.entries(ASSUMED).map(([name, { what, unit }]) => [
        `${what}, \`${name}\``,
        `${inputs[name as keyof PlanInputs]} ${unit}`.trim(),
      ]),
    ),
    table(
      ['Viewers', 'Over', 'Viewers an edge', 'Edges', "Origin's main thread", 'TB an hour, from your machines', 'from the CDN'],
      all.map(({ count, way, viewersPerEdge, edges, originCpu, egress, cdnEgress }) => [
        ...[short(count), way, short(viewersPerEdge), short(edges), `${Math.round(originCpu / 10)} %`, short(egress), short(cdnEgress)],
      ]),
    ),
    table(
      ['Viewers', 'Over', 'Cores', 'Memory', 'Traffic', 'Together', 'An hour of 1 000 viewers'],
      all.map(({ count, way, corePrice, memoryPrice, trafficPrice }) => {
        const sum = corePrice + memoryPrice + trafficPrice;
        const share = `${short(trafficPrice)} (${Math.round((100 * trafficPrice) / sum)} %)`;
        return [short(count), way, short(corePrice), short(memoryPrice), share, short(sum), short((1000 * sum) / count)];
      }),
    ),
  ];
}

/** The formulas with the numbers of one case. */
export function planExample(inputs: PlanInputs, viewers = 100_000): string {
  const way: PlanWay = 'LL-HLS from edges';
  const { byCpu, byNetwork } = viewersOfMachine(way, inputs);
  const { edges, machines, egress, corePrice, memoryPrice, trafficPrice } = plan(viewers, way, inputs);
  const { llhlsCpu, llhlsRate, cores, network, memory, cpuShare, networkShare, spare, coreHourPrice, memoryHourPrice, egressPrice } =
    inputs;
  return [
    `viewers an edge  by CPU ${cores} × 1000 × ${cpuShare} / ${llhlsCpu} = ${short(byCpu)}, by network ${network} × 1000 × ${networkShare} / ${llhlsRate} = ${short(byNetwork)}`,
    `edges            ${short(viewers)} / ${short(Math.min(byCpu, byNetwork))} × ${1 + spare} = ${short(edges)}; with ${ORIGINS} origins ${short(machines)} machines`,
    `TB an hour       ${short(viewers)} × ${llhlsRate} × ${SECONDS_PER_HOUR} / ${BITS_PER_BYTE} / 1 000 000 = ${short(egress)}`,
    `cores            ${short(machines)} × ${cores} × ${coreHourPrice} = ${short(corePrice)}`,
    `memory           ${short(machines)} × ${memory} × ${memoryHourPrice} = ${short(memoryPrice)}`,
    `traffic          ${short(egress)} × ${egressPrice} = ${short(trafficPrice)}`,
  ].join('\n');
}

/** Inputs with those of arguments as `name=number` in place; `viewers=number` is not an input. Throws an error that names the argument. */
export function planArguments(words: readonly string[]): { readonly inputs: PlanInputs; readonly viewers: readonly number[] } {
  const inputs: Record<string, number> = { ...planInputs() };
  let viewers = VIEWERS;
  for (const word of words) {
    const [, name = '', digits = ''] = /^(\w+)=(\d+(?:\.\d+)?)$/.exec(word) ?? [];
    const value = Number(digits);
    if (digits === '') throw new Error(`'${word}' is not of the form name=number`);
    if (name !== 'viewers' && !Object.hasOwn(inputs, name))
      throw new Error(`there is no input '${name}', but ${Object.keys(inputs).join(', ')}, viewers`);
    if (value === 0 && !name.endsWith('Price')) throw new Error(`${name} must be above 0`);
    if (name === 'viewers') viewers = [value];
    else inputs[name] = value;
  }
  return { inputs: inputs as PlanInputs, viewers };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const { inputs, viewers } = planArguments(process.argv.slice(2));
    console.log([...planTables(inputs, viewers), planExample(inputs, viewers[1] ?? viewers[0])].join('\n\n'));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  }
}
