/**
 * The cost of access control: admissions by a control server beside a viewer, and LL-HLS requests with signed URLs against unprotected
 * requests.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { signUrl } from '../src/access/signed-url.ts';
import { apiPath } from '../test/harness/api-client.ts';
import { until } from '../test/harness/poll.ts';
import { startServer, type TestServer } from '../test/harness/server.ts';
import { fetchText, openSession, readMediaPlaylist } from '../test/harness/viewer.ts';
import type { AdmissionAnswer, AdmissionOrder } from './lib/admission-load.ts';
import { LatencyProbe } from './lib/latency-probe.ts';
import { cpuDuring, cpuRate, median, percentile } from './lib/measure.ts';
import type { BenchOptions, Figure, Report } from './lib/report.ts';
import { publishSource, sourceFile } from './lib/source.ts';
import { load } from './lib/wrk.ts';

const PER_SECOND = 1000;
/** Allowed rise of a viewer's 99th percentile of frame delay, ms. */
const DELAY_TARGET_MS = 1;
/** Allowed CPU of a request that needs no signature, relative to an unprotected request. */
const COST_TARGET = 1.1;
/** Name of the protected virtual host; the open one is reached by its address. */
const HOST = 'localhost';
const KEYS = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'aKq#1kj' };
const HOUR_MS = 3_600_000;
/** A hundredth of fewer frames is a handful, which disturbances move by 3 ms either way. */
const WINDOW_SECONDS = 30;
const IDLE_SECONDS = 3;
const SLICE_SECONDS = 1;
/** Sessions of a slice are reported to the main thread twice a second: after this time their cost belongs to the slice. */
const SETTLE_MS = 1200;
/** Viewers with their own URLs in a slice: enough that the server has forgotten a URL before its next use. */
const VIEWERS = 20_000;
const MULTIVARIANT = 'multivariant playlist';
const OF_EACH = `${MULTIVARIANT} with a URL of each viewer`;
const OVERHEAD_SECONDS = 5;
/** All viewers come from one address. */
const UNLIMITED = '<Limits><PerAddress><Viewers>0</Viewers></PerAddress></Limits>';

/** A virtual host like that of the file, with access control. */
async function createProtected(server: TestServer, access: object): Promise<void> {
  await server.api.create('/v1/vhosts', [{ name: 'protected', host: { names: [HOST] }, ...access }]);
  const encodes = { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'audio', bypass: true }] };
  const profile = { name: 'bypass', outputStreamName: '${OriginStreamName}', encodes };
  const llhls = { chunkDuration: 0.5, segmentDuration: 4, segmentCount: 10 };
  await server.api.create(`${apiPath.vhost('protected')}/apps`, [
    { name: 'app', type: 'live', providers: { rtmp: {} }, publishers: { llhls }, outputProfiles: { outputProfile: [profile] } },
  ]);
}

async function answerOf<T extends AdmissionAnswer['type']>(child: ChildProcess, type: T): Promise<Extract<AdmissionAnswer, { type: T }>> {
  const [answer] = (await once(child, 'message')) as [AdmissionAnswer];
  if (answer.type !== type) throw new Error(`the load said ${answer.type}`);
  return answer as Extract<AdmissionAnswer, { type: T }>;
}

/** Measures the viewer before and during the admissions in each round. */
async function admissions({ seconds: asked, rounds }: BenchOptions): Promise<{ figure: Figure; note: string }> {
  const seconds = Math.max(asked, WINDOW_SECONDS);
  const child = fork(fileURLToPath(new URL('./lib/admission-load.ts', import.meta.url)));
  let server: TestServer | null = null;
  let probe: LatencyProbe | null = null;
  let encoder: ReturnType<typeof publishSource> | null = null;
  try {
    const { controlServerUrl } = await answerOf(child, 'listening');
    server = await startServer({ webrtc: {}, head: UNLIMITED });
    await createProtected(server, { admissionWebhooks: { controlServerUrl, secretKey: 'k', enables: { publishers: 'llhls' } } });
    encoder = publishSource(await sourceFile(), server.rtmp('live', 'app', HOST));
    const url = server.http('live', 'llhls.m3u8');
    await until('the stream', async () => (await fetch(server?.http('live', 'llhls.m3u8', 'app', HOST) ?? '')).status === 200, {
      deadlineMs: 30_000,
    });
    probe = await LatencyProbe.open(server, 'paced', 60 + rounds * (2 * (seconds + 1) + OVERHEAD_SECONDS));
    await probe.during(Math.max(2, seconds));
    const [before, during]: [number[], number[]] = [[], []];
    const told = { seconds: 0, admitted: 0, others: 0, asked: 0, closed: 0, missing: 0 };
    for (let round = 0; round < rounds; round += 1) {
      before.push(...(await probe.during(seconds)).delays);
      child.send({ type: 'start', url, host: HOST, perSecond: PER_SECOND } satisfies AdmissionOrder);
      const window = await probe.during(seconds);
      const done = answerOf(child, 'done');
      child.send({ type: 'stop' } satisfies AdmissionOrder);
      during.push(...window.delays);
      told.missing += window.missing;
      const { type: _, ...counts } = await done;
      for (const [name, count] of Object.entries(counts)) told[name as keyof typeof counts] += count;
    }
    const [usual, under] = [percentile(before, 99), percentile(during, 99)];
    const rate = (told.admitted / told.seconds).toFixed(0);
    return {
      figure: {
        ...{ name: `p99 of a WebRTC viewer, ${PER_SECOND} admissions a second`, value: under - usual, unit: 'ms', target: DELAY_TARGET_MS },
        remark: `${usual.toFixed(1)} → ${under.toFixed(1)} ms, ${told.missing} frames missing; ${rate} let in a second, ${told.others} refused`,
      },
      note: `admissions: viewers of LL-HLS, each asked about at a control server that takes 50 ms; it heard of ${told.asked} that came and ${told.closed} that left`,
    };
  } finally {
    probe?.close();
    await encoder?.kill();
    await server?.close();
    child.kill('SIGKILL');
  }
}

/** URLs of the same kinds of requests in one virtual host. Each first request begins a session. */
async function urlsOf(multivariant: string): Promise<Readonly<Record<string, string>>> {
  return await until(
    'a playlist with segments and parts',
    async () => {
      const { video } = await openSession(multivariant);
      const { parts, segments } = readMediaPlaylist(await fetchText(video), video);
      const [part, segment] = [parts.at(-2), segments.at(-1)];
      return part === undefined || segment === undefined ? null : { [MULTIVARIANT]: multivariant, 'media playlist': video, part };
    },
    { deadlineMs: 30_000, everyMs: 250 },
  );
}

/** The two requests of a turn, one for each virtual host. */
type Turn = Readonly<Record<'open' | 'signed', () => Promise<number>>>;

let viewers = 0;

/** Requests of viewers, each with a new URL. */
function viewersOf(url: string, keys?: typeof KEYS): string[] {
  return Array.from({ length: VIEWERS }, () => {
    viewers += 1;
    const own = `${url}?viewer=${viewers}`;
    const { pathname, search } = new URL(keys === undefined ? own : signUrl(own, { url_expire: Date.now() + HOUR_MS }, keys));
    return pathname + search;
  });
}

/** CPU of the server per request, µs; the virtual hosts take turns, so that disturbances hit both equally. */
async function costs({ seconds, rounds }: BenchOptions): Promise<Figure[]> {
  const server = await startServer({ segmentDuration: 4, segmentCount: 10, withoutHls: true, cpu: 0, head: UNLIMITED });
  const enables = { publishers: 'llhls' };
  const encoders: ReturnType<typeof publishSource>[] = [];
  try {
    await createProtected(server, { signedPolicy: { ...KEYS, enables } });
    const source = await sourceFile();
    for (const host of ['127.0.0.1', HOST]) encoders.push(publishSource(source, server.rtmp('live', 'app', host)));
    const open = server.http('live', 'llhls.m3u8');
    const signed = signUrl(server.http('live', 'llhls.m3u8', 'app', HOST), { url_expire: Date.now() + HOUR_MS }, KEYS);
    const samples = new Map<string, { readonly open: number[]; readonly signed: number[] }>();
    await Promise.all([urlsOf(open), urlsOf(signed)]);
    const idleRate = await cpuRate(server.pid, IDLE_SECONDS);
    const cost = async (url: string, targets?: readonly string[]): Promise<number> => {
      const { cpuMs, result } = await cpuDuring(server.pid, idleRate, async () => {
        const done = await load({ url, seconds: SLICE_SECONDS, ...(targets && { targets }) });
        await delay(SETTLE_MS);
        return done;
      });
      return (cpuMs * 1000) / result.requests;
    };
    // The order alternates, because sessions of one turn end during the next turns. `turnOf` returns the requests of a turn, because parts
    // leave the window.
    const compare = async (name: string, turnOf: () => Promise<Turn>, isFirst: boolean): Promise<void> => {
      const measured = samples.get(name) ?? { open: [], signed: [] };
      samples.set(name, measured);
      // Compiles JavaScript.
      if (isFirst) for (const warm of Object.values(await turnOf())) await warm();
      for (let turn = 0; turn * SLICE_SECONDS < seconds; turn += 1) {
        const ask = await turnOf();
        const order = turn % 2 === 0 ? (['open', 'signed'] as const) : (['signed', 'open'] as const);
        for (const kind of order) measured[kind].push(await ask[kind]());
      }
    };
    const turnOf = async (name: string): Promise<Turn> => {
      const [openUrl = '', signedUrl = ''] = [(await urlsOf(open))[name], (await urlsOf(signed))[name]];
      return { open: () => cost(openUrl), signed: () => cost(signedUrl) };
    };
    const ofEach = async (): Promise<Turn> => ({
      open: () => cost(open, viewersOf(open)),
      signed: () => cost(signed, viewersOf(server.http('live', 'llhls.m3u8', 'app', HOST), KEYS)),
    });
    const names = Object.keys(await urlsOf(open));
    for (let round = 0; round < rounds; round += 1) {
      for (const name of names) await compare(name, () => turnOf(name), round === 0);
      await compare(OF_EACH, ofEach, round === 0);
    }
    return [...samples].map(([name, { open: unsigned, signed: withKey }]) => ({
      ...{ name: `${name}, signed`, value: median(withKey), unit: 'us CPU/request', baseline: median(unsigned) },
      ...(name === OF_EACH ? {} : { target: COST_TARGET }),
    }));
  } finally {
    await Promise.all(encoders.map((encoder) => encoder.kill()));
    await server.close();
  }
}

export async function run(options: BenchOptions): Promise<Report> {
  const { figure, note } = await admissions(options);
  return {
    bench: 'access',
    figures: [figure, ...(await costs(options))],
    notes: [
      note,
      'signed: of a virtual host with SignedPolicy; baseline: the same request to one without, on the same server with one delivery thread',
    ],
  };
}
