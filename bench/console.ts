/** The cost of an open console for the server: the requests of the overview page in Chromium, repeated at many times the rate. */
import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Request } from 'playwright-core';
import { ConsoleBrowser } from '../test/harness/console-browser.ts';
import { until } from '../test/harness/poll.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { threadTime } from './lib/process-usage.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { publishSource, sourceFile } from './lib/source.ts';
import { metricsAnswer } from './metrics-micro.ts';

const STREAMS = 50;
/** Allowed cost of an open console, ms per second. */
const TARGET = 5;
/** Cheap streams, whose own cost is not measured here, give steadier figures. */
const SOURCE = { width: 320, height: 180, kbps: 50, fps: 5 };
const PUBLISH_DEADLINE_MS = 60_000;
/** Time that the console is open before its requests are recorded. */
const WARM_UP_MS = 10_000;
const LISTEN_MS = 20_000;
/** Factor of the request rate, by which the result is divided: the cost of streams alone varies by more than one console. */
const CONSOLES = 20;
/** Time in which JavaScript is compiled. */
const REPEAT_WARM_UP_SECONDS = 15;
/** Pairs of spans with and without requests, per round. */
const PAIRS_PER_ROUND = 2;
const STREAM_LIST = '/v1/vhosts/default/apps/app/streams';

/** Requests of a page. */
interface Asked {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Records all requests of an open overview over `LISTEN_MS`, in order. Its event stream is open before, and stays silent. */
async function listen(browser: ConsoleBrowser, server: TestServer): Promise<readonly Asked[]> {
  const { page, context } = await browser.open(`${server.api.base}/console/`);
  try {
    await until('the streams on the page', async () => (await page.locator('tbody tr').count()) > STREAMS / 2, { deadlineMs: 30_000 });
    await delay(WARM_UP_MS);
    const requests: Request[] = [];
    page.on('request', (request) => requests.push(request));
    await delay(LISTEN_MS);
    return await Promise.all(requests.map(async (request) => ({ url: request.url(), headers: await request.allHeaders() })));
  } finally {
    await context.close();
  }
}

/** Sends a request and reads the answer. */
function ask({ url, headers }: Asked, agent: Agent): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  get(url, { agent, headers }, (answer) => {
    if (answer.statusCode !== 200) reject(new Error(`${url}: ${answer.statusCode}`));
    answer.resume().once('end', resolve).once('error', reject);
  }).once('error', reject);
  return promise;
}

/** CPU of the server, ms per second, while `CONSOLES` consoles send their requests evenly, or none does. */
async function rate(server: TestServer, seconds: number, asked: readonly Asked[]): Promise<number> {
  const agent = new Agent({ keepAlive: true, maxSockets: 6 });
  const every = LISTEN_MS / CONSOLES / asked.length;
  const answers: Promise<void>[] = [];
  const [before, since] = [threadTime(server.pid), performance.now()];
  for (let n = 0; asked.length > 0 && n * every < seconds * 1000; n += 1) {
    await delay(Math.max(0, since + n * every - performance.now()));
    answers.push(ask(asked[n % asked.length] as Asked, agent));
  }
  await Promise.all(answers);
  await delay(Math.max(0, since + seconds * 1000 - performance.now()));
  const used = (threadTime(server.pid) - before) / ((performance.now() - since) / 1000);
  agent.destroy();
  return used;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Standard error of the mean: two of three repetitions of the whole bench are within it. */
function standardError(values: readonly number[]): number {
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1) / values.length);
}

async function openConsole({ seconds, rounds }: BenchOptions): Promise<{ readonly figure: Figure; readonly note: string }> {
  const source = await sourceFile(SOURCE);
  const server = await startServer({ withoutHls: true });
  const encoders = Array.from({ length: STREAMS }, (_, index) => publishSource(source, server.rtmp(`s${index}`)));
  let browser: ConsoleBrowser | null = null;
  try {
    await until(`${STREAMS} streams`, async () => (await server.api.get<string[]>(STREAM_LIST)).length === STREAMS, {
      deadlineMs: PUBLISH_DEADLINE_MS,
    });
    browser = await ConsoleBrowser.start();
    const asked = await listen(browser, server);
    await browser.close();
    browser = null;
    if (asked.length === 0) throw new Error('the console asked for nothing');
    await rate(server, REPEAT_WARM_UP_SECONDS, asked);
    const [pairs, none]: [number, readonly Asked[]] = [rounds * PAIRS_PER_ROUND, []];
    const found: { readonly without: number; readonly one: number }[] = [];
    for (let pair = 0; pair < pairs; pair += 1) {
      // The order within pairs alternates, so that a trend cancels out.
      const first = await rate(server, seconds, pair % 2 === 0 ? none : asked);
      const second = await rate(server, seconds, pair % 2 === 0 ? asked : none);
      const [without, beside] = pair % 2 === 0 ? [first, second] : [second, first];
      found.push({ without, one: (beside - without) / CONSOLES });
    }
    const each = found.map(({ one }) => one);
    const error = standardError(each);
    return {
      figure: {
        ...{ name: `an open console, ${STREAMS} streams`, value: mean(each), unit: 'ms/s', target: TARGET },
        remark: `± ${error.toFixed(2)} (standard error of ${pairs} pairs); each ${each.map((one) => one.toFixed(1)).join(', ')}; without it ${mean(found.map(({ without }) => without)).toFixed(1)} ms/s`,
      },
      note: `console: what the overview asks for in Chromium, ${(asked.length / LISTEN_MS) * 1000} requests a second, for ${CONSOLES} of them; streams of ${SOURCE.fps} frames a second with AAC${error > TARGET / 4 ? '; TOO NOISY to be held against the target' : ''}`,
    };
  } finally {
    await browser?.close();
    await Promise.all(encoders.map((encoder) => encoder.kill()));
    await server.close();
  }
}

export async function run(options: BenchOptions): Promise<Report> {
  const open = await openConsole(options);
  const metrics = await metricsAnswer(options.rounds);
  return { bench: 'console', figures: [open.figure, metrics.figure], notes: [open.note, metrics.note] };
}
