/** A browser that opens a media port gets a simple player, or a text if there is nothing to play. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { ConsoleBrowser, type ConsolePage } from '../harness/console-browser.ts';
import { ADDED_HEIGHT } from '../harness/oven-player.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';

const DEADLINE = { deadlineMs: 40_000 };
const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

let server: TestServer;
let browser: ConsoleBrowser;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer({ webrtc: {} }), ConsoleBrowser.start()]);
  encoder = publish({ url: server.rtmp('live'), width: 640, height: 360, fps: 15, gop: 15, videoKbps: 300 });
  await encoder.sent(15);
});

afterAll(async () => {
  await encoder?.stop();
  await Promise.all([browser?.close(), server?.close()]);
});

function address(path: string, of = server): string {
  return `http://127.0.0.1:${of.ports.http}${path}`;
}

async function open(path: string, of = server): Promise<ConsolePage> {
  const opened = await browser.open(address(path, of), { token: null });
  onTestFinished(() => opened.close());
  return opened;
}

const FRAMES = "document.querySelector('video')?.getVideoPlaybackQuality().totalVideoFrames ?? 0";

test('the address of a stream plays it over WebRTC first and over LL-HLS on demand, and shows what WebRTC leaves out', async () => {
  const opened = await open('/app/live');
  const { page, complaints } = opened;
  await until('frames over WebRTC', async () => (((await page.evaluate(FRAMES)) as number) > 15 ? true : null), DEADLINE);
  expect(await page.getByRole('button', { name: 'WebRTC' }).getAttribute('aria-pressed')).toBe('true');
  expect(await page.evaluate("document.querySelector('video').srcObject instanceof MediaStream")).toBe(true);
  expect(await page.evaluate(ADDED_HEIGHT)).toBe(0);
  await expect.poll(() => page.getByRole('status').textContent()).toMatch(/^No audio over WebRTC/);
  expect([await page.title(), await opened.violations(), await opened.overhang()]).toEqual(['app/live', [], 0]);
  await page.getByRole('button', { name: 'LL-HLS' }).click();
  await until(
    'frames over LL-HLS',
    async () => ((await page.evaluate(`document.querySelector('video')?.srcObject === null && (${FRAMES}) > 5`)) === true ? true : null),
    DEADLINE,
  );
  expect(complaints).toEqual([]);
});

test('LL-HLS plays when WebRTC does not', async () => {
  const without = await startServer();
  onTestFinished(() => without.close());
  const other = publish({ url: without.rtmp('live'), width: 640, height: 360, fps: 15, gop: 15, videoKbps: 300 });
  onTestFinished(async () => void (await other.stop()));
  await other.sent(30);
  const { page } = await open('/app/live', without);
  await until('frames', async () => (((await page.evaluate(FRAMES)) as number) > 5 ? true : null), DEADLINE);
  expect(await page.getByRole('button', { name: 'LL-HLS' }).getAttribute('aria-pressed')).toBe('true');
  expect(await page.getByRole('button', { name: 'WebRTC' }).isDisabled()).toBe(true);
});

test('a missing stream shows the answer of the server, and plays when it starts', async () => {
  const { page } = await open('/app/later');
  await expect
    .poll(() => page.getByRole('status').textContent(), { timeout: DEADLINE.deadlineMs })
    .toMatch(/WebRTC: the server has no such stream for WebRTC, .*LL-HLS: there is no such stream/s);
  expect(await page.content()).not.toContain('live<');
  const later = publish({ url: server.rtmp('later'), width: 640, height: 360, fps: 15, gop: 15, videoKbps: 300 });
  onTestFinished(async () => void (await later.stop()));
  await until('frames', async () => (((await page.evaluate(FRAMES)) as number) > 5 ? true : null), { deadlineMs: 60_000 });
});

test('the page of a missing stream equals the page of an existing one', async () => {
  const [there, not] = await Promise.all(['/app/live', '/none/never'].map((path) => fetch(address(path), { headers: HTML })));
  expect([there?.status, not?.status]).toEqual([200, 200]);
  expect(await there?.text()).toBe(await not?.text());
  expect(there?.headers.get('content-security-policy')).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
  expect(there?.headers.get('vary')).toContain('Accept');
});

test('players and programs still get the answers for media requests', async () => {
  for (const accept of ['*/*', 'application/vnd.apple.mpegurl', '']) {
    const answer = await fetch(address('/app/live'), { headers: { accept } });
    expect([answer.status, await answer.text()]).toEqual([404, 'the stream has no such file\n']);
  }
  expect((await fetch(server.http('live', 'llhls.m3u8'), { headers: HTML })).headers.get('content-type')).toMatch(/mpegurl/i);
  for (const path of ['/app/live/x.html', '/app/live//', '/app//', '/nothing.js', '/..%2fpackage.json']) {
    expect([path, (await fetch(address(path), { headers: HTML })).status]).toEqual([path, 404]);
  }
});

test('an address with a trailing slash redirects a browser to the page, and is 404 for programs', async () => {
  const get = (path: string, headers: Record<string, string>) => fetch(address(path), { headers, redirect: 'manual' });
  const [plain, signed] = await Promise.all(['/app/live/', '/app/live/?token=a%26b'].map((path) => get(path, HTML)));
  expect([plain?.status, plain?.headers.get('location')]).toEqual([301, '../live']);
  expect([signed?.status, signed?.headers.get('location')]).toEqual([301, '../live?token=a%26b']);
  const page = await fetch(address('/app/live/?a=1'), { headers: HTML });
  expect([page.status, page.url]).toEqual([200, address('/app/live?a=1')]);
  expect((await get('/app/live/', { accept: '*/*' })).status).toBe(404);
});

test('the root names the server, and links to the console', async () => {
  const answer = await fetch(address('/'), { headers: HTML });
  expect([answer.status, answer.headers.get('x-frame-options')]).toEqual([200, 'DENY']);
  const text = await answer.text();
  expect(text).toContain(`<a href="http://127.0.0.1:${server.ports.api}/console/">Console</a>`);
  expect(text).not.toContain('live<');
  expect((await fetch(address('/'))).status).toBe(404);
});

test('the configuration can disable the player', async () => {
  const off = await startServer({ head: '<Modules><PlayerPage><Enable>false</Enable></PlayerPage></Modules>' });
  onTestFinished(() => off.close());
  for (const path of ['/app/live', '/player.css', '/hls.mjs'])
    expect((await fetch(address(path, off), { headers: HTML })).status).toBe(404);
});

test('access control applies to the page as to players', async () => {
  const policy =
    '<SignedPolicy><PolicyQueryKeyName>policy</PolicyQueryKeyName><SignatureQueryKeyName>signature</SignatureQueryKeyName><SecretKey>k</SecretKey><Enables><Publishers>llhls,webrtc</Publishers></Enables></SignedPolicy>';
  const guarded = await startServer({ webrtc: {}, origins: policy });
  onTestFinished(() => guarded.close());
  const other = publish({ url: guarded.rtmp('live'), width: 640, height: 360, fps: 15, gop: 15, videoKbps: 300 });
  onTestFinished(async () => void (await other.stop()));
  await other.sent(15);
  const { page } = await open('/app/live', guarded);
  await expect.poll(() => page.getByRole('status').textContent(), { timeout: 40_000 }).toMatch(/WebRTC: .*LL-HLS: .*(policy|sign)/is);
  expect(await page.evaluate(FRAMES)).toBe(0);
});

test('a play token in the address lets the page play, over either protocol', async () => {
  const application = '<PlayTokens><PlayToken><Name>site</Name><Token>a-token-for-the-site-1</Token></PlayToken></PlayTokens>';
  const guarded = await startServer({ webrtc: {}, application });
  onTestFinished(() => guarded.close());
  const other = publish({ url: guarded.rtmp('live'), width: 640, height: 360, fps: 15, gop: 15, videoKbps: 300 });
  onTestFinished(async () => void (await other.stop()));
  await other.sent(15);
  const { page } = await open('/app/live?token=a-token-for-the-site-1', guarded);
  for (const way of ['WebRTC', 'LL-HLS']) {
    await page.getByRole('button', { name: way }).click();
    await until(`frames over ${way}`, async () => (((await page.evaluate(FRAMES)) as number) > 5 ? true : null), DEADLINE);
    expect(await page.getByRole('button', { name: way }).getAttribute('aria-pressed')).toBe('true');
  }
});

test('a protocol chosen while its player is still loading plays', async () => {
  const { page } = await open('/');
  const { promise: loaded, resolve: load } = Promise.withResolvers<void>();
  await page.route(/ovenplayer/, async (route) => {
    await loaded;
    await route.continue();
  });
  await page.goto(address('/app/live'));
  // The page has started WebRTC itself, so this is a second attempt, which the first must not disturb.
  await page.getByRole('button', { name: 'WebRTC' }).click();
  load();
  await until('frames over WebRTC', async () => (((await page.evaluate(FRAMES)) as number) > 5 ? true : null), DEADLINE);
});

test('a protocol chosen by the viewer is used again when the stream returns', async () => {
  const send = async () => {
    const sender = publish({ url: server.rtmp('returns'), width: 640, height: 360, fps: 15, gop: 15, videoKbps: 300 });
    onTestFinished(async () => void (await sender.stop()));
    await sender.sent(15);
    return sender;
  };
  let sender = await send();
  const { page } = await open('/app/returns');
  for (const way of ['WebRTC', 'LL-HLS']) {
    await page.getByRole('button', { name: way }).click();
    await until(`frames over ${way}`, async () => (((await page.evaluate(FRAMES)) as number) > 5 ? true : null), DEADLINE);
    await sender.stop();
    await expect.poll(() => page.getByRole('status').textContent(), { timeout: 40_000 }).toMatch(new RegExp(`^${way}: .*\nTrying again`));
    expect(await page.evaluate(FRAMES)).toBe(0);
    sender = await send();
    await until(`frames over ${way} again`, async () => (((await page.evaluate(FRAMES)) as number) > 5 ? true : null), DEADLINE);
    expect(await page.getByRole('button', { name: way }).getAttribute('aria-pressed')).toBe('true');
  }
});
