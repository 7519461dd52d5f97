/**
 * `npm run bench -- NAME… [--seconds N] [--rounds N]`: measures on loopback only, prints ratios, keeps JSON. `npm run bench -- report`
 * makes a page of all kept reports.
 */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ensureTools } from '../scripts/ensure-tools.ts';
import { loadAddon } from '../src/native/addon.ts';
import { readRuns } from './lib/kept-runs.ts';
import { type BenchOptions, meetsTarget, printReport, RESULTS_FOLDER, type Report, saveReport } from './lib/report.ts';
import { reportPage } from './lib/report-page.ts';

const BENCHES: Record<string, () => Promise<{ run(options: BenchOptions): Promise<Report> }>> = {
  ingest: () => import('./ingest.ts'),
  start: () => import('./start.ts'),
  crowd: () => import('./crowd.ts'),
  turns: () => import('./turns.ts'),
  record: () => import('./record.ts'),
  'llhls-crowd': () => import('./llhls-crowd.ts'),
  'llhls-origin': () => import('./llhls-origin.ts'),
  'http-origin-micro': () => import('./http-origin-micro.ts'),
  channels: () => import('./channels.ts'),
  api: () => import('./api.ts'),
  'api-micro': () => import('./api-micro.ts'),
  console: () => import('./console.ts'),
  'metrics-micro': () => import('./metrics-micro.ts'),
  latency: () => import('./latency.ts'),
  'webrtc-fanout': () => import('./webrtc-fanout.ts'),
  'webrtc-viewers': () => import('./webrtc-viewers.ts'),
  srt: () => import('./srt.ts'),
  'webrtc-latency': () => import('./webrtc-latency.ts'),
  transcode: () => import('./transcode.ts'),
  'ovt-relay': () => import('./ovt-relay.ts'),
  cluster: () => import('./cluster.ts'),
  abuse: () => import('./abuse.ts'),
  access: () => import('./access.ts'),
  'access-micro': () => import('./access-micro.ts'),
};
const DEFAULTS = { seconds: '5', rounds: '3' };
/** Longer runs would be soak tests. */
const MAX_SECONDS = 120;
const MAX_ROUNDS = 20;

function usage(): never {
  console.error(
    `usage: npm run bench -- ${Object.keys(BENCHES).join(' | ')} | all [--seconds N] [--rounds N]\n       npm run bench -- report [FOLDER]`,
  );
  process.exit(2);
}

/** Writes the page about the reports in `folder` beside it, and prints its path. */
function writeReport(folder: string): void {
  const runs = readRuns(folder);
  const file = path.join(folder, 'report.html');
  writeFileSync(file, reportPage(runs));
  for (const reason of runs.unreadable) console.error(`left out: ${reason}`);
  console.log(`${runs.benches.length} benches in ${file}`);
}

function positive(text: string, most: number): number {
  const value = Number(text);
  if (!(value > 0 && value <= most)) usage();
  return value;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { seconds: { type: 'string', default: DEFAULTS.seconds }, rounds: { type: 'string', default: DEFAULTS.rounds } },
  });
  const options = { seconds: positive(values.seconds, MAX_SECONDS), rounds: Math.ceil(positive(values.rounds, MAX_ROUNDS)) };
  if (positionals[0] === 'report' && positionals.length <= 2) return writeReport(path.resolve(positionals[1] ?? RESULTS_FOLDER));
  const names = positionals.includes('all') ? Object.keys(BENCHES) : positionals;
  if (names.length === 0 || names.some((name) => BENCHES[name] === undefined)) usage();
  const missing = ensureTools('bench');
  if (missing.length > 0) throw new Error(`benches need ${missing.join(', ')}`);
  // Without the addon everything costs several times as much, and no figure would show the reason.
  const native = loadAddon();
  if (native.addon === null && process.env['MILLRACE_NATIVE'] !== 'off') throw new Error(`there is no addon to measure: ${native.reason}`);
  for (const name of names) {
    const bench = await BENCHES[name]?.();
    const report = await bench?.run(options);
    if (report === undefined) continue;
    printReport(report);
    console.log(`  kept in ${saveReport(report, options)}`);
    if (!report.figures.every(meetsTarget)) process.exitCode = 1;
  }
}

await main();
