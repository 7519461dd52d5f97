/** CPU per API request against a bare node:http server with the same JSON, in the same run. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { apiPath } from '../test/harness/api-client.ts';
import { Child } from '../test/harness/child.ts';
import { until } from '../test/harness/poll.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { cpuDuring, cpuRate, median } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { publishSource, sourceFile } from './lib/source.ts';
import { load } from './lib/wrk.ts';

const STREAMS = 3;
const TARGET = 2;
/** Time in which JavaScript is compiled. */
const WARM_UP_SECONDS = 1;
const LIST = '/v1/vhosts/default/apps/app/streams';
const ENDPOINTS = [
  { name: 'stream list', path: LIST },
  { name: 'stream information', path: apiPath.stream('s0') },
  { name: 'stream statistics', path: apiPath.stats('s0') },
];

async function startBare(folder: string, answer: unknown): Promise<{ child: Child; url: string }> {
  const file = path.join(folder, 'answer.json');
  writeFileSync(file, JSON.stringify(answer));
  const child = new Child(process.execPath, [path.join(import.meta.dirname, 'lib/bare-json-server.ts'), file], { name: 'bare node:http' });
  const [, port] = await child.printed(/port (\d+)/, 10_000);
  return { child, url: `http://127.0.0.1:${port}/` };
}

async function compare(
  server: TestServer,
  folder: string,
  options: BenchOptions,
  endpoint: { name: string; path: string },
): Promise<Figure> {
  const { body } = await server.api.call('GET', endpoint.path);
  const bare = await startBare(folder, body);
  const headers = [`Authorization: ${server.api.authorization}`];
  const { seconds } = options;
  const ours: number[] = [];
  const theirs: number[] = [];
  try {
    for (const url of [server.api.base + endpoint.path, bare.url]) await load({ url, seconds: WARM_UP_SECONDS, headers });
    const idleRate = await cpuRate(server.pid, 2);
    for (let round = 0; round < options.rounds; round += 1) {
      const mine = await cpuDuring(server.pid, idleRate, () => load({ url: server.api.base + endpoint.path, seconds, headers }));
      ours.push((mine.cpuMs * 1000) / mine.result.requests);
      const other = await cpuDuring(bare.child.pid, 0, () => load({ url: bare.url, seconds, headers }));
      theirs.push((other.cpuMs * 1000) / other.result.requests);
    }
  } finally {
    await bare.child.stop();
  }
  return { name: endpoint.name, value: median(ours), unit: 'us CPU/request', baseline: median(theirs), target: TARGET };
}

export async function run(options: BenchOptions): Promise<Report> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-bench-'));
  const source = await sourceFile();
  const server = await startServer({ withoutHls: true });
  const encoders = Array.from({ length: STREAMS }, (_unused, index) => publishSource(source, server.rtmp(`s${index}`)));
  try {
    await until(`${STREAMS} streams`, async () => (await server.api.get<string[]>(LIST)).length === STREAMS);
    const figures: Figure[] = [];
    for (const endpoint of ENDPOINTS) figures.push(await compare(server, folder, options, endpoint));
    return {
      bench: 'api',
      figures,
      notes: [`baseline: node:http with JSON.stringify and no routing; ours: authorized, ${STREAMS} streams live`],
    };
  } finally {
    await Promise.all(encoders.map((encoder) => encoder.kill()));
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
