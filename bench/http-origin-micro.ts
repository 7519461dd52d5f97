/** CPU per request of delivery alone (no packager, no ingest), against nginx with files of the same size in the same run. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Child } from '../test/harness/child.ts';
import { cpuDuring, median } from './lib/measure.ts';
import { startNginx } from './lib/nginx.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { load } from './lib/wrk.ts';

interface Resource {
  readonly file: string;
  readonly bytes: number;
  /** Allowed CPU of a request, relative to nginx. */
  readonly target: number;
}

const RESOURCES: Readonly<Record<string, Resource>> = {
  playlist: { file: 'list.m3u8', bytes: 5_000, target: 2.5 },
  part: { file: 'part.m4s', bytes: 160_000, target: 1.5 },
  segment: { file: 'segment.m4s', bytes: 2_000_000, target: 1.0 },
};
const CONNECTIONS = [1, 4];
const START_DEADLINE = 10_000;

/** A measured server; `base` is the URL of its files. */
interface Origin {
  readonly name: string;
  readonly child: Child;
  readonly base: string;
}

async function startDelivery(threads: 0 | 1): Promise<Origin> {
  const script = fileURLToPath(new URL('./lib/blob-server.ts', import.meta.url));
  const child = new Child(process.execPath, [script, String(threads)]);
  const [port] = await child.printed(/^\d+/, START_DEADLINE);
  return { name: threads === 0 ? 'main thread' : 'worker', child, base: `http://127.0.0.1:${port}/app/stream` };
}

async function startFiles(folder: string, root: string, sendfile: 'on' | 'off'): Promise<Origin> {
  const { child, base } = await startNginx(folder, root, sendfile);
  return { name: `nginx sendfile ${sendfile}`, child, base };
}

/** Median CPU per request of each origin, µs; they take turns, so that disturbances hit all equally. */
async function measure(origins: readonly Origin[], file: string, connections: number, options: BenchOptions): Promise<Map<Origin, number>> {
  const samples = new Map<Origin, number[]>(origins.map((origin) => [origin, []]));
  for (let round = 0; round < options.rounds; round += 1) {
    for (const [{ base, child }, costs] of samples) {
      const url = `${base}/${file}`;
      if (round === 0) await load({ url, connections, seconds: 1 });
      const { cpuMs, result } = await cpuDuring(child.pid, 0, () => load({ url, connections, seconds: options.seconds }));
      costs.push((cpuMs * 1000) / result.requests);
    }
  }
  return new Map([...samples].map(([origin, costs]) => [origin, median(costs)]));
}

export async function run(options: BenchOptions): Promise<Report> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-bench-'));
  const root = path.join(folder, 'root');
  mkdirSync(root);
  for (const { file, bytes } of Object.values(RESOURCES)) writeFileSync(path.join(root, file), Buffer.alloc(bytes, 'v'));
  const ours: Origin[] = [];
  const files: Origin[] = [];
  try {
    ours.push(await startDelivery(1), await startDelivery(0));
    files.push(await startFiles(folder, root, 'on'), await startFiles(folder, root, 'off'));
    const figures: Figure[] = [];
    for (const [name, { file, target }] of Object.entries(RESOURCES)) {
      for (const connections of CONNECTIONS) {
        const costs = await measure([...ours, ...files], file, connections, options);
        const baseline = Math.min(...files.map((origin) => costs.get(origin) ?? Number.NaN));
        for (const origin of ours) {
          const label = `${name}, ${connections} connection(s), ${origin.name}`;
          figures.push({ name: label, value: costs.get(origin) ?? Number.NaN, unit: 'us CPU/request', baseline, target });
        }
      }
    }
    const notes = ['baseline: nginx with one worker and files of the same size, the better of sendfile on and off'];
    return { bench: 'http-origin-micro', figures, notes };
  } finally {
    await Promise.all([...ours, ...files].map(({ child }) => child.stop()));
    rmSync(folder, { recursive: true, force: true });
  }
}
