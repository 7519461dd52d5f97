/**
 * CPU of a delivery thread for a multivariant playlist with a signed URL, without sockets, against an open playlist: for viewers with the
 * same URL, and for viewers with different URLs.
 */
import { signUrl } from '../src/access/signed-url.ts';
import { median } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { RequestPath } from './lib/request-path.ts';

/** Requests between two readings of the CPU clock. */
const BATCH = 4096;
const BATCHES_PER_SECOND = 10;
/** Batches in which JavaScript is compiled. */
const WARM_UP = 20;
/** Allowed cost of a signature, µs. */
const TARGET_US = 2.5;
const KEYS = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'aKq#1kj' };
const HOUR_MS = 3_600_000;
const PATH = ':3333/app/stream/llhls.m3u8';
const OK = 200;

function requestOf(url: string): Buffer {
  const { host, pathname, search } = new URL(url);
  return Buffer.from(`GET ${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, 'latin1');
}

function signed(more: string, expire: number): Buffer {
  return requestOf(signUrl(`http://localhost${PATH}${more}`, { url_expire: expire }, KEYS));
}

/** Makes the requests of a batch, outside the measured time. */
function sources(): Readonly<Record<'open' | 'same' | 'distinct', () => readonly Buffer[]>> {
  const expire = Date.now() + HOUR_MS;
  const repeated = (request: Buffer) => Array.from({ length: BATCH }, () => request);
  const [open, same] = [repeated(requestOf(`http://127.0.0.1${PATH}`)), repeated(signed('', expire))];
  let viewers = 0;
  const next = (): Buffer => {
    viewers += 1;
    return signed(`?viewer=${viewers}`, expire + viewers);
  };
  return { open: () => open, same: () => same, distinct: () => Array.from({ length: BATCH }, next) };
}

function cost(path: RequestPath, requests: readonly Buffer[]): number {
  const before = process.cpuUsage();
  for (const request of requests) if (path.ask(request) !== OK) throw new Error('a viewer was refused');
  const { user, system } = process.cpuUsage(before);
  path.report();
  return (user + system) / requests.length;
}

export async function run({ seconds, rounds }: BenchOptions): Promise<Report> {
  const enables = { providers: [], publishers: ['llhls'] };
  const path = new RequestPath([
    { name: 'default', hostNames: ['*'] },
    { name: 'protected', hostNames: ['localhost'], access: { signedPolicy: { ...KEYS, enables } } },
  ]);
  const make = sources();
  const samples = { open: [] as number[], same: [] as number[], distinct: [] as number[] };
  // Batches take turns, so that disturbances hit all equally.
  for (let batch = 0; batch < WARM_UP + seconds * rounds * BATCHES_PER_SECOND; batch += 1) {
    for (const kind of ['open', 'same', 'distinct'] as const) {
      const measured = cost(path, make[kind]());
      if (batch >= WARM_UP) samples[kind].push(measured);
    }
  }
  path.close();
  const open = median(samples.open);
  const more = (kind: 'same' | 'distinct'): number => median(samples[kind].map((sample, n) => sample - (samples.open[n] ?? 0)));
  const figures: Figure[] = [
    { name: 'multivariant playlist, open', value: open, unit: 'us CPU/request' },
    { name: 'more for a signed URL that all viewers have', value: more('same'), unit: 'us CPU/request', target: TARGET_US },
    { name: 'more for a signed URL of each viewer', value: more('distinct'), unit: 'us CPU/request' },
  ];
  return { bench: 'access-micro', figures, notes: ['in this process: the request is read, judged and answered, and a session begins'] };
}
