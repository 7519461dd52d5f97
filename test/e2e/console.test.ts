/** The web console in a real browser, with a real encoder: the login, and the first page. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { ConsoleBrowser, type ConsolePage, type PageOptions } from '../harness/console-browser.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { ACCESS_TOKEN } from '../harness/server-xml.ts';

const DEADLINE = { deadlineMs: 30_000 };

let server: TestServer;
let browser: ConsoleBrowser;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer({ webrtc: {} }), ConsoleBrowser.start()]);
  encoder = publish({ url: server.rtmp('live'), width: 640, height: 360, fps: 10, gop: 10, videoKbps: 300 });
  await encoder.sent(10);
});

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([browser?.close(), server?.close()]);
});

async function open(hash = '#/', options: PageOptions = {}): Promise<ConsolePage> {
  const opened = await browser.open(`${server.api.base}/console/${hash}`, options);
  onTestFinished(() => opened.close());
  return opened;
}

test('a wrong token shows an error; the right token opens the overview and is kept for the tab only', async () => {
  const { page, complaints } = await open('#/', { token: null });
  await page.getByLabel('Access token').fill('wrong');
  await page.getByRole('button', { name: 'Log in' }).click();
  await expect.poll(() => page.getByRole('alert').textContent()).toBe('This is not an access token of this server.');
  await page.getByLabel('Access token').fill(ACCESS_TOKEN);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const kept = () => page.evaluate('[sessionStorage.getItem("millrace.token"), localStorage.length, document.cookie]');
  expect(await kept()).toEqual([ACCESS_TOKEN, 0, '']);
  await page.reload();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('Access token').waitFor();
  expect(await kept()).toEqual([null, 0, '']);
  expect(page.url()).not.toContain(ACCESS_TOKEN);
  // The refusal of the wrong token is the only one.
  expect(complaints.filter((text) => !text.includes('401'))).toEqual([]);
});

test('a token is remembered on the device when the user asks for it, and forgotten after logout', async () => {
  const { page, context } = await open('#/', { token: null });
  await page.getByLabel('Access token').fill(ACCESS_TOKEN);
  await page.getByLabel('Remember on this device').check();
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  const other = await context.newPage();
  await other.goto(page.url());
  await other.getByRole('heading', { name: 'Overview' }).waitFor();
  await other.getByRole('button', { name: 'Log out' }).click();
  expect(await other.evaluate('localStorage.length')).toBe(0);
});

test('an expired token leads back to the login', async () => {
  const { page } = await open();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.route('**/v1/stats/**', (route) => route.fulfill({ status: 401, json: { message: 'no', statusCode: 401 } }));
  await expect.poll(() => page.getByRole('alert').textContent()).toBe('The server no longer accepts this token.');
  expect(await page.evaluate('sessionStorage.length')).toBe(0);
});

test('the overview shows the streams with their tracks and bitrates', async () => {
  const { page, complaints } = await open();
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'live', exact: true }) });
  await expect.poll(() => row.textContent()).toMatch(/RTMPH264 640×360 10 fpsAAC 48 kHz[\d.]+ kbit\/s/);
  expect(await page.getByRole('table').textContent()).toContain('default / app');
  expect(await page.getByRole('status').first().textContent()).toBe('Healthy');
  const legend = page.getByRole('figure').filter({ hasText: 'Throughput' }).getByRole('listitem').first();
  const kilobits = await until(
    'throughput',
    async () => Number(/In ([\d.]+) kbit/.exec((await legend.textContent()) ?? '')?.[1] ?? 0) || null,
    DEADLINE,
  );
  expect(kilobits).toBeGreaterThan(100);
  // Looks for the colour of the line on the canvas: the chart must be drawn.
  const colours = `(() => { const c = document.querySelector('canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    const seen = new Set(); for (let n = 0; n < d.length; n += 4) if (d[n + 3] > 200) seen.add(d[n] + ',' + d[n + 1] + ',' + d[n + 2]); return seen.has('11,107,203'); })()`;
  await until('a line on the canvas', async () => ((await page.evaluate(colours)) === true ? true : null), DEADLINE);
  expect(complaints).toEqual([]);
});

test('bitrates are per second, independent of the interval of the statistics', async () => {
  const opened = await browser.open('about:blank');
  onTestFinished(() => opened.close());
  const { page } = opened;
  await page.route(/\/streams\?names=/, async (route) => {
    const answer = await route.fetch();
    const json = (await answer.json()) as { response: { statistics: object }[] };
    const figures = { lastThroughputOut: 1_000_000, avgThroughputOut: 4_000_000 };
    for (const { statistics } of json.response) Object.assign(statistics, figures);
    return route.fulfill({ response: answer, json });
  });
  await page.goto(`${server.api.base}/console/`);
  const row = page.getByRole('row').filter({ has: page.getByRole('link', { name: 'live', exact: true }) });
  await expect.poll(() => row.textContent()).toContain('4 Mbit/s');
});

test('process metrics have charts, and missing metrics are named', async () => {
  const opened = await browser.open('about:blank');
  onTestFinished(() => opened.close());
  const { page } = opened;
  const started = performance.now();
  const nothing = { statusCode: 200, message: 'OK', response: { intervalMs: 10_000, samples: [] } };
  await page.route('**/v2/internals/history', (route) => route.fulfill({ json: nothing }));
  await page.route('**/metrics', (route) => {
    const late = Math.floor(performance.now() - started);
    const buckets = ['0.01', '0.02', '+Inf'].map((le) => `millrace_event_loop_delay_seconds_bucket{le="${le}"} ${late}`);
    const cpu = `process_cpu_seconds_total ${(performance.now() - started) / 2000}`;
    const loop = `millrace_event_loop_active_seconds_total ${(performance.now() - started) / 4000}`;
    return route.fulfill({ contentType: 'text/plain', body: [cpu, loop, ...buckets, ''].join('\n') });
  });
  await page.goto(`${server.api.base}/console/`);
  const legend = (title: string) => page.getByRole('figure').filter({ hasText: title }).getByRole('listitem').allTextContents();
  const [percent = 0, busy = 0] = await until(
    'CPU',
    async () => {
      const [cpu = '', loop = ''] = await legend('CPU');
      const shares = [/^of a core ([\d.]+) %$/.exec(cpu), /^event loop ([\d.]+) %$/.exec(loop)].map((found) => Number(found?.[1] ?? 0));
      return shares.every((share) => share > 0) ? shares : null;
    },
    DEADLINE,
  );
  expect(percent).toBeGreaterThan(10);
  expect(percent).toBeLessThan(250);
  expect(busy).toBeGreaterThan(5);
  expect(busy).toBeLessThan(125);
  await expect.poll(() => legend('Event loop delay')).toEqual(['p99 9.9 ms']);
  await page.getByText('Not in its /metrics: Memory.').waitFor();
});

test('refused publishers show the reason of the server, and new streams appear in the list', async () => {
  const { page } = await open();
  await page.getByRole('link', { name: 'live', exact: true }).waitFor();
  const listed = page.waitForRequest((request) => request.url().endsWith('/apps/app/streams'));
  const coming = publish({ url: server.rtmp('coming'), width: 640, height: 360, fps: 5, gop: 5, videoKbps: 100, withoutAudio: true });
  onTestFinished(async () => void (await coming.stop()));
  await page.getByRole('link', { name: 'coming', exact: true }).waitFor();
  await listed;
  const refused = publish({ url: server.rtmp('coming', 'nowhere'), width: 640, height: 360, fps: 5, gop: 5, videoKbps: 100 });
  onTestFinished(async () => void (await refused.stop()));
  await expect
    .poll(() => page.getByRole('log').textContent(), { timeout: 30_000 })
    .toMatch(/1 publisher of nowhere\/coming refused over RTMP: .*no application/);
  // While the page is open, and for later visitors.
  const later = await open();
  await expect.poll(() => later.page.getByRole('log').textContent()).toContain('nowhere/coming');
  expect(await later.violations()).toEqual([]);
});

test('the log is followed, from a level on, by words, and held', async () => {
  const opened = await open('#/log', { width: 390, scheme: 'dark' });
  const { page, complaints } = opened;
  const log = page.getByRole('log');
  await expect.poll(() => log.textContent()).toContain('RTMP stream published');
  await server.api.call('POST', '/v1/vhosts:reloadAllCertificates');
  const newest = log.getByRole('listitem').first();
  await expect.poll(() => newest.textContent()).toMatch(/info api API request answered.*target=\/v1\/vhosts:reloadAllCertificates/);
  expect(await log.textContent()).not.toContain(ACCESS_TOKEN);
  expect(await opened.violations()).toEqual([]);
  expect(await opened.overhang()).toBe(0);
  await page.getByLabel('Filter lines').fill('reloadAll');
  await expect.poll(() => log.getByRole('listitem').count()).toBe(1);
  await page.getByLabel('From level').selectOption('error');
  await page.getByText('No line contains this text.').waitFor();
  expect(complaints).toEqual([]);
});

test.each([
  ['the login', 1280, 'light', null],
  ['the login', 390, 'dark', null],
  ['the overview', 1280, 'light', ACCESS_TOKEN],
  ['the overview', 1280, 'dark', ACCESS_TOKEN],
  ['the overview', 390, 'light', ACCESS_TOKEN],
  ['the overview', 390, 'dark', ACCESS_TOKEN],
] as const)('%s at %i px, %s, has no violations found by axe, and fits', async (_page, width, scheme, token) => {
  const opened = await open('#/', { width, scheme, token });
  if (token === null) await opened.page.getByLabel('Access token').waitFor();
  else await opened.page.getByRole('link', { name: 'live', exact: true }).waitFor();
  expect(await opened.violations()).toEqual([]);
  expect(await opened.overhang()).toBe(0);
});

test('streams come first on a phone, for eyes and keyboard alike, and after the charts on a wide screen', async () => {
  const { page } = await open('#/', { width: 390 });
  await page.getByRole('link', { name: 'live', exact: true }).waitFor();
  const parts = () =>
    page.evaluate(`[...document.querySelectorAll('#streams-title, #notes-title, [aria-label="The last hour"] figure:first-of-type')]
      .map((each) => [each.id || 'chart', each.getBoundingClientRect().top]).sort(([, a], [, b]) => a - b).map(([id]) => id)`);
  const inDocument = () =>
    page.evaluate(`[...document.querySelectorAll('#streams-title, #notes-title, [aria-label="The last hour"] figure:first-of-type')]
      .map((each) => each.id || 'chart')`);
  for (const order of [parts, inDocument]) expect(await order()).toEqual(['streams-title', 'notes-title', 'chart']);
  // Inputs, outputs and viewers are visible without scrolling.
  const table = page.getByRole('region', { name: 'Streams' });
  await expect.poll(() => table.getByRole('columnheader').allTextContents()).toEqual(['Stream', 'In', 'Out', 'Viewers']);
  const hidden = "[...document.querySelectorAll('.scroll')].map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)";
  expect(await page.evaluate(hidden)).toEqual([0]);
  await page.setViewportSize({ width: 1280, height: 800 });
  await expect.poll(inDocument).toEqual(['chart', 'notes-title', 'streams-title']);
});

test('the charts begin before the console was opened', async () => {
  const kept = () => server.api.get<{ samples: { throughputIn: number; memory: number }[] }>('/v2/internals/history');
  const sample = await until(
    'a sample',
    async () => (await kept()).samples.find(({ throughputIn }) => throughputIn > 1000) ?? null,
    DEADLINE,
  );
  expect(sample.memory).toBeGreaterThan(50e6);
  const opened = await browser.open('about:blank');
  onTestFinished(() => opened.close());
  const asked = opened.page.waitForResponse((response) => response.url().endsWith('/v2/internals/history'));
  await opened.page.goto(`${server.api.base}/console/`);
  expect((await asked).status()).toBe(200);
});

test('a name with marks of HTML is a name', async () => {
  const name = '"><marquee>\'&amp;<script>';
  const hostile = publish({ url: server.rtmp(name), width: 640, height: 360, fps: 5, gop: 5, videoKbps: 100, withoutAudio: true });
  onTestFinished(async () => void (await hostile.stop()));
  await hostile.sent(5);
  const { page, complaints } = await open();
  const link = page.getByRole('link', { name, exact: true });
  await link.waitFor();
  expect(await link.textContent()).toBe(name);
  expect(await page.evaluate('document.querySelectorAll("marquee, #console script").length')).toBe(0);
  expect(complaints.filter((text) => !text.includes('404'))).toEqual([]);
});

test('a thousand streams are shown in pages, and statistics are requested for the visible streams only', async () => {
  const opened = await browser.open('about:blank');
  onTestFinished(() => opened.close());
  const { page } = opened;
  const asked = new Set<string>();
  await page.route('**/v1/vhosts/default/apps/app/streams', (route) =>
    route.fulfill({ json: { response: Array.from({ length: 1000 }, (_, n) => `s${String(n).padStart(4, '0')}`), statusCode: 200 } }),
  );
  await page.route(/\/streams\?names=/, (route) => {
    for (const name of (new URL(route.request().url()).searchParams.get('names') ?? '').split('/')) asked.add(name);
    return route.fulfill({ json: { response: [], statusCode: 200 } });
  });
  await page.goto(`${server.api.base}/console/`);
  await page.getByText('1000 streams in 1 application').waitFor();
  await page.getByText('Page 1 of 40').waitFor();
  await until('figures of a page', () => (asked.size === 25 ? true : null), DEADLINE);
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByRole('link', { name: 's0025', exact: true }).waitFor();
  expect(await page.locator('tbody th[scope=row]').count()).toBe(25);
  await page.getByLabel('Filter streams by name').fill('s0999');
  await page.getByRole('link', { name: 's0999', exact: true }).waitFor();
  expect(await page.locator('tbody th[scope=row]').count()).toBe(1);
  await until('figures of the visible streams', () => (asked.has('s0999') ? true : null), DEADLINE);
  expect(asked.size).toBeLessThanOrEqual(51);
});
