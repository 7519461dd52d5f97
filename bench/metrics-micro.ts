/** CPU of the main thread for one response of `/metrics`, taken from the responses, so that other load does not count. */
import path from 'node:path';
import { AUTHORIZATION } from '../test/contract/harness.ts';
import { Child } from '../test/harness/child.ts';
import { median } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';

const STREAMS = 500;
/** Responses in which JavaScript is compiled. */
const WARM_UP = 20;
const ASKS = 20;
/** Allowed time of a response, ms. */
const TARGET = 20;

async function ask(url: string): Promise<string> {
  const answer = await fetch(url, { headers: { Authorization: AUTHORIZATION } });
  if (answer.status !== 200) throw new Error(`GET ${url} answered ${answer.status}`);
  return await answer.text();
}

/** CPU of the main thread since its start, ms. */
function cpuOf(text: string): number {
  return Number(/^millrace_main_thread_cpu_seconds_total (\S+)$/m.exec(text)?.[1]) * 1000;
}

/** The cost of a response about `STREAMS` streams, as a figure, and a description of the response. */
export async function metricsAnswer(rounds: number): Promise<{ readonly figure: Figure; readonly note: string }> {
  const { cost, text } = await measure(rounds);
  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
  return {
    figure: { name: `/metrics about ${STREAMS} streams`, value: cost, unit: 'ms CPU of the main thread', target: TARGET },
    note: `/metrics: ${series} series, ${Math.round(text.length / 1024)} KiB; streams have viewers over WebRTC and LL-HLS, 100 SRT`,
  };
}

async function measure(rounds: number): Promise<{ readonly cost: number; readonly text: string }> {
  const server = new Child(process.execPath, [path.join(import.meta.dirname, 'lib/metrics-server.ts'), String(STREAMS)], {
    name: 'metrics-server',
  });
  try {
    const [, port] = await server.printed(/port (\d+)/, 60_000);
    const url = `http://127.0.0.1:${port}/metrics`;
    for (let n = 0; n < WARM_UP; n += 1) await ask(url);
    const costs: number[] = [];
    let text = '';
    for (let round = 0; round < rounds; round += 1) {
      const before = cpuOf(await ask(url));
      for (let n = 0; n < ASKS; n += 1) text = await ask(url);
      costs.push((cpuOf(text) - before) / ASKS);
    }
    return { cost: median(costs), text };
  } finally {
    await server.stop();
  }
}

export async function run({ rounds }: BenchOptions): Promise<Report> {
  const { figure, note } = await metricsAnswer(rounds);
  return { bench: 'metrics-micro', figures: [figure], notes: [note] };
}
