/**
 * Many LL-HLS viewers at once: the delay of parts, failures, and the server's use of the machine. `CROWD_VIEWERS` (5000); `--seconds` per
 * round.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { until } from '../test/harness/poll.ts';
import { startServer } from '../test/harness/server.ts';
import { fetchText, openSession, readMediaPlaylist } from '../test/harness/viewer.ts';
import { CompiledPrograms } from './lib/compiled-programs.ts';
import { cpuDuring, cpuRate } from './lib/measure.ts';
import { memory } from './lib/process-usage.ts';
import type { BenchOptions, Report } from './lib/report.ts';
import { publishSource, sourceFile } from './lib/source.ts';

const VIEWERS = Number(process.env['CROWD_VIEWERS'] ?? 5000);
/** A small stream, because viewers and server share two cores: the bench tests the server's punctuality, not the copying of loopback. */
const SOURCE = { width: 320, height: 180, kbps: 200 };
const IDLE_SECONDS = 3;

interface Lateness {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Output of `llhls-viewers`. Delays in ms. */
interface CrowdFigures {
  readonly playlists: number;
  readonly parts: number;
  /** Number of failures by kind. */
  readonly failures: Readonly<Record<string, number>>;
  /** Viewers more than four parts behind the first viewer at the end. */
  readonly behind: number;
  readonly bytes: number;
  readonly cpuMs: number;
  readonly lateness: { readonly playlist: Lateness; readonly part: Lateness };
}

/** Runs the viewers, who have `playlist` up to `sequence` and `part`, in a separate process. */
async function crowd(program: string, playlist: string, sequence: number, part: number, seconds: number): Promise<CrowdFigures> {
  const { pathname, search, port } = new URL(playlist);
  const args = [port, VIEWERS, pathname + search, sequence, part, seconds].map(String);
  const { stdout } = await promisify(execFile)(program, args);
  return JSON.parse(stdout) as CrowdFigures;
}

export async function run(options: BenchOptions): Promise<Report> {
  // All rounds in one run: 120 s and 5 rounds are ten minutes.
  const seconds = options.seconds * options.rounds;
  const source = await sourceFile(SOURCE);
  const programs = await CompiledPrograms.compile(['llhls-viewers']);
  const server = await startServer({ segmentDuration: 2, chunkDuration: 0.5, segmentCount: 10, withoutHls: true });
  const encoder = publishSource(source, server.rtmp('live'));
  try {
    const { video } = await until(
      'a playlist with parts',
      async () => {
        const found = await openSession(server.http('live', 'llhls.m3u8'));
        return readMediaPlaylist(await fetchText(found.video), found.video).segments.length >= 2 ? found : null;
      },
      { deadlineMs: 30_000, everyMs: 250 },
    );
    const idle = await cpuRate(server.pid, IDLE_SECONDS);
    const { lastSequence, lastPart } = readMediaPlaylist(await fetchText(video), video);
    const program = programs.path('llhls-viewers');
    const { cpuMs, result } = await cpuDuring(server.pid, idle, () => crowd(program, video, lastSequence, lastPart, seconds));
    const failures = Object.entries(result.failures);
    const failed = failures.reduce((sum, [, count]) => sum + count, 0);
    const requests = result.playlists + result.parts;
    const { part, playlist } = result.lateness;
    return {
      bench: 'llhls-crowd',
      figures: [
        { name: `requests that failed, ${VIEWERS} viewers`, value: failed, unit: 'requests', target: 0 },
        { name: 'viewers more than four parts behind at the end', value: result.behind, unit: 'viewers', target: 0 },
        { name: 'last byte of a part behind the time of its end, p50', value: part.p50, unit: 'ms' },
        { name: 'the same, p99', value: part.p99, unit: 'ms', target: 500 },
        { name: 'the same, max', value: part.max, unit: 'ms' },
        { name: 'playlist behind the end of its newest part, p99', value: playlist.p99, unit: 'ms' },
        { name: 'CPU of a request', value: (cpuMs * 1000) / requests, unit: 'us' },
        { name: 'memory of the server', value: memory(server.pid).resident, unit: 'MB' },
      ],
      notes: [
        `${result.playlists} playlists and ${result.parts} parts in ${seconds} s; viewers of the video alone, in one thread of this machine`,
        `the viewers used ${((result.cpuMs * 1000) / requests).toFixed(1)} us of CPU for a request`,
        ...failures.map(([reason, count]) => `failed: ${count} × ${reason}`),
      ],
    };
  } finally {
    await encoder.kill();
    await server.close();
    await programs.close();
  }
}
