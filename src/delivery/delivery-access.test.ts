/** Signed policies over HTTP: the threads of a pool, with requests of our own. */
import { get } from 'node:http';
import { request } from 'node:https';
import { afterEach, describe, expect, test } from 'vitest';
import { BlobFeed, type BlobPool, startBlobPool } from '../../test/fakes/blob-pool.ts';
import { selfSigned } from '../../test/fakes/self-signed.ts';
import { until } from '../../test/harness/poll.ts';
import type { AccessSettings } from '../access/access-controls.ts';
import { type Policy, signUrl } from '../access/signed-url.ts';
import { OPEN_ADMISSION } from './admission.ts';

const KEYS = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'aKq#1kj' };
const HOUR = 3_600_000;

let started: BlobPool | null = null;
let port = 0;

afterEach(async () => {
  await started?.pool.stop();
  started = null;
});

function policy(publishers: readonly string[], secretKey = KEYS.secretKey): AccessSettings {
  return { signedPolicy: { ...KEYS, secretKey, enables: { providers: [], publishers: [...publishers] } } };
}

async function start(publishers: readonly string[], threads = 0, admission = OPEN_ADMISSION): Promise<BlobPool> {
  started = await startBlobPool(threads, { reportInterval: 20 }, { admission });
  started.pool.setHosts([{ name: 'default', hostNames: ['127.0.0.1'], access: policy(publishers) }]);
  ({ port } = await started.pool.listen({ host: '127.0.0.1', port: 0, tls: false }));
  return started;
}

const at = (path: string): string => `http://127.0.0.1:${port}${path}`;

function signed(path: string, changes: Partial<Policy> = {}, secretKey = KEYS.secretKey): string {
  return signUrl(at(path), { url_expire: Date.now() + HOUR, ...changes }, { ...KEYS, secretKey });
}

async function ask(url: string, headers: Record<string, string> = {}): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { headers });
  return { status: response.status, text: await response.text() };
}

/** The answer to a request with these headers; `fetch` does not allow `Host`. */
function statusAt(url: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
  });
}

/** The first request of viewers, by the word that protects it. */
const BEGINNINGS = [
  ['llhls', 'llhls', '/app/stream/new-session.m3u8'],
  ['hls', 'hlsv3', '/app/stream/ts:new-session.m3u8'],
  ['hls', 'hlsv3', '/app/stream/new-session.m3u8?format=ts'],
  ['thumbnail', 'thumbnail', '/app/stream/thumb.jpg'],
] as const;

describe.each(BEGINNINGS)('%s of %s at %s', (word, kind, path) => {
  async function serve(): Promise<void> {
    const { pool } = await start([word]);
    new BlobFeed(pool, 'stream', { kind }).putText('thumb.jpg', 'picture');
    new BlobFeed(pool, 'other', { kind }).putText('thumb.jpg', 'picture');
  }

  test('is for signed URLs only', async () => {
    await serve();
    expect((await ask(signed(path))).status).toBe(200);
    const inTime = { url_activate: Date.now() - 1000, allow_ip: '127.0.0.0/8', real_ip: '127.0.0.1', direction: 'outgoing' } as const;
    expect((await ask(signed(path, inTime))).status).toBe(200);
    const refused: readonly (readonly [what: string, url: string, reason: string])[] = [
      ['missing', at(path), 'the URL is not signed'],
      ['expired', signed(path, { url_expire: Date.now() - 1 }), 'url_expire'],
      ['not yet', signed(path, { url_activate: Date.now() + HOUR }), 'url_activate'],
      ['over', signed(path, { stream_expire: Date.now() - 1 }), 'stream_expire'],
      ['wrong key', signed(path, {}, 'another'), 'the signature is not that of this URL'],
      ['tampered', signed(path).replace('policy=e', 'policy=f'), 'the signature is not that of this URL'],
      ['replayed', signed(path).replace('/stream/', '/other/'), 'the signature is not that of this URL'],
      ['another address', signed(path, { allow_ip: '192.0.2.0/24' }), 'allow_ip'],
      ['another client', signed(path, { real_ip: '192.0.2.0/24' }), 'real_ip'],
      ['for publishers', signed(path, { direction: 'incoming' }), 'direction'],
    ];
    for (const [what, url, reason] of refused) {
      const { status, text } = await ask(url);
      expect([what, status]).toEqual([what, 401]);
      expect(text).toContain(reason);
      expect(text.length).toBeLessThan(200);
    }
    // An untrusted peer cannot name another client.
    const forged = { 'x-real-ip': '192.0.2.1', 'x-forwarded-for': '192.0.2.1' };
    expect((await ask(signed(path, { real_ip: '192.0.2.0/24' }), forged)).status).toBe(401);
  });

  test('is judged again for each request of a repeated URL', async () => {
    await serve();
    const url = signed(path, { allow_ip: '127.0.0.1' });
    for (let n = 0; n < 4; n += 1) expect((await ask(url)).status).toBe(200);
    const [text = '', signature = ''] = url.split('&signature=');
    const tampered = [
      url.replace('policy=e', 'policy=f'),
      url.replace('/app/', '/App/'),
      `${text}&signature=${signature.replace(/^./, (first) => (first === 'A' ? 'B' : 'A'))}`,
      `${url}&more=1`,
      text,
    ];
    for (const wrong of tampered) expect((await ask(wrong)).status).not.toBe(200);
    // By another name of the server, at another port.
    for (const host of ['localhost', `127.0.0.1:${port + 1}`]) expect(await statusAt(url, { host })).not.toBe(200);
    started?.pool.setHosts([{ name: 'default', hostNames: ['127.0.0.1'], access: policy([word], 'another') }]);
    expect((await ask(url)).status).toBe(401);
    started?.pool.setHosts([{ name: 'default', hostNames: ['127.0.0.1'], access: policy([word]) }]);
    expect((await ask(url)).status).toBe(200);
  });

  test('logs one line per reason, without secrets, for any number of refusals', async () => {
    await serve();
    for (let n = 0; n < 5; n += 1) await ask(`${at(path)}${path.includes('?') ? '&' : '?'}policy=SECRET&signature=SECRET`);
    await until(
      'a line about the refused viewer',
      () => started?.logger.lines.some(({ message }) => message.startsWith('viewer refused')) === true,
      {
        deadlineMs: 5000,
      },
    );
    const lines = started?.logger.lines.filter(({ message }) => message.startsWith('viewer refused')) ?? [];
    expect(lines).toMatchObject([{ level: 'warn', fields: { code: 'signature-wrong', vhost: 'default', over: word } }]);
    expect(JSON.stringify(lines)).not.toContain('SECRET');
  });
});

describe('later requests', () => {
  async function serve(publishers: readonly string[] = ['llhls', 'hls', 'thumbnail'], threads = 0) {
    const { pool, logger } = await start(publishers, threads);
    const allBlobs = (['llhls', 'hlsv3'] as const).map((kind) => new BlobFeed(pool, 'stream', { kind }));
    for (const blobs of allBlobs) for (const file of ['part.m4s', 'seg_1_1_hls.ts', 'medialist_1_hls.m3u8']) blobs.putText(file, file);
    return { pool, logger, allBlobs };
  }

  const session = async (path = '/app/stream/new-session.m3u8', changes: Partial<Policy> = {}): Promise<string> =>
    (await ask(signed(path, changes))).text;

  test('need a session, even when other parameters are signed', async () => {
    await serve();
    const token = await session();
    const forged = token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A');
    for (const file of ['part.m4s', 'seg_1_1_hls.ts', 'medialist_1_hls.m3u8', 'need-session', 'nothing.m4s']) {
      expect([file, (await ask(at(`/app/stream/${file}`))).status]).toEqual([file, 401]);
      expect([file, (await ask(signed(`/app/stream/${file}`))).status]).toEqual([file, 401]);
      expect([file, (await ask(at(`/app/stream/${file}?session=${forged}`))).status]).toEqual([file, 401]);
    }
    expect(await ask(at(`/app/stream/part.m4s?session=${token}`))).toEqual({ status: 200, text: 'part.m4s' });
  });

  test('a session does not open another session', async () => {
    await serve();
    const token = await session();
    expect((await ask(at(`/app/stream/new-session.m3u8?session=${token}`))).status).toBe(401);
    expect((await ask(at(`/app/stream/new-session?session=${token}`))).text).toBe('full');
    expect((await ask(at(`/app/stream/thumb.jpg?session=${token}`))).status).toBe(401);
  });

  test('a session of an unprotected protocol, or from before the host was protected, is refused', async () => {
    const { pool } = await serve(['hls']);
    const open = await (await fetch(at('/app/stream/new-session.m3u8'))).text();
    expect((await ask(at(`/app/stream/need-session?session=${open}`))).status).toBe(200);
    const both = (await ask(signed('/app/stream/new-session.m3u8?format=ts'))).text;
    pool.setHosts([{ name: 'default', hostNames: ['127.0.0.1'], access: policy(['llhls', 'hls']) }]);
    await expect.poll(async () => (await ask(at('/app/stream/new-session.m3u8'))).status).toBe(401);
    expect((await ask(at(`/app/stream/part.m4s?session=${open}`))).status).toBe(401);
    expect((await ask(at(`/app/stream/part.m4s?session=${both}`))).status).toBe(401);
    const token = await session();
    pool.setHosts([{ name: 'default', hostNames: ['127.0.0.1'], access: policy(['llhls', 'hls'], 'changed') }]);
    await expect.poll(async () => (await ask(at(`/app/stream/part.m4s?session=${token}`))).status).toBe(401);
  });

  test.each([0, 2])('ends with stream_expire in all of %i threads, and is logged', async (threads) => {
    const { logger, allBlobs } = await serve(undefined, threads);
    const end = Date.now() + 2500;
    const token = await session(undefined, { stream_expire: end });
    expect((await ask(at(`/app/stream/part.m4s?session=${token}`))).status).toBe(200);
    await until('the viewer', () => allBlobs.some(({ sessions }) => sessions === 1), { deadlineMs: 5000 });
    await expect.poll(async () => (await ask(at(`/app/stream/part.m4s?session=${token}`))).status, { timeout: 10_000 }).toBe(401);
    expect(Date.now()).toBeGreaterThanOrEqual(end - 1000);
    await until('no thread has a session', () => allBlobs.every(({ sessions }) => sessions === 0), { deadlineMs: 5000 });
    expect(logger.matching('viewer session closed: expired')).toHaveLength(1);
  });
});

describe('the signed URL', () => {
  /** Asks for the path and query of `url` with headers of its own. */
  const statusFor = (url: string, headers: Record<string, string>): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const path = url.replace(/^https?:\/\/[^/]*/, '');
      get({ host: '127.0.0.1', port, path, headers }, (response) => resolve(response.resume().statusCode)).on('error', reject);
    });
  const path = '/app/stream/new-session.m3u8';
  const over = (origin: string): string => signUrl(`${origin}${path}`, { url_expire: Date.now() + HOUR }, KEYS);

  test('includes the port of the server when the client sent none', async () => {
    const { pool } = await start(['llhls']);
    new BlobFeed(pool, 'stream');
    expect(await statusFor(over(`http://127.0.0.1:${port}`), { host: '127.0.0.1' })).toBe(200);
    expect(await statusFor(over('http://127.0.0.1'), { host: '127.0.0.1' })).toBe(401);
    expect(await statusFor(over('http://127.0.0.1:80'), { host: '127.0.0.1' })).toBe(401);
  });

  test('is the URL that a trusted proxy was asked for, and no other URL', async () => {
    const { pool } = await start(['llhls'], 0, { ...OPEN_ADMISSION, trustedProxies: ['127.0.0.1'] });
    new BlobFeed(pool, 'stream');
    const secure = { host: '127.0.0.1', 'x-forwarded-proto': 'https' };
    expect(await statusFor(over('https://127.0.0.1:443'), secure)).toBe(200);
    expect(await statusFor(over('https://127.0.0.1:8443'), { ...secure, 'x-forwarded-port': '8443' })).toBe(200);
    expect(await statusFor(over('https://127.0.0.1:9443'), { ...secure, host: '127.0.0.1:9443' })).toBe(200);
    expect(await statusFor(over(`http://127.0.0.1:${port}`), secure)).toBe(401);
    expect(await statusFor(over(`http://127.0.0.1:${port}`), { host: '127.0.0.1' })).toBe(200);
  });

  test('is not taken from headers of an untrusted peer', async () => {
    const { pool } = await start(['llhls'], 0, { ...OPEN_ADMISSION, trustedProxies: ['192.0.2.1'] });
    new BlobFeed(pool, 'stream');
    const headers = { host: '127.0.0.1', 'x-forwarded-proto': 'https' };
    expect(await statusFor(over('https://127.0.0.1:443'), headers)).toBe(401);
    expect(await statusFor(over(`http://127.0.0.1:${port}`), headers)).toBe(200);
  });
});

test('a Host header that contains the signed URL of another stream is refused over TLS', async () => {
  const { pool } = await start(['llhls']);
  pool.setCertificates([{ hostNames: ['127.0.0.1'], ...selfSigned('localhost') }]);
  const secure = (await pool.listen({ host: '127.0.0.1', port: 0, tls: true })).port;
  for (const name of ['stream', 'other']) new BlobFeed(pool, name, { kind: 'llhls' });
  const statusFor = (path: string, host: string): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port: secure, path, rejectUnauthorized: false, headers: { host } };
      const asked = request(options, (response) => resolve(response.resume().statusCode));
      asked.on('error', reject).end();
    });
  const place = `127.0.0.1:${secure}`;
  const url = signUrl(`https://${place}/app/stream/new-session.m3u8`, { url_expire: Date.now() + HOUR }, KEYS);
  expect(await statusFor(url.slice(`https://${place}`.length), place)).toBe(200);
  expect(await statusFor('/app/other/new-session.m3u8', `${url.slice('https://'.length)}?`)).toBe(400);
});

test('a refused client cannot make the server look for a stream', async () => {
  const asked: string[] = [];
  started = await startBlobPool(0, {}, { find: async ({ stream }) => asked.push(stream) < 0 });
  started.pool.setHosts([{ name: 'default', hostNames: ['127.0.0.1'], hasOrigins: true, access: policy(['llhls', 'hls', 'thumbnail']) }]);
  ({ port } = await started.pool.listen({ host: '127.0.0.1', port: 0, tls: false }));
  for (const file of ['llhls.m3u8', 'medialist_0_hls.m3u8', 'chunklist_0_video_key_llhls.m3u8', 'x_hls.m3u8?format=ts', 'thumb.jpg'])
    expect([file, (await ask(at(`/app/stream/${file}`))).status]).toEqual([file, /^(?:llhls|thumb)/.test(file) ? 401 : 404]);
  expect(asked).toEqual([]);
  expect((await ask(signed('/app/wanted/llhls.m3u8'))).status).toBe(404);
  expect(asked).toEqual(['wanted']);
});

test('answers for missing or refused files follow the cross-origin rules of the application, with or without a stream', async () => {
  const { pool } = await start(['llhls']);
  const rules = (origin: string) => ({ urls: [origin], headers: [] });
  const applications = new Map([
    ['app', { llhls: rules('https://fmp4.test'), hls: rules('https://ts.test'), thumbnail: rules('https://image.test') }],
  ]);
  const allowed = async (path: string, origin: string, method = 'GET') => {
    const answer = await fetch(at(path), { method, headers: { origin } });
    return [answer.status, answer.headers.get('access-control-allow-origin')];
  };
  const tell = (found: typeof applications, template = {}) =>
    pool.setHosts([
      { name: 'default', hostNames: ['127.0.0.1'], access: policy(['llhls']), pageOrigins: { applications: found, template } },
    ]);
  tell(applications);
  await expect.poll(() => allowed('/app/none/llhls.m3u8', 'https://fmp4.test')).toEqual([401, 'https://fmp4.test']);
  expect(await allowed('/app/none/llhls.m3u8', 'https://ts.test')).toEqual([401, null]);
  expect(await allowed('/app/none/ts:playlist.m3u8', 'https://ts.test')).toEqual([404, 'https://ts.test']);
  expect(await allowed('/app/none/playlist.m3u8?format=ts', 'https://ts.test')).toEqual([404, 'https://ts.test']);
  expect(await allowed('/app/none/thumb.png', 'https://image.test')).toEqual([404, 'https://image.test']);
  expect(await allowed('/app/none/part.m4s', 'https://fmp4.test')).toEqual([404, 'https://fmp4.test']);
  expect(await allowed('/app/none/llhls.m3u8', 'https://fmp4.test', 'OPTIONS')).toEqual([200, 'https://fmp4.test']);
  expect(await allowed('/other/none/ts:playlist.m3u8', 'https://ts.test')).toEqual([404, null]);

  tell(new Map(), { hls: rules('https://template.test') });
  await expect.poll(() => allowed('/other/none/ts:playlist.m3u8', 'https://template.test')).toEqual([404, 'https://template.test']);
  expect(await allowed('/other/none/thumb.png', 'https://template.test')).toEqual([404, null]);
  pool.setDefaultCrossDomains(rules('https://all.test'));
  await expect.poll(() => allowed('/other/none/thumb.png', 'https://all.test')).toEqual([404, 'https://all.test']);
  expect(await allowed('/other/none/ts:playlist.m3u8', 'https://template.test')).toEqual([404, 'https://template.test']);
});
