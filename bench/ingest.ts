/** What one incoming stream costs: CPU per stream second and resident memory, with LL-HLS packaging. */

import { statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../test/e2e/support/child.ts';
import { until } from '../test/e2e/support/poll.ts';
import { startServer, type TestServer } from '../test/e2e/support/server.ts';
import { cpuRate, idleCpuRate } from './lib/measure.ts';
import { memory } from './lib/process-usage.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { publishSource, SOURCE_GOP_SECONDS, SOURCE_SECONDS, sourceFile } from './lib/source.ts';

const PUBLISHERS = [1, 10, 30];
const SEGMENT_COUNT = 4;
/** A stream holds this many segments beyond the listed ones, and the one being made. */
const SEGMENTS_BEYOND = 4;
const WINDOW_SECONDS = (SEGMENT_COUNT + SEGMENTS_BEYOND) * SOURCE_GOP_SECONDS;
const CPU_TARGET = 10;
const MEMORY_FACTOR = 1.3;
const MEMORY_BASE_MB = 3;

interface IngestCost {
  readonly publishers: number;
  /** CPU ms per second of one stream. */
  readonly cpu: number;
  readonly idleMemory: number;
  readonly memoryFirst: number;
  readonly memoryLast: number;
}

async function measure(source: string, publishers: number, seconds: number): Promise<IngestCost> {
  const server = await startServer({ segmentDuration: SOURCE_GOP_SECONDS, segmentCount: SEGMENT_COUNT, withoutHls: true });
  const encoders: Child[] = [];
  try {
    const idleRate = await idleCpuRate(server.pid);
    const idleMemory = memory(server.pid).resident;
    for (let index = 0; index < publishers; index += 1) encoders.push(publishSource(source, server.rtmp(`s${index}`)));
    await allPublished(server, publishers);
    await delay(WINDOW_SECONDS * 1000);
    const memoryFirst = memory(server.pid).resident;
    const busyRate = await cpuRate(server.pid, seconds);
    const memoryLast = memory(server.pid).resident;
    await allPublished(server, publishers);
    return { publishers, cpu: (busyRate - idleRate) / publishers, idleMemory, memoryFirst, memoryLast };
  } finally {
    await Promise.all(encoders.map((encoder) => encoder.kill()));
    await server.close();
  }
}

async function allPublished(server: TestServer, publishers: number): Promise<void> {
  const names = '/v1/vhosts/default/apps/app/streams';
  await until(`${publishers} streams`, async () => (await server.api.get<string[]>(names)).length === publishers);
}

export async function run(options: BenchOptions): Promise<Report> {
  const source = await sourceFile();
  const costs: IngestCost[] = [];
  for (const publishers of PUBLISHERS) costs.push(await measure(source, publishers, options.seconds));

  const mediaMb = ((statSync(source).size / SOURCE_SECONDS) * WINDOW_SECONDS) / 2 ** 20;
  const memoryTarget = MEMORY_FACTOR * mediaMb + MEMORY_BASE_MB;
  const figures = costs.flatMap(({ publishers, cpu, idleMemory, memoryFirst, memoryLast }): Figure[] => [
    { name: `CPU per stream, ${publishers} streams`, value: cpu, unit: 'ms/s', target: CPU_TARGET },
    { name: `memory per stream, ${publishers} streams`, value: (memoryLast - idleMemory) / publishers, unit: 'MB' },
    { name: `memory growth, ${publishers} streams`, value: memoryLast - memoryFirst, unit: 'MB' },
  ]);
  const [few, many] = [costs.at(-2), costs.at(-1)];
  if (few !== undefined && many !== undefined) {
    const value = (many.memoryLast - few.memoryLast) / (many.publishers - few.publishers);
    const name = `memory of each further stream, ${few.publishers} to ${many.publishers}`;
    figures.push({ name, value, unit: 'MB', target: Number(memoryTarget.toFixed(2)) });
  }
  return {
    bench: 'ingest',
    figures,
    notes: [
      `each stream: 720p30, 2.5 Mbit/s, LL-HLS with 0.5 s parts; ${mediaMb.toFixed(2)} MB of media in its window`,
      'elsewhere, same source, CPU ms/s: OvenMediaEngine LL-HLS only 19, its usual profile 44; SRS plain HLS 6; C reading sockets 1.2',
      'memory per stream contains what the program allocates once under load; each further stream does not',
    ],
  };
}
