/** CPU per API request against a bare node:http server with the same JSON: the API alone, without media. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { AUTHORIZATION } from '../test/contract/harness.ts';
import { Child } from '../test/harness/child.ts';
import { cpuDuring, median } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { load } from './lib/wrk.ts';

const TARGET = 2;
/** Time in which JavaScript is compiled. */
const WARM_UP_SECONDS = 1;
const HEADERS = [`Authorization: ${AUTHORIZATION}`];
const ENDPOINTS = [
  { name: 'stream list', path: '/v1/vhosts/default/apps/app/streams' },
  { name: 'stream information', path: '/v1/vhosts/default/apps/app/streams/s0' },
  { name: 'statistics v1', path: '/v1/stats/current/vhosts/default/apps/app/streams/s0' },
  { name: 'statistics v2', path: '/v2/stats/current/vhosts/default/apps/app/streams/s0' },
  { name: 'application', path: '/v1/vhosts/default/apps/app' },
];

interface Started {
  readonly child: Child;
  readonly base: string;
}

async function start(script: string, ...args: string[]): Promise<Started> {
  const child = new Child(process.execPath, [path.join(import.meta.dirname, 'lib', script), ...args], { name: script });
  const [, port] = await child.printed(/port (\d+)/, 10_000);
  return { child, base: `http://127.0.0.1:${port}` };
}

async function compare(api: Started, folder: string, options: BenchOptions, endpoint: { name: string; path: string }): Promise<Figure> {
  const answer = await fetch(api.base + endpoint.path, { headers: { Authorization: AUTHORIZATION } });
  const file = path.join(folder, 'answer.json');
  writeFileSync(file, await answer.text());
  const bare = await start('bare-json-server.ts', file);
  const ours: number[] = [];
  const theirs: number[] = [];
  const { seconds } = options;
  try {
    for (const url of [api.base + endpoint.path, `${bare.base}/`]) await load({ url, seconds: WARM_UP_SECONDS, headers: HEADERS });
    for (let round = 0; round < options.rounds; round += 1) {
      const mine = await cpuDuring(api.child.pid, 0, () => load({ url: api.base + endpoint.path, seconds, headers: HEADERS }));
      ours.push((mine.cpuMs * 1000) / mine.result.requests);
      const other = await cpuDuring(bare.child.pid, 0, () => load({ url: `${bare.base}/`, seconds, headers: HEADERS }));
      theirs.push((other.cpuMs * 1000) / other.result.requests);
    }
  } finally {
    await bare.child.stop();
  }
  return { name: endpoint.name, value: median(ours), unit: 'us CPU/request', baseline: median(theirs), target: TARGET };
}

export async function run(options: BenchOptions): Promise<Report> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-bench-'));
  const api = await start('api-only-server.ts');
  try {
    const figures: Figure[] = [];
    for (const endpoint of ENDPOINTS) figures.push(await compare(api, folder, options, endpoint));
    return { bench: 'api-micro', figures, notes: ['baseline: node:http with JSON.stringify and no routing; ours: authorized, 3 streams'] };
  } finally {
    await api.child.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
