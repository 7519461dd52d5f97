/** Play tokens over HTTP: the threads of a pool, with requests of our own. */
import { afterEach, describe, expect, test } from 'vitest';
import { BlobFeed, type BlobPool, startBlobPool } from '../../test/fakes/blob-pool.ts';
import { until } from '../../test/harness/poll.ts';
import type { AccessSettings } from '../access/access-controls.ts';
import { signUrl } from '../access/signed-url.ts';
import { hashKey } from '../util/key-hash.ts';

const TOKEN = 'the-token-of-the-site';
const OTHER = 'the-token-of-a-friend';
const PUBLISH = 'the-key-of-the-studio';
const SITE = { name: 'site', hash: hashKey(TOKEN) };
const FRIEND = { name: 'friend', hash: hashKey(OTHER) };
const POLICY = { policyQueryKeyName: 'policy', signatureQueryKeyName: 'signature', secretKey: 'aKq#1kj' };

let started: BlobPool | null = null;
let port = 0;
const uses: string[] = [];

afterEach(async () => {
  await started?.pool.stop();
  started = null;
  uses.length = 0;
});

interface Token {
  readonly name: string;
  readonly hash: string;
  readonly expires?: string;
  readonly streams?: string;
}

function setTokens(playTokens: readonly Token[] | null, access?: AccessSettings): void {
  const app = { publishKeys: [{ name: 'studio', hash: hashKey(PUBLISH) }], ...(playTokens !== null && { playTokens: [...playTokens] }) };
  const keys = { applications: new Map([['app', app]]), template: {} };
  started?.pool.setHosts([{ name: 'default', hostNames: ['127.0.0.1'], keys, access }]);
}

async function start(playTokens: readonly Token[], threads = 0): Promise<BlobPool> {
  started = await startBlobPool(threads, { reportInterval: 20 }, { onKeyUses: (grants) => uses.push(...grants) });
  setTokens(playTokens);
  ({ port } = await started.pool.listen({ host: '127.0.0.1', port: 0, tls: false }));
  return started;
}

const at = (path: string): string => `http://127.0.0.1:${port}${path}`;
const withToken = (path: string, token: string): string => at(`${path}${path.includes('?') ? '&' : '?'}token=${token}`);

async function ask(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers });
  return { status: response.status, text: await response.text(), challenge: response.headers.get('www-authenticate') };
}
const statusOf = async (url: string, headers: Record<string, string> = {}): Promise<number> => (await ask(url, headers)).status;

/** The first request of viewers. */
const BEGINNINGS = [
  ['llhls', '/app/stream/new-session.m3u8'],
  ['hlsv3', '/app/stream/ts:new-session.m3u8'],
  ['hlsv3', '/app/stream/new-session.m3u8?format=ts'],
  ['thumbnail', '/app/stream/thumb.jpg'],
] as const;

describe.each(BEGINNINGS)('%s at %s', (kind, path) => {
  test('requires a token of the application', async () => {
    const { pool, logger } = await start([
      SITE,
      { ...FRIEND, expires: '2020-01-01' },
      { name: 'show', hash: hashKey('the-token-of-a-show'), streams: 'show-*' },
    ]);
    for (const stream of ['stream', 'show-1']) new BlobFeed(pool, stream, { kind }).putText('thumb.jpg', 'picture');
    expect(await statusOf(withToken(path, TOKEN))).toBe(200);
    expect(await statusOf(at(path), { authorization: `Bearer ${TOKEN}` })).toBe(200);
    expect(await statusOf(withToken(path.replace('/stream/', '/show-1/'), 'the-token-of-a-show'))).toBe(200);
    const refused: readonly (readonly [url: string, reason: string, headers?: Record<string, string>])[] = [
      [at(path), 'there is no play token in the request'],
      [at(path), 'there is no play token in the request', { authorization: `Basic ${btoa(`u:${TOKEN}`)}` }],
      [withToken(path, 'not-the-token-of-the-site'), 'the play token is none of this application'],
      [at(path), 'the play token is none of this application', { authorization: 'Bearer SECRET-SECRET-SECRET' }],
      [withToken(path, PUBLISH), 'the play token is none of this application'],
      [withToken(path, OTHER), 'the play token has expired'],
      [withToken(path, 'the-token-of-a-show'), 'the play token is for other streams'],
    ];
    for (const [url, reason, headers] of refused)
      expect(await ask(url, headers)).toEqual({ status: 401, text: `${reason}\n`, challenge: 'Bearer' });
    await until(
      'four lines about refused viewers',
      () => logger.lines.filter(({ message }) => message.startsWith('viewer refused')).length >= 4,
      {
        deadlineMs: 5000,
      },
    );
    for (const secret of [TOKEN, OTHER, PUBLISH, 'SECRET']) expect(JSON.stringify(logger.lines)).not.toContain(secret);
  });
});

describe('the session', () => {
  async function serve(threads: number): Promise<BlobPool> {
    const pool = await start([SITE, FRIEND], threads);
    const blobs = new BlobFeed(pool.pool, 'stream', { kind: 'llhls' });
    for (const file of ['part.m4s', 'medialist.txt']) blobs.putText(file, file);
    return pool;
  }
  /** A thread may learn of the stream later than another thread. */
  const session = (token: string): Promise<string> =>
    until('a session', async () => {
      const { status, text } = await ask(withToken('/app/stream/new-session.m3u8', token));
      return status === 200 ? text : null;
    });
  const part = (token: string): Promise<number> => statusOf(at(`/app/stream/part.m4s?session=${token}`));

  test.each([0, 2])('carries the token over %i threads and ends with it, not with another', async (threads) => {
    const { logger } = await serve(threads);
    const [mine, friends] = [await session(TOKEN), await session(OTHER)];
    // Threads are notified one after the other, and any of them may get a connection.
    const answers = async (ask: () => Promise<number>): Promise<number[]> => [
      ...new Set(await Promise.all(Array.from({ length: 16 }, ask))),
    ];
    const poll = { timeout: 10_000 };
    for (const token of [mine, friends]) await expect.poll(() => answers(() => part(token)), poll).toEqual([200]);
    await expect.poll(() => answers(() => statusOf(at('/app/stream/part.m4s'))), poll).toEqual([401]);
    await expect.poll(() => answers(() => statusOf(withToken('/app/stream/part.m4s', TOKEN))), poll).toEqual([401]);
    setTokens([FRIEND]);
    await expect.poll(() => answers(() => part(mine)), poll).toEqual([401]);
    await expect.poll(() => answers(() => statusOf(withToken('/app/stream/new-session.m3u8', TOKEN))), poll).toEqual([401]);
    expect(await answers(() => part(friends))).toEqual([200]);
    await until('the reason', () => logger.matching('viewer session closed: its play token was removed').length > 0, { deadlineMs: 5000 });
    setTokens([]);
    await expect.poll(() => answers(() => part(friends)), poll).toEqual([401]);
    setTokens(null);
    await expect.poll(() => answers(() => statusOf(at('/app/stream/part.m4s'))), poll).toEqual([200]);
  });

  test.each([
    ['ends earlier', { expires: '2020-01-01' }],
    ['is for other streams', { streams: 'show-*' }],
  ])('ends with a token that %s from now on', async (_change, change) => {
    await serve(0);
    const [mine, friends] = [await session(TOKEN), await session(OTHER)];
    setTokens([{ ...SITE, ...change }, FRIEND]);
    await expect.poll(() => part(mine), { timeout: 10_000 }).toBe(401);
    expect(await part(friends)).toBe(200);
  });

  test('is valid for one protocol', async () => {
    const { pool } = await serve(0);
    new BlobFeed(pool, 'stream', { kind: 'hlsv3' }).putText('seg_1_1_hls.ts', 'segment');
    const segment = (token: string): Promise<number> => statusOf(at(`/app/stream/seg_1_1_hls.ts?session=${token}`));
    const ts = await ask(withToken('/app/stream/ts:new-session.m3u8', TOKEN));
    const ll = await session(TOKEN);
    expect([await segment(ts.text), await segment(ll), await part(ll), await part(ts.text)]).toEqual([200, 401, 200, 401]);
  });

  test('of an open application is refused after the application got tokens', async () => {
    await serve(0);
    setTokens(null);
    await expect.poll(() => statusOf(at('/app/stream/new-session.m3u8')), { timeout: 10_000 }).toBe(200);
    const open = (await ask(at('/app/stream/new-session.m3u8'))).text;
    expect(await part(open)).toBe(200);
    setTokens([SITE]);
    await expect.poll(() => part(open), { timeout: 10_000 }).toBe(401);
  });

  test('needs a token and a signature when the virtual host signs URLs', async () => {
    await serve(0);
    setTokens([SITE], { signedPolicy: { ...POLICY, enables: { providers: [], publishers: ['llhls'] } } });
    const path = '/app/stream/new-session.m3u8';
    const signed = (url: string): string => signUrl(url, { url_expire: Date.now() + 3_600_000 }, POLICY);
    await expect.poll(() => statusOf(withToken(path, TOKEN)), { timeout: 10_000 }).toBe(401);
    expect(await statusOf(signed(at(path)))).toBe(401);
    const both = await ask(signed(withToken(path, TOKEN)));
    expect(both.status).toBe(200);
    expect(await part(both.text)).toBe(200);
  });

  test('reports its start as a use of the token', async () => {
    await serve(1);
    expect(await statusOf(withToken('/app/stream/new-session.m3u8', 'no-token-of-the-site'))).toBe(401);
    await session(TOKEN);
    await until('the use of the token', () => uses.length > 0, { deadlineMs: 5000 });
    expect(uses).toEqual([expect.stringMatching(/^[0-9a-f]{12}$/)]);
  });
});
