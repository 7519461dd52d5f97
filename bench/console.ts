/** What somebody who looks at the console costs the server: Chromium with the overview open, against the same server without it. */
import { setTimeout as delay } from 'node:timers/promises';
import { ConsoleBrowser } from '../test/harness/console-browser.ts';
import { until } from '../test/harness/poll.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { median } from './lib/measure.ts';
import { threadTime } from './lib/process-usage.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { publishSource, sourceFile } from './lib/source.ts';
import { metricsAnswer } from './metrics-micro.ts';

const STREAMS = 50;
/** Of an open console, ms a second. */
const TARGET = 5;
/** What streams cost is not asked here: the less they cost, the less it moves. */
const SOURCE = { width: 320, height: 180, kbps: 50, fps: 5 };
const PUBLISH_DEADLINE_MS = 60_000;
/** A console is open for so long before anything counts: the compiler of the JavaScript engine does its work. */
const WARM_UP_SECONDS = 40;
/** What opening or closing it costs is over. */
const SETTLE_MS = 3000;
const STREAM_LIST = '/v1/vhosts/default/apps/app/streams';

/** CPU of the server, ms a second. */
async function rate(server: TestServer, seconds: number): Promise<number> {
  const [before, since] = [threadTime(server.pid), performance.now()];
  await delay(seconds * 1000);
  return (threadTime(server.pid) - before) / ((performance.now() - since) / 1000);
}

interface Round {
  readonly without: number;
  readonly beside: number;
  /** A second. */
  readonly requests: number;
}

/** The server without and with a console, one after the other. */
async function compare(server: TestServer, browser: ConsoleBrowser, seconds: number): Promise<Round> {
  const without = await rate(server, seconds);
  const { page, context } = await browser.open(`${server.api.base}/console/`);
  try {
    await until('the streams on the page', async () => (await page.locator('tbody tr').count()) > STREAMS / 2, { deadlineMs: 30_000 });
    await delay(SETTLE_MS);
    let requests = 0;
    page.on('request', () => {
      requests += 1;
    });
    const beside = await rate(server, seconds);
    return { without, beside, requests: requests / seconds };
  } finally {
    await context.close();
    await delay(SETTLE_MS);
  }
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
    await compare(server, browser, WARM_UP_SECONDS);
    const found: Round[] = [];
    for (let round = 0; round < rounds; round += 1) found.push(await compare(server, browser, seconds));
    const middle = (of: (round: Round) => number): number => median(found.map(of));
    const spread = found.map(({ without, beside }) => (beside - without).toFixed(1)).join(', ');
    return {
      figure: {
        ...{
          name: `an open console, ${STREAMS} streams`,
          value: middle(({ without, beside }) => beside - without),
          unit: 'ms/s',
          target: TARGET,
        },
        remark: `${middle(({ without }) => without).toFixed(1)} → ${middle(({ beside }) => beside).toFixed(1)} ms/s; each round ${spread}`,
      },
      note: `console: the overview in Chromium, ${middle(({ requests }) => requests).toFixed(1)} requests a second; streams of ${SOURCE.fps} frames a second with AAC`,
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
