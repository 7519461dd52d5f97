/** CPU per request of playlist, part and segment, against nginx serving the same bytes as files in the same run. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { until } from '../test/harness/poll.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { fetchText, openSession, readMediaPlaylist } from '../test/harness/viewer.ts';
import { cpuDuring, cpuRate, median } from './lib/measure.ts';
import { type StaticServer, startNginx } from './lib/nginx.ts';
import type { BenchOptions, Report } from './lib/report.ts';
import { publishSource, sourceFile } from './lib/source.ts';
import { load } from './lib/wrk.ts';

/** What is asked for. Browsers always take gzip; both servers then send the same compressed bytes. */
const RESOURCES = {
  playlist: { file: 'playlist.m3u8', encoding: 'identity', target: 2.5 },
  'playlist, gzip': { file: 'playlist.m3u8', encoding: 'gzip', target: 2.5 },
  part: { file: 'part.m4s', encoding: 'identity', target: 1.5 },
  segment: { file: 'segment.m4s', encoding: 'identity', target: 1.0 },
} as const;
type Resource = keyof typeof RESOURCES;
const NAMES = Object.keys(RESOURCES) as Resource[];
const IDLE_SECONDS = 3;
/** The servers take turns, so that a noisy moment of the machine hits all. */
const SLICE_SECONDS = 1;
/** The compiler of the JavaScript engine does its work in this time. */
const WARM_UP_SECONDS = 1;

/** URLs of the newest complete segment, its neighbour part and the playlist; their bytes are put into `folder`. */
async function discover(server: TestServer, folder: string): Promise<Record<Resource, string>> {
  const { video, parts, segments } = await until(
    'a playlist with segments and parts',
    async () => {
      const { video } = await openSession(server.http('live', 'llhls.m3u8'));
      const files = readMediaPlaylist(await fetchText(video), video);
      return files.segments.length >= 2 && files.parts.length >= 2 ? { video, ...files } : null;
    },
    { deadlineMs: 30_000, everyMs: 250 },
  );
  const urls = { playlist: video, 'playlist, gzip': video, part: parts.at(-2) ?? '', segment: segments.at(-1) ?? '' };
  for (const resource of NAMES) {
    const { file, encoding } = RESOURCES[resource];
    const { status, headers, body } = await rawGet(urls[resource], encoding);
    if (status !== 200 || (headers['content-encoding'] === 'gzip') !== (encoding === 'gzip')) {
      throw new Error(`${urls[resource]} answered ${status}, encoding ${headers['content-encoding']}`);
    }
    writeFileSync(path.join(folder, encoding === 'gzip' ? `${file}.gz` : file), body);
  }
  return urls;
}

function newFolder(root: string, name: string): string {
  const folder = path.join(root, name);
  mkdirSync(folder);
  return folder;
}

/** GETs a URL and leaves the body as it was sent. */
async function rawGet(url: string, encoding: string): Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer }> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    get(url, { headers: { 'accept-encoding': encoding } }, resolve).once('error', reject),
  );
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await buffer(answer) };
}

/** CPU microseconds per request of `url` on the process tree of `pid`. */
async function cost(
  pid: number,
  idleRate: number,
  request: { url: string; encoding: string },
  seconds: number,
): Promise<{ micros: number; perSecond: number }> {
  const headers = [`Accept-Encoding: ${request.encoding}`];
  const { cpuMs, result } = await cpuDuring(pid, idleRate, () => load({ url: request.url, seconds, headers }));
  return { micros: (cpuMs * 1000) / result.requests, perSecond: result.perSecond };
}

interface Samples {
  readonly millrace: number[];
  readonly sendfileOn: number[];
  readonly sendfileOff: number[];
  readonly perSecond: number[];
}

async function measure(options: BenchOptions, server: TestServer, root: string, on: StaticServer, off: StaticServer) {
  const samples = Object.fromEntries(
    NAMES.map((resource) => [resource, { millrace: [], sendfileOn: [], sendfileOff: [], perSecond: [] }]),
  ) as unknown as Record<Resource, Samples>;
  const warmUp = await discover(server, newFolder(root, 'warm-up'));
  for (const resource of NAMES) await cost(server.pid, 0, { url: warmUp[resource], ...RESOURCES[resource] }, WARM_UP_SECONDS);
  const idleRate = await cpuRate(server.pid, IDLE_SECONDS);
  for (let round = 0; round < options.rounds; round += 1) {
    for (const resource of NAMES) {
      const { file, encoding } = RESOURCES[resource];
      // nginx keeps open files and their sizes: a file is never written twice.
      const name = `${round}-${NAMES.indexOf(resource)}`;
      const urls = await discover(server, newFolder(root, name));
      for (let slice = 0; slice < options.seconds; slice += 1) {
        const ours = await cost(server.pid, idleRate, { url: urls[resource], encoding }, SLICE_SECONDS);
        samples[resource].millrace.push(ours.micros);
        samples[resource].perSecond.push(ours.perSecond);
        samples[resource].sendfileOn.push(
          (await cost(on.child.pid, 0, { url: `${on.base}/${name}/${file}`, encoding }, SLICE_SECONDS)).micros,
        );
        samples[resource].sendfileOff.push(
          (await cost(off.child.pid, 0, { url: `${off.base}/${name}/${file}`, encoding }, SLICE_SECONDS)).micros,
        );
      }
    }
  }
  return samples;
}

export async function run(options: BenchOptions): Promise<Report> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-bench-'));
  const root = path.join(folder, 'root');
  mkdirSync(root);
  const source = await sourceFile();
  const server = await startServer({ segmentDuration: 4, segmentCount: 10, withoutHls: true, cpu: 0 });
  const encoder = publishSource(source, server.rtmp('live'));
  const servers: StaticServer[] = [];
  try {
    const on = await startNginx(folder, root, 'on');
    servers.push(on);
    const off = await startNginx(folder, root, 'off');
    servers.push(off);
    const samples = await measure(options, server, root, on, off);
    return {
      bench: 'llhls-origin',
      figures: NAMES.map((resource) => ({
        name: resource,
        value: median(samples[resource].millrace),
        unit: 'us CPU/request',
        baseline: Math.min(median(samples[resource].sendfileOn), median(samples[resource].sendfileOff)),
        target: RESOURCES[resource].target,
      })),
      notes: [
        'baseline: nginx with one worker and the same bytes as static files, the better of sendfile on and off; ours: on one CPU, hence with one delivery thread',
        ...NAMES.map(
          (resource) =>
            `${resource}: nginx sendfile on ${median(samples[resource].sendfileOn).toFixed(1)}, off ${median(samples[resource].sendfileOff).toFixed(1)} us; ` +
            `ours ${median(samples[resource].perSecond).toFixed(0)} requests/s beside the load generator`,
        ),
      ],
    };
  } finally {
    await Promise.all(servers.map(({ child }) => child.stop()));
    await encoder.kill();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
