/**
 * `/metrics` of a server with real publishers and viewers, checked by Prometheus' own tool, and by all queries of our dashboard and rules.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { apiPath } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { figure } from '../harness/metrics-page.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { Prometheus, type Sample } from '../harness/prometheus.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { ROOT, startServer, type TestServer } from '../harness/server.ts';
import { fetchText, openSession } from '../harness/viewer.ts';
import { openWebrtcBrowser, type WebrtcBrowser } from '../harness/webrtc-browser.ts';

const TOKEN = 'metrics-only';
const STREAMS = ['live', 'over-srt', 'camera'];
/** Metrics that appear only with control servers, refusals and stand-ins. */
const NEEDS_MORE = /^millrace_(admission_|access_refused_|stream_stand_in_)/;
const REFERENCE = path.join(ROOT, 'docs/reference/metrics.md');

let server: TestServer;
let metricsPort = 0;
/** Target port of a push, without a listener. */
let receiver = 0;
let srt = { ingest: 0, egress: 0 };
let browser: WebrtcBrowser;
const folder = mkdtempSync(path.join(tmpdir(), 'millrace-metrics-'));
const encoders: FfmpegPublisher[] = [];
const players: Child[] = [];

interface Asked {
  readonly port?: number;
  /** Null: no token. */
  readonly token?: string | null;
  readonly accept?: string;
  readonly path?: string;
}

async function ask({ port = server.ports.api, token = TOKEN, accept, path: wanted = '/metrics' }: Asked = {}): Promise<Response> {
  const headers = { ...(token !== null && { authorization: `Bearer ${token}` }), ...(accept !== undefined && { accept }) };
  return await fetch(`http://127.0.0.1:${port}${wanted}`, { headers });
}

async function page(): Promise<string> {
  return await (await ask()).text();
}

/** Names of metrics in a PromQL expression; names of histograms without their suffixes. */
function metricsIn(expression: string): string[] {
  return [...expression.matchAll(/\b(?:millrace|process)_\w+/g)].map(([name]) => name);
}

/** All values of members `expr` or `definition` in a JSON document. */
function expressions(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => (['expr', 'definition'].includes(key) ? [String(member)] : expressions(member)));
}

/** The queries of a dashboard's panels. */
function targets(value: unknown): { readonly expr: string; readonly legendFormat: string }[] {
  if (typeof value !== 'object' || value === null) return [];
  const { expr, legendFormat = '' } = value as { readonly expr?: unknown; readonly legendFormat?: unknown };
  if (typeof expr === 'string') return [{ expr, legendFormat: String(legendFormat) }];
  return Object.values(value).flatMap(targets);
}

function promtool(args: readonly string[], input = ''): { readonly status: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(requireProgram('promtool'), args, { input, encoding: 'utf8' });
  return { status, text: stdout + stderr };
}

beforeAll(async () => {
  const [ingest = 0, egress = 0, own = 0, nobody = 0] = await freePorts(4);
  srt = { ingest, egress };
  metricsPort = own;
  receiver = nobody;
  const settings = `<AccessToken>${TOKEN}</AccessToken><MaxStreams>${STREAMS.length}</MaxStreams>`;
  server = await startServer({
    ...{ segmentDuration: 1, chunkDuration: 0.2, srt, webrtc: {}, push: '', recordRoot: folder },
    metrics: { port: metricsPort, settings },
  });
  browser = await openWebrtcBrowser();
  encoders.push(publish({ url: server.rtmp('live'), width: 320, height: 180 }));
  const picture = ['-re', '-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30', '-c:v', 'libx264', '-preset', 'ultrafast'];
  const to = `srt://127.0.0.1:${srt.ingest}?streamid=default/app/over-srt`;
  players.push(new Child(requireProgram('ffmpeg'), ['-v', 'error', ...picture, '-g', '30', '-pix_fmt', 'yuv420p', '-f', 'mpegts', to]));
  const publishing = await browser.open();
  await publishing.whip(`http://127.0.0.1:${server.ports.http}/app/camera?direction=whip`, { audio: false });
  const names = async (): Promise<boolean> => {
    const streams = await server.api.get<string[]>(`${apiPath.app('default', 'app')}/streams`);
    return STREAMS.every((name) => streams.includes(name));
  };
  await until('all streams', names, { deadlineMs: 30_000 });
}, 90_000);

afterAll(async () => {
  await browser?.close();
  for (const player of players) await player.kill();
  for (const encoder of encoders) await encoder.stop();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('streams watched over every protocol have metrics', { timeout: 120_000 }, async () => {
  const from = `srt://127.0.0.1:${srt.egress}?streamid=default/app/live`;
  players.push(new Child(requireProgram('ffmpeg'), ['-v', 'error', '-i', from, '-c', 'copy', '-f', 'null', '-']));
  const watched = await browser.open();
  await watched.whep(`http://127.0.0.1:${server.ports.http}/app/live?direction=whep`);
  const recording = { id: 'r', stream: { name: 'live' }, filePath: '/live.ts' };
  await server.api.create(`${apiPath.app('default', 'app')}:startRecord`, recording);
  const push = { id: 'p', stream: { name: 'live' }, protocol: 'mpegts', url: `udp://127.0.0.1:${receiver}` };
  await server.api.create(`${apiPath.app('default', 'app')}:startPush`, push);
  const { video } = await until('a playlist', () => openSession(server.http('live', 'llhls.m3u8')).catch(() => null), {
    deadlineMs: 20_000,
  });
  const live = ['app="app"', 'stream="live"'];
  const text = await until(
    'figures of everybody',
    async () => {
      await fetchText(video);
      const told = await page();
      const reports = ['webrtc_rtt_seconds_count', 'llhls_part_lateness_seconds_count', 'webrtc_least_bandwidth_estimate_bytes_per_second'];
      const reported = reports.every((name) => (figure(told, `millrace_${name}`) ?? 0) > 0);
      const sent = ['llhls', 'webrtc', 'srt'].every(
        (kind) => figure(told, 'millrace_stream_sessions', ...live, `protocol="${kind}"`) === 1,
      );
      return reported && sent && (figure(told, 'millrace_srt_rtt_seconds', 'direction="playback"') ?? 0) > 0 ? told : null;
    },
    { deadlineMs: 60_000, everyMs: 500 },
  );
  const told = (name: string, ...labels: readonly string[]): number => figure(text, `millrace_${name}`, ...labels) ?? Number.NaN;
  expect(told('sources', 'protocol="rtmp"')).toBe(1);
  expect(told('sources', 'protocol="srt"')).toBe(1);
  expect(told('application_streams', 'app="app"')).toBe(3);
  expect(told('sources', 'protocol="webrtc"')).toBe(1);
  expect(told('webrtc_received_packets_total', 'stream="camera"')).toBeGreaterThan(20);
  expect(told('webrtc_least_bandwidth_estimate_bytes_per_second', ...live)).toBeGreaterThan(1000);
  expect(told('recordings', 'state="recording"')).toBe(1);
  expect(told('pushes', 'state="pushing"')).toBe(1);
  expect(told('push_sent_bytes_total')).toBeGreaterThan(1000);
  expect(told('stream_received_bytes_total', ...live)).toBeGreaterThan(50_000);
  expect(told('stream_sent_bytes_total', ...live)).toBeGreaterThan(50_000);
  expect(told('received_bytes_total')).toBeGreaterThanOrEqual(told('stream_received_bytes_total'));
  expect(told('stream_received_packets_total', ...live)).toBeGreaterThan(60);
  expect(told('stream_output_packets_total', ...live)).toBeGreaterThan(60);
  expect(told('stream_source_connected')).toBe(3);
  expect(told('stream_video_frames_per_second', ...live)).toBeGreaterThan(5);
  expect(told('stream_keyframe_interval_seconds', ...live)).toBeCloseTo(1, 1);
  expect(told('webrtc_sent_packets_total', ...live)).toBeGreaterThan(30);
  expect(told('webrtc_longest_rtt_seconds', ...live)).toBeLessThan(5);
  expect(told('llhls_parts_total', ...live)).toBeGreaterThan(5);
  expect(told('http_responses_total', 'class="2xx"')).toBeGreaterThan(1);
  expect(told('http_requests_total')).toBeGreaterThanOrEqual(told('http_responses_total', 'class="2xx"'));
  expect(told('http_connections')).toBeGreaterThanOrEqual(1);
  expect(told('srt_received_packets_total', 'direction="ingest"', 'stream="over-srt"')).toBeGreaterThan(50);
  expect(told('event_loop_delay_seconds_count')).toBeGreaterThan(10);
  expect(figure(text, 'process_open_fds')).toBeGreaterThan(20);
  expect(figure(text, 'process_resident_memory_bytes')).toBeGreaterThan(50e6);
  expect(text).toMatch(/^millrace_build_info\{version="[\d.]+",revision="[0-9a-f]*",node="v\d+/m);
});

test('promtool accepts the metrics, the rules and the configuration', async () => {
  expect(promtool(['check', 'metrics'], await page())).toEqual({ status: 0, text: '' });
  const rules = promtool(['check', 'rules', path.join(ROOT, 'docs/monitoring/alert-rules.yml')]);
  expect([rules.status, rules.text]).toEqual([0, expect.stringMatching(/SUCCESS: \d+ rules found/)]);
  expect(promtool(['check', 'config', path.join(ROOT, 'docs/monitoring/prometheus.yml')]).status).toBe(0);
});

test('all metrics of the dashboard and the rules exist', async () => {
  const text = await page();
  const dashboard: unknown = JSON.parse(readFileSync(path.join(ROOT, 'docs/monitoring/grafana-dashboard.json'), 'utf8'));
  const rules = [...readFileSync(path.join(ROOT, 'docs/monitoring/alert-rules.yml'), 'utf8').matchAll(/expr: (.*)$/gm)].map(
    ([, expr = '']) => expr,
  );
  const names = new Set([...expressions(dashboard), ...rules].flatMap(metricsIn));
  expect(names.size).toBeGreaterThan(50);
  const known = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
  const called = (name: string): string => (known.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''));
  expect([...names].filter((name) => !known.has(called(name)))).toEqual([]);
  expect([...names].filter((name) => !NEEDS_MORE.test(name) && figure(text, name) === null)).toEqual([]);
});

test('Prometheus scrapes it: every expression of the dashboard has values, and every rule is evaluated', {
  timeout: 120_000,
}, async () => {
  const prometheus = await Prometheus.start(`127.0.0.1:${server.ports.api}`, TOKEN);
  const { video } = await openSession(server.http('live', 'llhls.m3u8'));
  const watching = setInterval(() => void fetchText(video).catch(() => ''), 500);
  try {
    const dashboard: unknown = JSON.parse(readFileSync(path.join(ROOT, 'docs/monitoring/grafana-dashboard.json'), 'utf8'));
    const asked = targets(dashboard);
    expect(asked.length).toBeGreaterThan(50);
    const nameless: string[] = [];
    for (const { expr: expression, legendFormat } of asked) {
      // Variables are replaced as Grafana does it.
      const filled = expression.replaceAll('$__rate_interval', '20s').replaceAll(/\$(instance|app|stream)\b/g, '.*');
      expect(filled).not.toContain('$');
      // A rare event takes a while to occur twice within the window.
      const isFigure = (answer: readonly Sample[]): boolean => answer.some(({ value }) => value[1] !== 'NaN');
      const needsMore = metricsIn(expression).every((name) => NEEDS_MORE.test(name));
      const told = async () => prometheus.query(filled).then((found) => (isFigure(found) ? found : null));
      const answer = needsMore ? await prometheus.query(filled) : await until(expression, told, { deadlineMs: 40_000, everyMs: 300 });
      // Labels by which curves are summed and named must exist.
      const grouped = /\bby \(([^)]*)\)/.exec(expression)?.[1]?.split(', ') ?? [];
      const called = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
      for (const label of [...grouped, ...called]) {
        if (label !== 'le' && answer.some(({ metric }) => !(label in metric))) nameless.push(`${label} of ${expression}`);
      }
    }
    expect(nameless).toEqual([]);
    // A variable of the dashboard must name an existing metric and label.
    for (const [, selector = '', label = ''] of expressions(dashboard)
      .join('\n')
      .matchAll(/label_values\((.*), (\w+)\)$/gm)) {
      const series = await prometheus.query(selector.replaceAll(/\$(instance|app)\b/g, '.*'));
      expect([selector, series.length > 0 && series.every(({ metric }) => label in metric)]).toEqual([selector, true]);
    }
    const rules = await until('all rules are judged', async () => {
      const loaded = await prometheus.rules();
      return loaded.every(({ health }) => health !== 'unknown') ? loaded : null;
    });
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
    expect(rules.filter(({ state, name }) => state === 'firing' && name !== 'MillraceStreamsUnlabelled')).toEqual([]);
  } finally {
    clearInterval(watching);
    await prometheus.close();
  }
});

test('the reference lists every metric with its kind and its help text', async () => {
  const text = await page();
  const told = [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\w+)$/gm)].map(
    ([, name, help, type]) => `| \`${name}\` | ${type} | ${help} |`,
  );
  const rows = readFileSync(REFERENCE, 'utf8')
    .split('\n')
    .filter((line) => /^\| `(millrace|process)_/.test(line));
  expect(rows.toSorted()).toEqual(told.toSorted());
});

test('OpenMetrics is served when the client accepts it', async () => {
  const plain = await ask({ accept: 'text/plain' });
  expect(plain.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
  // The Accept header of Prometheus.
  const accept =
    'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
  const open = await ask({ accept });
  expect(open.headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
  const text = await open.text();
  expect(text).toMatch(/^# TYPE millrace_sent_bytes counter\nmillrace_sent_bytes_total \d+$/m);
  expect(text.endsWith('\n# EOF\n')).toBe(true);
});

test('the metrics token is valid for metrics only, on both ports', async () => {
  const status = async (asked: Asked): Promise<number> => (await ask(asked)).status;
  expect(await status({})).toBe(200);
  expect(await status({ port: metricsPort })).toBe(200);
  expect(await status({ token: null })).toBe(401);
  expect(await status({ token: 'wrong', port: metricsPort })).toBe(401);
  expect(await status({ token: null, port: metricsPort })).toBe(401);
  const other = await ask({ path: '/v1/vhosts' });
  expect([other.status, await other.json()]).toMatchObject([403, { message: expect.stringContaining('may only be used for /metrics') }]);
  expect(await status({ path: '/v1/vhosts', port: metricsPort })).toBe(403);
  const api = { headers: { authorization: server.api.authorization } };
  expect((await fetch(`http://127.0.0.1:${metricsPort}/v1/vhosts`, api)).status).toBe(404);
  expect((await fetch(`http://127.0.0.1:${metricsPort}/metrics`, api)).status).toBe(200);
});

test('streams beyond the limit are summed up as "all others"', { timeout: 60_000 }, async () => {
  encoders.push(publish({ url: server.rtmp('fourth'), width: 320, height: 180 }));
  const others = ['stream="all others"'];
  const text = await until(
    'figures of the fourth',
    async () => {
      const told = await page();
      return (figure(told, 'millrace_stream_received_bytes_total', ...others) ?? 0) > 10_000 ? told : null;
    },
    { deadlineMs: 30_000, everyMs: 300 },
  );
  expect(text).not.toContain('stream="fourth"');
  expect(figure(text, 'millrace_metrics_streams_without_labels')).toBe(1);
  expect(figure(text, 'millrace_metrics_labels_refused_total')).toBe(1);
  expect(figure(text, 'millrace_streams')).toBe(4);
  for (const stream of STREAMS) expect(figure(text, 'millrace_stream_received_bytes_total', `stream="${stream}"`)).toBeGreaterThan(0);
  expect(promtool(['check', 'metrics'], text)).toEqual({ status: 0, text: '' });
});
