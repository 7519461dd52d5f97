/** CPU per request of playlist, part and segment, against nginx with the same bytes as files in the same run. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { selfSigned } from '../test/fakes/self-signed.ts';
import { until } from '../test/harness/poll.ts';
import { freePorts } from '../test/harness/ports.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { fetchText, openSession, readMediaPlaylist } from '../test/harness/viewer.ts';
import { loadHttp2 } from './lib/h2load.ts';
import { cpuDuring, cpuRate, median } from './lib/measure.ts';
import { type StaticServer, startNginx } from './lib/nginx.ts';
import type { BenchOptions, Report } from './lib/report.ts';
import { publishSource, sourceFile } from './lib/source.ts';
import { load } from './lib/wrk.ts';

/** The requested resources and their encodings. Browsers always accept gzip; both servers then send the same compressed bytes. */
const RESOURCES = {
  playlist: { file: 'playlist.m3u8', encoding: 'identity', target: 1.3, by: 'http' },
  'playlist, gzip': { file: 'playlist.m3u8', encoding: 'gzip', target: 1.3, by: 'http' },
  part: { file: 'part.m4s', encoding: 'identity', target: 1.15, by: 'http' },
  segment: { file: 'segment.m4s', encoding: 'identity', target: 1.0, by: 'http' },
  'playlist, gzip, TLS': { file: 'playlist.m3u8', encoding: 'gzip', target: 3, by: 'tls' },
  'part, TLS': { file: 'part.m4s', encoding: 'identity', target: 2, by: 'tls' },
  'playlist, gzip, HTTP/2': { file: 'playlist.m3u8', encoding: 'gzip', target: 3, by: 'http2' },
  'part, HTTP/2': { file: 'part.m4s', encoding: 'identity', target: 2, by: 'http2' },
} as const;
type Resource = keyof typeof RESOURCES;
const NAMES = Object.keys(RESOURCES) as Resource[];
const IDLE_SECONDS = 3;
/** The servers take turns, so that disturbances hit all equally. */
const SLICE_SECONDS = 1;
/** Time in which JavaScript is compiled. */
const WARM_UP_SECONDS = 1;

/** URLs of the newest complete segment, a part near it and the playlist; writes their bytes into `folder`. */
async function discover(server: TestServer, tlsBase: string, folder: string): Promise<Record<Resource, string>> {
  const { video, parts, segments } = await until(
    'a playlist with segments and parts',
    async () => {
      const { video } = await openSession(server.http('live', 'llhls.m3u8'));
      const files = readMediaPlaylist(await fetchText(video), video);
      return files.segments.length >= 2 && files.parts.length >= 2 ? { video, ...files } : null;
    },
    { deadlineMs: 30_000, everyMs: 250 },
  );
  const byFile = { 'playlist.m3u8': video, 'part.m4s': parts.at(-2) ?? '', 'segment.m4s': segments.at(-1) ?? '' };
  const urls = Object.fromEntries(NAMES.map((resource) => [resource, byFile[RESOURCES[resource].file]])) as Record<Resource, string>;
  for (const resource of NAMES) {
    const { file, encoding } = RESOURCES[resource];
    const { status, headers, body } = await rawGet(urls[resource], encoding);
    if (status !== 200 || (headers['content-encoding'] === 'gzip') !== (encoding === 'gzip')) {
      throw new Error(`${urls[resource]} answered ${status}, encoding ${headers['content-encoding']}`);
    }
    writeFileSync(path.join(folder, encoding === 'gzip' ? `${file}.gz` : file), body);
  }
  for (const resource of NAMES)
    if (RESOURCES[resource].by !== 'http')
      urls[resource] = `${tlsBase}${new URL(urls[resource]).pathname}${new URL(urls[resource]).search}`;
  return urls;
}

function newFolder(root: string, name: string): string {
  const folder = path.join(root, name);
  mkdirSync(folder);
  return folder;
}

/** GETs a URL; the body keeps its encoding. */
async function rawGet(url: string, encoding: string): Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer }> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    get(url, { headers: { 'accept-encoding': encoding } }, resolve).once('error', reject),
  );
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await buffer(answer) };
}

/** CPU per request of `url`, µs, in the process tree of `pid`. */
async function cost(
  pid: number,
  idleRate: number,
  request: { url: string; encoding: string; by: 'http' | 'tls' | 'http2' },
  seconds: number,
): Promise<{ micros: number; perSecond: number }> {
  const options = { url: request.url, seconds, headers: [`Accept-Encoding: ${request.encoding}`] };
  const { cpuMs, result } = await cpuDuring(pid, idleRate, () => (request.by === 'http2' ? loadHttp2(options) : load(options)));
  return { micros: (cpuMs * 1000) / result.requests, perSecond: result.perSecond };
}

/** CPU of ours and of each nginx for one resource, and our share beside the load generator. */
interface Samples {
  readonly millrace: number[];
  readonly nginx: Map<string, number[]>;
  readonly perSecond: number[];
}

interface Origins {
  readonly server: TestServer;
  readonly tlsBase: string;
  /** Names in notes. */
  readonly plain: readonly (readonly [name: string, server: StaticServer])[];
  readonly secure: readonly (readonly [name: string, server: StaticServer])[];
}

async function measure(options: BenchOptions, root: string, { server, tlsBase, plain, secure }: Origins) {
  const samples = Object.fromEntries(
    NAMES.map((resource) => [resource, { millrace: [], nginx: new Map<string, number[]>(), perSecond: [] }]),
  ) as unknown as Record<Resource, Samples>;
  const warmUp = await discover(server, tlsBase, newFolder(root, 'warm-up'));
  for (const resource of NAMES) await cost(server.pid, 0, { ...RESOURCES[resource], url: warmUp[resource] }, WARM_UP_SECONDS);
  const idleRate = await cpuRate(server.pid, IDLE_SECONDS);
  for (let round = 0; round < options.rounds; round += 1) {
    for (const resource of NAMES) {
      const { file, encoding, by } = RESOURCES[resource];
      const { millrace, nginx, perSecond } = samples[resource];
      // nginx caches open files and their sizes, so a file is never rewritten.
      const name = `${round}-${NAMES.indexOf(resource)}`;
      const urls = await discover(server, tlsBase, newFolder(root, name));
      for (let slice = 0; slice < options.seconds; slice += 1) {
        const ours = await cost(server.pid, idleRate, { url: urls[resource], encoding, by }, SLICE_SECONDS);
        millrace.push(ours.micros);
        perSecond.push(ours.perSecond);
        for (const [called, { child, base }] of by === 'http' ? plain : secure) {
          const theirs = await cost(child.pid, 0, { url: `${base}/${name}/${file}`, encoding, by }, SLICE_SECONDS);
          nginx.set(called, [...(nginx.get(called) ?? []), theirs.micros]);
        }
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
  const tls = { cert: path.join(folder, 'cert.pem'), key: path.join(folder, 'key.pem') };
  const { cert, key } = selfSigned('localhost');
  writeFileSync(tls.cert, cert);
  writeFileSync(tls.key, key);
  const [rtmp = 0, http = 0] = await freePorts(2);
  const host = `<TLS><CertPath>${tls.cert}</CertPath><KeyPath>${tls.key}</KeyPath></TLS>`;
  const server = await startServer({ segmentDuration: 4, segmentCount: 10, withoutHls: true, cpu: 0, tls: { rtmp, http, host } });
  const encoder = publishSource(source, server.rtmp('live'));
  const servers: StaticServer[] = [];
  try {
    const on = await startNginx(folder, root, 'on');
    servers.push(on);
    const off = await startNginx(folder, root, 'off');
    servers.push(off);
    const secure = await startNginx(folder, root, 'on', tls);
    servers.push(secure);
    const samples = await measure(options, root, {
      server,
      tlsBase: `https://127.0.0.1:${http}`,
      plain: [
        ['sendfile on', on],
        ['off', off],
      ],
      secure: [['TLS', secure]],
    });
    return {
      bench: 'llhls-origin',
      figures: NAMES.map((resource) => ({
        name: resource,
        value: median(samples[resource].millrace),
        unit: 'us CPU/request',
        baseline: Math.min(...[...samples[resource].nginx.values()].map(median)),
        target: RESOURCES[resource].target,
      })),
      notes: [
        'baseline: nginx with one worker and the same bytes as static files, the better of sendfile on and off, or with TLS; ours: on one CPU, hence with one delivery thread',
        ...NAMES.map((resource) => {
          const { nginx, perSecond } = samples[resource];
          const theirs = [...nginx].map(([name, micros]) => `${name} ${median(micros).toFixed(1)}`).join(', ');
          return `${resource}: nginx ${theirs} us; ours ${median(perSecond).toFixed(0)} requests/s beside the load generator`;
        }),
      ],
    };
  } finally {
    await Promise.all(servers.map(({ child }) => child.stop()));
    await encoder.kill();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
