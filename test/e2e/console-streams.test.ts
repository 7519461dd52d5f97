/** The pages of the console about one stream and about publishing, in a real browser with real media. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { ConsoleBrowser, type ConsolePage, FAR_NAME, type PageOptions } from '../harness/console-browser.ts';
import { ADDED_HEIGHT } from '../harness/oven-player.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const DEADLINE = { deadlineMs: 40_000 };
const LIVE = '#/streams/default/app/live';
const READER = 'a-token-that-only-reads';

let server: TestServer;
let browser: ConsoleBrowser;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  const [ingest = 0, egress = 0] = await freePorts(2);
  const accessTokens = `<Token><Name>dashboard</Name><Value>${READER}</Value><Access>read</Access></Token>`;
  const webrtc = { provider: '<CrossDomains><Url>*</Url></CrossDomains>' };
  [server, browser] = await Promise.all([
    startServer({ webrtc, srt: { ingest, egress }, push: '', recordRoot: 'recordings', accessTokens }),
    ConsoleBrowser.start(),
  ]);
  encoder = publish({ url: server.rtmp('live'), width: 640, height: 360, fps: 15, gop: 15, videoKbps: 300 });
  await encoder.sent(15);
});

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([browser?.close(), server?.close()]);
});

async function open(hash: string, options: PageOptions = {}): Promise<ConsolePage> {
  const opened = await browser.open(`${server.api.base}/console/${hash}`, options);
  onTestFinished(() => opened.close());
  return opened;
}

/** Script: whether the video in a panel has shown another frame since it began. */
function frames(title: string): string {
  return `(() => { const v = document.querySelector('[aria-label="${title} player"] video'); return v === null ? 0 : v.getVideoPlaybackQuality().totalVideoFrames; })()`;
}

test('both players show the stream, with their delays, and are viewers that can be kicked', async () => {
  const { page, complaints } = await open(LIVE);
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  for (const title of ['WebRTC', 'LL-HLS']) {
    await until(`${title} plays`, async () => (((await page.evaluate(frames(title))) as number) > 20 ? true : null), DEADLINE);
    const heading = page.getByLabel(`${title} player`).getByRole('heading');
    const delay = await until('a delay', async () => /([\d.]+) s /.exec((await heading.textContent()) ?? '')?.[1] ?? null, DEADLINE);
    expect(Number(delay)).toBeGreaterThan(0);
    expect(Number(delay)).toBeLessThan(20);
  }
  expect(await page.evaluate(ADDED_HEIGHT)).toBe(0);
  const sessions = page.getByRole('region', { name: 'Viewers' });
  await expect.poll(() => sessions.getByRole('row').allTextContents()).toHaveLength(3);
  for (const text of (await sessions.getByRole('row').allTextContents()).slice(1)) expect(text).toContain('127.0.0.1');
  expect(complaints).toEqual([]);
  const row = sessions.getByRole('row').filter({ hasText: 'WebRTC' });
  await row.getByRole('button', { name: /^Kick/ }).press('Enter');
  // The button disappears with the viewer; the focus stays in the list.
  await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Viewers');
  await until(
    'WebRTC has left',
    async () => ((await server.api.get<string[]>(`${apiPath.stream('live')}/sessions`)).length === 0 ? true : null),
    DEADLINE,
  );
  const gone = page.locator('.gone');
  await page.locator('summary').filter({ hasText: 'ended, with the reason' }).click();
  await expect.poll(() => gone.textContent()).toMatch(/WebRTC \w+: .*terminated through the API.*, after \d+ s and [\d.]+ [kM]?B/);
  // The page of a later visitor shows it, too.
  const later = await open(LIVE);
  await later.page.locator('summary').filter({ hasText: 'ended, with the reason' }).click();
  await expect.poll(() => later.page.locator('.gone').textContent()).toContain('terminated through the API');
  await page.getByRole('button', { name: 'Stop players' }).click();
  await expect.poll(() => page.locator('video').count()).toBe(0);
});

test('the charts begin before the page was opened', async () => {
  const path = '/v2/vhosts/default/apps/app/streams/live/history';
  const kept = () => server.api.get<{ samples: { throughputIn: number; framerate?: number }[] }>(path);
  const sample = await until(
    'a sample',
    async () => (await kept()).samples.find(({ throughputIn }) => throughputIn > 1000) ?? null,
    DEADLINE,
  );
  expect(sample.framerate).toBeGreaterThan(10);
  const opened = await browser.open('about:blank');
  onTestFinished(() => opened.close());
  const asked = opened.page.waitForResponse((response) => response.url().endsWith(path));
  await opened.page.goto(`${server.api.base}/console/${LIVE}`);
  expect((await asked).status()).toBe(200);
  await opened.page.getByRole('img', { name: 'Viewers over time' }).waitFor();
});

test('shows tracks and warnings', async () => {
  const { page } = await open(LIVE);
  const tracks = page.getByRole('region', { name: 'Tracks' });
  await expect
    .poll(() => tracks.getByRole('row').filter({ hasText: '0 Video' }).textContent())
    .toMatch(/VideoH264640×360[\d.]+ kbit\/s1\d\.\d15/);
  expect(await tracks.getByRole('row').filter({ hasText: 'bypass_audio' }).textContent()).toContain('bypassed');
  expect(await page.getByText('viewers over WebRTC get no audio').textContent()).toMatch(/^live: /);
});

test('a click starts and stops a recording; a refused push or dump shows the error of the server', async () => {
  const { page } = await open(LIVE);
  const records = () =>
    server.api
      .call('POST', `${apiPath.app('default', 'app')}:records`)
      .then(({ body }) => (body as { response: { state: string }[] }).response);
  await page.getByRole('button', { name: 'Record', exact: true }).click();
  const tasks = page.getByRole('region', { name: 'Recordings, pushes and dumps' });
  await expect.poll(() => tasks.getByRole('row').filter({ hasText: 'record-' }).textContent()).toContain('recording');
  expect((await records()).map(({ state }) => state)).toEqual(['recording']);
  await tasks.getByRole('button', { name: /^Stop record-/ }).click();
  await until('no recording', async () => ((await records()).every(({ state }) => state !== 'recording') ? true : null), DEADLINE);
  await page.getByRole('button', { name: 'Push …' }).click();
  await page.getByLabel('Address to push to').fill('gopher://nowhere');
  await page.getByRole('button', { name: 'Push', exact: true }).click();
  // The form for a recorded span may be on the page, too.
  const alertBeside = (label: string) =>
    page
      .locator('form', { has: page.getByLabel(label) })
      .getByRole('alert')
      .textContent();
  await expect.poll(() => alertBeside('Address to push to')).toMatch(/url|protocol|gopher/i);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Dump …' }).click();
  await page.getByLabel('Folder to dump to').fill('/proc/dump');
  await page.getByRole('button', { name: 'Dump', exact: true }).click();
  await expect.poll(() => alertBeside('Folder to dump to')).toMatch(/proc|path|Could not/i);
});

test('a stream is deleted after a confirmation, and the page says that it has ended', async () => {
  const second = publish({ url: server.rtmp('second'), width: 640, height: 360, fps: 5, gop: 5, videoKbps: 100, withoutAudio: true });
  onTestFinished(async () => void (await second.stop()));
  await second.sent(5);
  const { page } = await open('#/streams/default/app/second');
  await page.getByRole('button', { name: 'Delete stream' }).click();
  await page.getByText('End the stream for its publisher and all viewers?').waitFor();
  await page.getByRole('button', { name: 'Keep' }).click();
  expect(await server.api.get<string[]>(`${apiPath.app('default', 'app')}/streams`)).toContain('second');
  await page.getByRole('button', { name: 'Delete stream' }).click();
  await page.getByRole('button', { name: 'Delete stream' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  expect(await server.api.get<string[]>(`${apiPath.app('default', 'app')}/streams`)).not.toContain('second');
});

test('a missing stream shows the error of the server', async () => {
  const { page } = await open('#/streams/default/app/never');
  await expect.poll(() => page.locator('main').textContent()).toContain('The server says: ');
});

test('a token that only reads is shown everything but the buttons that it could not use, and why', async () => {
  const { page, complaints } = await open(LIVE, { token: READER });
  await page.getByText('This token may only read').waitFor();
  await page.getByRole('region', { name: 'Tracks' }).getByText('bypass_audio').waitFor();
  // A recording of another test is a button without text on the time bar.
  const buttons = () =>
    page
      .getByRole('main')
      .getByRole('button')
      .evaluateAll((all) => all.map((each) => each.getAttribute('aria-label') ?? each.textContent ?? ''));
  expect((await buttons()).filter((name) => !/^Play/.test(name))).toEqual([]);
  // The server would report this, too.
  const body = { id: 'x', stream: { name: 'live' } };
  const answer = await fetch(`${server.api.base}${apiPath.app('default', 'app')}:startRecord`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${READER}` },
    body: JSON.stringify(body),
  });
  expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([
    403,
    expect.stringContaining('The access token [dashboard] may only read'),
  ]);
  for (const [link, heading] of [
    ['Channels', 'Channels'],
    ['Configuration', 'Configuration'],
  ] as const) {
    await page.getByRole('link', { name: link }).click();
    await page.getByRole('heading', { name: heading, exact: true }).waitFor();
    expect(await buttons()).toEqual([]);
  }
  await page.getByRole('link', { name: 'Publish' }).click();
  await page.getByRole('button', { name: 'Try it' }).click();
  const found = page.locator('.findings');
  await expect.poll(() => found.textContent(), { timeout: DEADLINE.deadlineMs }).toMatch(/SRT from here/);
  expect((await found.locator('li').allTextContents()).slice(0, 2)).toEqual([
    `OK RTMP, TCP port ${server.ports.rtmp} Reachable from here.`,
    '– WebRTC Not tested: the test publishes for a moment, and this token may only read.',
  ]);
  await page.getByRole('link', { name: 'Log' }).click();
  await page.getByText('it is shown only with a token that may write. This one may only read.').waitFor();
  expect(complaints).toEqual([]);
});

test('a running recording is shown, and a finished one plays from the timeline', async () => {
  const app = apiPath.app('default', 'app');
  const task = { id: 'timeline', stream: { name: 'live' } };
  expect((await server.api.call('POST', `${app}:startRecord`, task)).status).toBe(200);
  const tasks = () =>
    server.api
      .call('POST', `${app}:records`, { id: task.id })
      .then(({ body }) => (body as { response: { totalRecordTime?: number }[] }).response);
  await until('two seconds on disk', async () => (((await tasks())[0]?.totalRecordTime ?? 0) > 2000 ? true : null), DEADLINE);
  const { page, complaints } = await open(LIVE);
  const queue = page.getByRole('region', { name: 'Queues' }).getByRole('row').filter({ hasText: 'Source to router' });
  await expect.poll(() => queue.textContent()).toMatch(/indicator/);
  await server.api.call('POST', `${app}:stopRecord`, { id: task.id });
  const recorded = page.getByRole('region', { name: 'Recorded' });
  await recorded
    .getByRole('row')
    .filter({ hasText: 'timeline' })
    .getByRole('button', { name: /^Play / })
    .click();
  const position = `document.querySelector('[aria-label="Recording player"] video')?.currentTime ?? 0`;
  await until('the recording plays', async () => (((await page.evaluate(position)) as number) > 0.5 ? true : null), DEADLINE);
  await page.getByRole('button', { name: 'Play span' }).click();
  await page.getByRole('heading', { name: 'From the beginning to the end' }).waitFor();
  await until('the span plays', async () => (((await page.evaluate(position)) as number) > 0.5 ? true : null), DEADLINE);
  expect(complaints).toEqual([]);
});

test('shows whether the ports of publishers are reachable from the browser', async () => {
  const { page, complaints } = await open('#/publish');
  await page.getByRole('button', { name: 'Try it' }).click();
  const found = page.locator('.findings');
  await expect.poll(() => found.textContent(), { timeout: DEADLINE.deadlineMs }).toMatch(/SRT, UDP port \d+/);
  const told = await found.locator('li').allTextContents();
  expect(told.slice(0, 3)).toEqual([
    `OK RTMP, TCP port ${server.ports.rtmp} Reachable from here.`,
    'OK WebRTC over UDP Reachable from here.',
    'OK WebRTC over TCP Reachable from here.',
  ]);
  expect(told[3]).toMatch(
    /^OK SRT, UDP port \d+, tested by the server itself It answers on 127\.0\.0\.1 in [\d.]+ ms, and over 127\.0\.0\.1\.$/,
  );
  expect(told[4]).toContain('Not tested: browsers cannot speak SRT. UDP from here reaches the server');
  const command = await found.getByLabel('With ffmpeg', { exact: true }).inputValue();
  expect(command).toMatch(/^ffmpeg -re .* 'srt:\/\/127\.0\.0\.1:\d+\?streamid=default%2Fapp%2Ftrial-\d+'$/);
  expect(complaints).toEqual([]);
  // The stream is gone completely, and the unused port is reported.
  expect((await server.api.get<string[]>(`${apiPath.app('default', 'app')}/streams`)).filter((name) => name.startsWith('trial'))).toEqual(
    [],
  );
  await page.route(`http://127.0.0.1:${server.ports.rtmp}/**`, (route) => route.abort('connectionrefused'));
  await page.getByRole('button', { name: 'Try it' }).click();
  await expect
    .poll(() => found.textContent(), { timeout: DEADLINE.deadlineMs })
    .toContain('Not reachable from here: the connection was refused or closed.');
});

test('the camera is published by WHIP, and ends with the button', async () => {
  const { page, complaints } = await open('#/publish');
  await page.getByLabel('Stream', { exact: true }).fill('from-browser');
  const preview = page.getByLabel('Preview');
  expect(await preview.isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Camera and microphone' }).click();
  await page.getByText('On air.').waitFor();
  expect(await preview.isVisible()).toBe(true);
  const streams = () => server.api.get<string[]>(`${apiPath.app('default', 'app')}/streams`);
  await until('the stream', async () => ((await streams()).includes('from-browser') ? true : null), DEADLINE);
  const { input } = await server.api.get<{ input: { sourceType: string; tracks: { video?: { codec: string } }[] } }>(
    apiPath.stream('from-browser'),
  );
  expect([input.sourceType, input.tracks.some(({ video }) => video?.codec === 'H264')]).toEqual(['WebRTC', true]);
  const [popup] = await Promise.all([page.waitForEvent('popup'), page.getByRole('link', { name: 'View the stream' }).click()]);
  await popup.getByRole('heading', { name: 'from-browser' }).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await until('no stream', async () => ((await streams()).includes('from-browser') ? null : true), DEADLINE);
  expect(complaints).toEqual([]);
});

test('a page without a camera explains the reason and the remedy, hides the preview, and can still copy addresses', async () => {
  const opened = await browser.open(`http://${FAR_NAME}:${server.ports.api}/console/#/publish`, { width: 390 });
  onTestFinished(() => opened.close());
  const { page, complaints } = opened;
  const panel = page.locator('section', { has: page.getByRole('heading', { name: 'From this browser' }) });
  await expect
    .poll(() => panel.getByRole('status').textContent())
    .toMatch(
      /only to pages that came over HTTPS or from the same machine, and this one came from http:\/\/console\.test:\d+\. Open the console over HTTPS/,
    );
  expect([await panel.locator('video').isVisible(), await panel.getByRole('button').count()]).toEqual([false, 0]);
  const key = page.getByLabel('Stream key', { exact: true });
  await page.getByRole('button', { name: 'Copy: Stream key' }).click();
  await page.getByText('Copied').waitFor();
  // Reading the clipboard needs a key press.
  const name = page.getByLabel('Stream', { exact: true });
  await name.fill('');
  await name.press('Control+V');
  expect([await name.inputValue(), await key.inputValue()]).toEqual(['live', 'live']);
  expect(await opened.overhang()).toBe(0);
  // Browsers report that they ignore a header on such pages.
  expect(complaints.filter((text) => !text.startsWith('The Cross-Origin-Opener-Policy header has been ignored'))).toEqual([]);
});

test('closing a tab ends its publication without the timeout', async () => {
  const { page } = await open('#/publish');
  await page.getByLabel('Stream', { exact: true }).fill('from-tab');
  await page.getByRole('button', { name: 'Screen' }).click();
  await page.getByText('On air.').waitFor();
  const streams = () => server.api.get<string[]>(`${apiPath.app('default', 'app')}/streams`);
  await until('the stream', async () => ((await streams()).includes('from-tab') ? true : null), DEADLINE);
  await page.close({ runBeforeUnload: true });
  // Without the message of the page, the server would take half a minute.
  await until('no stream', async () => ((await streams()).includes('from-tab') ? null : true), { deadlineMs: 15_000 });
});

test('addresses have the real host and ports, are copied, and become a code', async () => {
  const { page, context } = await open('#/publish');
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByLabel('Stream', { exact: true }).fill('a b');
  const field = (name: string) => page.getByLabel(name, { exact: true }).inputValue();
  expect(await field('Server (Service: Custom)')).toBe(`rtmp://127.0.0.1:${server.ports.rtmp}/app`);
  expect(await field('Server (Service: WHIP)')).toBe(`http://127.0.0.1:${server.ports.http}/app/a%20b?direction=whip`);
  expect(await field('A file, over RTMP')).toContain(`-f flv 'rtmp://127.0.0.1:${server.ports.rtmp}/app/a b'`);
  expect(await field('Caller, for encoders and phones')).toMatch(/^srt:\/\/127\.0\.0\.1:\d+\?streamid=default%2Fapp%2Fa%20b$/);
  await page.getByRole('button', { name: 'Copy: Stream key' }).click();
  await page.getByText('Copied').waitFor();
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('a b');
  await page.getByRole('button', { name: 'QR code: Caller, for encoders and phones' }).click();
  await page.getByRole('img', { name: /^QR code of srt:/ }).waitFor();
});

test.each([
  [LIVE, 1280, 'dark'],
  [LIVE, 390, 'light'],
  ['#/publish', 1280, 'light'],
  ['#/publish', 390, 'dark'],
] as const)('%s at %i px, %s, has no violations found by axe, and fits', async (hash, width, scheme) => {
  const opened = await open(hash, { width, scheme });
  const { page } = opened;
  await page.getByRole('heading', { name: hash === LIVE ? 'Tracks' : 'From this browser' }).waitFor();
  if (hash === LIVE) {
    await page.getByRole('button', { name: 'Play', exact: true }).click();
    await until('LL-HLS plays', async () => (((await page.evaluate(frames('LL-HLS'))) as number) > 0 ? true : null), DEADLINE);
  }
  expect(await opened.violations()).toEqual([]);
  expect(await opened.overhang()).toBe(0);
  // On a phone a row is under its name, each figure with its title.
  if (hash === LIVE && width === 390) {
    expect(await opened.hiddenBeside()).toBe(0);
    const tracks = page.getByRole('region', { name: 'Tracks' });
    expect(await tracks.getByRole('cell', { name: /^Bitrate .*bit\/s$/ }).count()).toBeGreaterThan(1);
  }
});
