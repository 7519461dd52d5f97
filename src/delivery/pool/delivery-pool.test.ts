import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { BlobFeed, type BlobPool, startBlobPool } from '../../../test/fakes/blob-pool.ts';
import { RawClient } from '../../../test/fakes/raw-client.ts';
import { loadAddon } from '../../native/addon.ts';
import type { DeliveryLimits } from '../thread-protocol.ts';

describe.each([
  ['in the main thread', 0],
  ['in two workers', 2],
])('delivery %s', (_name, threads) => {
  let started: BlobPool | null = null;
  let lasting: (BlobPool & { readonly port: number }) | null = null;
  let port = 0;

  async function start(limits: Partial<DeliveryLimits> = {}): Promise<BlobPool> {
    started = await startBlobPool(threads, limits);
    ({ port } = await started.pool.listen({ host: '127.0.0.1', port: 0, tls: false }));
    return started;
  }

  /** A stream that ends with its test, in a pool for tests that change nothing else of it: threads start in as long as twenty of them take. */
  async function stream(options?: ConstructorParameters<typeof BlobFeed>[2]): Promise<BlobFeed> {
    if (lasting === null) {
      lasting = { ...(await start()), port };
      started = null;
    }
    ({ port } = lasting);
    const blobs = new BlobFeed(lasting.pool, 'stream', options);
    onTestFinished(() => blobs.feed.close());
    return blobs;
  }

  const get = (path: string, init: RequestInit = {}): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`, init);

  afterEach(async () => {
    await started?.pool.stop();
    await started?.pool.stop();
    started = null;
  });
  afterAll(() => lasting?.pool.stop());

  test('serves text and shared bytes, with the headers of the reference server', async () => {
    const { pool } = await start();
    pool.setDefaultCrossDomains({ urls: ['*'], headers: [] });
    const blobs = new BlobFeed(pool, 'stream');
    const media = randomBytes(300_000);
    blobs.putText('list.m3u8', '#EXTM3U\n');
    blobs.putBytes('seg.m4s', media);
    const list = await get('/app/stream/list.m3u8', { headers: { 'accept-encoding': 'identity' } });
    expect(await list.text()).toBe('#EXTM3U\n');
    const { date, connection, 'keep-alive': _keepAlive, ...headers } = Object.fromEntries(list.headers);
    expect(headers).toEqual({
      server: 'Millrace',
      vary: 'Origin, Accept-Encoding',
      'access-control-allow-origin': '*',
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'OPTIONS, GET, HEAD',
      'cache-control': 'no-cache, no-store',
      'content-encoding': 'identity',
      'content-length': '8',
      'content-type': 'application/vnd.apple.mpegurl',
    });
    expect(date).toMatch(/GMT$/);
    const segment = await get('/app/stream/seg.m4s');
    expect(Buffer.from(await segment.arrayBuffer()).equals(media)).toBe(true);
    await expect.poll(() => blobs.bytes).toBeGreaterThan(300_000);
  });

  test('answers with the newest media after a while without requests', async () => {
    const { pool } = await start();
    const blobs = new BlobFeed(pool, 'stream');
    blobs.putText('gone.m3u8', 'old');
    const resting = (): boolean[] => pool.status().threads.map((thread) => thread.resting);
    expect(blobs.feed.watched).toBe(false);
    for (let round = 0; round < 3; round += 1) {
      await expect.poll(() => resting().every(Boolean), { timeout: 5000 }).toBe(true);
      expect(blobs.feed.watched).toBe(false);
      const media = randomBytes(100_000);
      blobs.putText('list.m3u8', `round ${round}`);
      blobs.putBytes(`seg${round}.m4s`, media);
      blobs.drop('gone.m3u8');
      const ask = async (file: string): Promise<string> => {
        const client = await RawClient.open(port);
        client.send(`GET /app/stream/${file} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
        return await client.end();
      };
      const [list = '', segment = '', gone = ''] = await Promise.all(['list.m3u8', `seg${round}.m4s`, 'gone.m3u8'].map(ask));
      expect(list).toMatch(new RegExp(`\\r\\n\\r\\nround ${round}$`));
      expect(segment.endsWith(media.toString('latin1'))).toBe(true);
      expect(gone).toMatch(/^HTTP\/1.1 404 /);
      await expect.poll(() => blobs.feed.watched).toBe(true);
      expect(resting().every(Boolean)).toBe(false);
    }
  });

  test('is watched while a viewer is connected, and reports the first viewer after a time without viewers once', async () => {
    const { pool, comings } = await start();
    const blobs = new BlobFeed(pool, 'stream');
    blobs.putText('list.m3u8', 'here');
    const ask = async (): Promise<RawClient> => {
      const client = await RawClient.open(port);
      client.send('GET /app/stream/list.m3u8 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
      await client.until((text) => text.endsWith('here'));
      return client;
    };
    for (let round = 0; round < 2; round += 1) {
      await expect.poll(() => pool.status().threads.every(({ resting }) => resting), { timeout: 5000 }).toBe(true);
      expect([blobs.feed.watched, comings()]).toEqual([false, round]);
      // The thread of a remaining viewer does not rest: further viewers are no news.
      const clients = [await ask(), ...(await Promise.all([ask(), ask(), ask()]))];
      await expect.poll(() => [blobs.feed.watched, comings()]).toEqual([true, round + 1]);
      for (const client of clients.reverse()) client.destroy();
    }
  });

  test('watches the streams that are served, and notifies their packagers once, until no viewer is left', async () => {
    const { pool } = await start();
    const allBlobs = ['watched', 'other'].map((stream) => new BlobFeed(pool, stream));
    for (const blobs of allBlobs) blobs.putText('list.m3u8', 'here');
    const watched = (): unknown => allBlobs.map(({ feed, comings }) => [feed.watched, comings]);
    const client = await RawClient.open(port);
    const ask = async (target: string, answers: number): Promise<void> => {
      client.send(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
      await client.until((text) => text.split('HTTP/1.1 ').length > answers);
    };
    await ask('/app/watched/list.m3u8', 1);
    await expect.poll(watched).toEqual([
      [true, 1],
      [false, 0],
    ]);
    await ask('/app/watched/list.m3u8', 2);
    await ask('/app/other/none.m3u8', 3);
    await ask('/app/other/list.m3u8', 4);
    await expect.poll(watched).toEqual([
      [true, 1],
      [true, 1],
    ]);
    client.destroy();
    await expect.poll(watched, { timeout: 5000 }).toEqual([
      [false, 1],
      [false, 1],
    ]);
  });

  test('counts feeds read without a session for the lifetime of a session', async () => {
    const { pool } = await start({ sessionIdle: 2000 });
    for (const stream of ['read', 'other']) {
      const blobs = new BlobFeed(pool, stream);
      for (const file of ['open-list.m3u8', 'list.m3u8']) blobs.putText(file, 'here');
    }
    await get('/app/other/list.m3u8');
    expect(pool.readFeeds).toBe(0);
    for (const _ of [1, 2, 3]) await get('/app/read/open-list.m3u8');
    await expect.poll(() => pool.readFeeds).toBe(1);
    await get('/app/other/open-list.m3u8');
    await expect.poll(() => pool.readFeeds).toBe(2);
    await expect.poll(() => pool.readFeeds).toBe(0);
  });

  test('after idle time answers a client that has closed its side of the connection', async () => {
    const { pool } = await start();
    new BlobFeed(pool, 'stream').putText('list.m3u8', 'here');
    await expect.poll(() => pool.status().threads.every(({ resting }) => resting), { timeout: 5000 }).toBe(true);
    const client = await RawClient.open(port, { allowHalfOpen: true });
    client.socket.end('GET /app/stream/list.m3u8 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    expect(await client.end()).toMatch(/here$/);
  });

  test('refuses the same after a while without requests', async () => {
    const { pool } = await start();
    for (const path of ['/app/stream/%zz', '/app/stream/list.m3u8?x=%zz']) {
      await expect.poll(() => pool.status().threads.every(({ resting }) => resting), { timeout: 5000 }).toBe(true);
      const late = await RawClient.open(port);
      late.send(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
      const answer = await late.end();
      const prompt = await RawClient.open(port);
      prompt.send(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
      const undated = (text: string): string => text.replace(/Date: .*\r\n/, '');
      expect(undated(answer)).toBe(undated(await prompt.end()));
      expect(answer).toMatch(/^HTTP\/1.1 4/);
    }
  });

  test('frees memory while there are no requests', async () => {
    const { pool } = await start();
    const blobs = new BlobFeed(pool, 'stream');
    await expect.poll(() => pool.status().threads.every(({ resting }) => resting), { timeout: 5000 }).toBe(true);
    blobs.putBytes('seg.m4s', randomBytes(300_000));
    blobs.drop('seg.m4s');
    await expect.poll(() => pool.status().memory.retiring, { timeout: 5000 }).toBe(0);
  });

  test('gzip when the client takes it; text outside ASCII keeps its bytes', async () => {
    (await stream()).putText('list.m3u8', '#EXTM3U\nNAME="방송"\n'.repeat(50));
    const zipped = await get('/app/stream/list.m3u8', { headers: { 'accept-encoding': 'gzip' } });
    expect(zipped.headers.get('content-encoding')).toBe('gzip');
    expect(zipped.headers.get('vary')).toBe('Origin, Accept-Encoding');
    expect(Number(zipped.headers.get('content-length'))).toBeLessThan(200);
    const plain = await get('/app/stream/list.m3u8', { headers: { 'accept-encoding': 'gzip;q=0' } });
    expect(plain.headers.get('content-encoding')).toBe('identity');
    expect(await zipped.text()).toBe(await plain.text());
  });

  test.each([
    ['bytes=0-9', 206, 'bytes 0-9/100000', 10],
    ['bytes=65530-65545', 206, 'bytes 65530-65545/100000', 16],
    ['bytes=-5', 206, 'bytes 99995-99999/100000', 5],
    ['bytes=100000-', 416, 'bytes */100000', 0],
    ['bytes=0-1,4-5', 200, null, 100_000],
  ])('range %s is %i', async (range, status, contentRange, length) => {
    const media = randomBytes(100_000);
    (await stream()).putBytes('seg.m4s', media);
    const answer = await get('/app/stream/seg.m4s', { headers: { range } });
    expect([answer.status, answer.headers.get('content-range')]).toEqual([status, contentRange]);
    const from = Number(/bytes (\d+)/.exec(contentRange ?? 'bytes 0')?.[1] ?? 0);
    expect(Buffer.from(await answer.arrayBuffer()).equals(media.subarray(from, from + length))).toBe(true);
  });

  test('HEAD returns the length and no body', async () => {
    (await stream()).putBytes('seg.m4s', Buffer.alloc(5000));
    const answer = await get('/app/stream/seg.m4s', { method: 'HEAD' });
    expect([answer.status, answer.headers.get('content-length'), await answer.text()]).toEqual([200, '5000', '']);
  });

  test.each([
    ['GET', '/', 404],
    ['GET', '/app', 404],
    ['GET', '/app/stream', 404],
    ['GET', '/app/stream/', 404],
    ['GET', '/app/stream/nothing.m4s', 404],
    ['GET', '/app/other/list.m3u8', 404],
    ['GET', '/app/stream/list.m3u8/deeper/ignored', 200],
    ['GET', '/app/str%65am/list%2Em3u8', 200],
    ['GET', '/app%2Fstream/list.m3u8', 404],
    ['GET', '/app/stream/%zz', 400],
    ['OPTIONS', '/app/stream/list.m3u8', 200],
    ['OPTIONS', '/nowhere', 200],
    ['POST', '/app/stream/list.m3u8', 405],
    ['DELETE', '/app/stream', 405],
    ['PROPFIND', '/app/stream', 501],
  ])('%s %s: %i', async (method, path, status) => {
    (await stream()).putText('list.m3u8', 'x');
    const answer = await get(path, { method });
    expect(answer.status).toBe(status);
    if (status === 404) {
      expect(await answer.text()).toMatch(/^[a-z][^\n<]+\n$/);
      expect(answer.headers.get('content-type')).toBe('text/plain');
    }
    if (method === 'OPTIONS') {
      expect(answer.headers.get('access-control-allow-private-network')).toBe('true');
      expect(answer.headers.get('access-control-allow-methods')).toBe('OPTIONS, GET, HEAD');
    }
  });

  test.each([
    ['/', 'there is nothing at this path: streams are at /APP/STREAM/FILE\n'],
    ['/app/', 'there is nothing at this path: streams are at /APP/STREAM/FILE\n'],
    ['/app/other/list.m3u8', 'there is no such stream: its application does not exist, or nothing is published under this name\n'],
    ['/<script>/alert/list.m3u8', 'there is no such stream: its application does not exist, or nothing is published under this name\n'],
    ['/app/other/thumb.jpg', 'there is no such stream: its application does not exist, or nothing is published under this name\n'],
    ['/app/stream/nothing.m4s', 'the stream has no such file\n'],
    ['/app/stream', 'the stream has no such file\n'],
  ])('%s is 404, and the answer names the missing part', async (path, words) => {
    const crossDomains = { urls: ['*'], headers: [] };
    await stream({ kind: 'thumbnail', crossDomains });
    (await stream({ crossDomains })).putText('list.m3u8', 'x');
    lasting?.pool.setDefaultCrossDomains(crossDomains);
    onTestFinished(() => lasting?.pool.setDefaultCrossDomains({ urls: [], headers: [] }));
    const answer = await get(path, { headers: { origin: 'https://player.test' } });
    expect([answer.status, await answer.text(), answer.headers.get('content-type')]).toEqual([404, words, 'text/plain']);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    const head = await get(path, { method: 'HEAD' });
    expect([head.status, await head.text(), head.headers.get('content-length')]).toEqual([404, '', `${words.length}`]);
  });

  test('an unknown host name is named in the answer', async () => {
    const { pool } = await start();
    pool.setHosts([{ name: 'default', hostNames: ['media.example'] }]);
    const answer = await get('/app/stream/list.m3u8');
    expect([answer.status, await answer.text()]).toEqual([404, 'no virtual host serves this host name\n']);
  });

  test('WebSocket upgrades are refused in words', async () => {
    await stream();
    const client = await RawClient.open(port);
    client.send('GET /app/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    expect(await client.until((text) => text.endsWith('\n'))).toMatch(/^HTTP\/1\.1 501 .+WebSocket is not served here\n$/s);
    client.destroy();
  });

  test('the Host header chooses the virtual host, an absolute target wins over it', async () => {
    (await stream()).putText('who', 'default');
    (await stream({ vhost: 'example' })).putText('who', 'example');
    const ask = async (target: string, host: string): Promise<string | undefined> => {
      const client = await RawClient.open(port);
      client.send(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      return (await client.end()).split('\r\n\r\n')[1];
    };
    expect(await ask('/app/stream/who', '127.0.0.1:3333')).toBe('default');
    expect(await ask('/app/stream/who', 'live.example:80')).toBe('example');
    expect(await ask('/app/stream/who', 'elsewhere')).toBe('no virtual host serves this host name\n');
    expect(await ask('http://a.example/app/stream/who', 'localhost')).toBe('example');
  });

  test('several feeds of a stream share its path, each with its own rules', async () => {
    const rules = (origin: string) => ({ urls: [origin], headers: [] });
    (await stream({ kind: 'llhls', crossDomains: rules('a.test') })).putText('a', 'from llhls');
    (await stream({ kind: 'hlsv3', crossDomains: rules('b.test') })).putText('b', 'from hls');
    (await stream({ kind: 'thumbnail', crossDomains: rules('*') })).putText('thumb.jpg', 'picture');
    const ask = async (file: string, origin: string): Promise<(string | null)[]> => {
      const answer = await get(`/app/stream/${file}`, { headers: { origin } });
      return [await answer.text(), answer.headers.get('access-control-allow-origin'), answer.headers.get('access-control-allow-methods')];
    };
    expect(await ask('a', 'http://a.test')).toEqual(['from llhls', 'http://a.test', 'OPTIONS, GET, HEAD']);
    expect(await ask('a', 'http://b.test')).toEqual(['from llhls', null, null]);
    expect(await ask('b', 'http://b.test')).toEqual(['from hls', 'http://b.test', 'OPTIONS, GET, HEAD']);
    expect(await ask('thumb.jpg', 'http://c.test')).toEqual(['picture', '*', 'GET']);
  });

  test('a blocking request is answered when its media arrives, by every thread', async () => {
    const { pool } = await start();
    const blobs = new BlobFeed(pool, 'stream');
    const waiting = Array.from({ length: 20 }, () => get('/app/stream/wait-part').then((answer) => answer.text()));
    await expect.poll(() => waitingNow(pool)).toBe(20);
    blobs.putBytes('part', Buffer.from('here it is'));
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(['here it is']));
    await expect.poll(() => waitingNow(pool)).toBe(0);
  });

  test('a client that leaves is forgotten', async () => {
    const { pool } = await start();
    new BlobFeed(pool, 'stream');
    const abort = new AbortController();
    const asked = get('/app/stream/wait-part', { signal: abort.signal });
    await expect.poll(() => waitingNow(pool)).toBe(1);
    abort.abort();
    await expect(asked).rejects.toThrow();
    await expect.poll(() => waitingNow(pool)).toBe(0);
  });

  test('requests that wait are limited', async () => {
    const { pool } = await start({ waiting: 2 });
    new BlobFeed(pool, 'stream');
    const asked = Array.from({ length: 8 }, () => get('/app/stream/wait-part').then(({ status }) => status));
    await expect.poll(() => [pool.http.requests, pool.http.overloads + waitingNow(pool)]).toEqual([8, 8]);
    expect(await Promise.race(asked)).toBe(503);
    expect(waitingNow(pool)).toBeLessThanOrEqual(2 * Math.max(1, threads));
    await pool.stop();
    expect(new Set(await Promise.all(asked))).toEqual(new Set([503, 404]));
  });

  test('a session counts once across threads, and ends without further requests', async () => {
    // A process that is kept waiting for less asks in time all the same.
    const { pool, logger } = await start({ sessionIdle: 1000 });
    const blobs = new BlobFeed(pool, 'stream');
    new BlobFeed(pool, 'other');
    const token = await (await get('/app/stream/new-session')).text();
    const ask = async (path: string): Promise<number> => (await get(path, { headers: { connection: 'close' } })).status;
    for (let n = 0; n < 10; n += 1) expect(await ask(`/app/stream/need-session?session=${token}`)).toBe(200);
    expect(await ask('/app/stream/need-session')).toBe(401);
    expect(await ask(`/app/stream/need-session?session=${token}x`)).toBe(401);
    expect(await ask(`/app/other/need-session?session=${token}`)).toBe(401);
    await expect.poll(() => blobs.sessions).toBe(1);
    await expect.poll(() => blobs.sessions).toBe(0);
    const lines = logger.lines.filter(({ level }) => level === 'info');
    expect(lines.map(({ message }) => message)).toEqual(['viewer session opened', 'viewer session closed: idle']);
    expect(lines[0]?.fields).toMatchObject({ vhost: 'default', app: 'app', stream: 'stream', peer: '127.0.0.1' });
    pool.revokeSessions([token]);
    await expect.poll(() => ask(`/app/stream/need-session?session=${token}`)).toBe(401);
  });

  test('a session knows its bytes, and is refused once it was terminated', async () => {
    const { pool } = await start();
    const blobs = new BlobFeed(pool, 'stream');
    blobs.putBytes('public', randomBytes(5000));
    const token = await (await get('/app/stream/new-session')).text();
    const ask = async (): Promise<number> => (await get(`/app/stream/need-session?session=${token}`)).status;
    expect(await ask()).toBe(200);
    await (await get('/app/stream/public')).arrayBuffer();
    await expect.poll(() => blobs.sessions).toBe(1);
    const viewer = [...blobs.viewers.values()][0];
    await expect.poll(() => viewer?.bytes).toBeGreaterThan(200);
    expect(viewer?.bytes).toBeLessThan(5000);
    viewer?.terminate();
    await expect.poll(ask).toBe(401);
    await expect.poll(() => blobs.sessions).toBe(0);
    expect(await ask()).toBe(401);
  });

  test('closing a feed answers waiting requests, ends its sessions and frees its memory', async () => {
    const { pool } = await start();
    const blobs = new BlobFeed(pool, 'stream');
    blobs.putBytes('seg', Buffer.alloc(1_000_000));
    await get('/app/stream/new-session');
    await expect.poll(() => blobs.sessions).toBe(1);
    const asked = get('/app/stream/wait-part');
    await expect.poll(() => waitingNow(pool)).toBe(1);
    blobs.feed.close();
    blobs.feed.close();
    expect((await asked).status).toBe(404);
    expect(blobs.sessions).toBe(0);
    await expect.poll(() => pool.status().memory).toMatchObject({ used: 0, retiring: 0 });
    expect((await get('/app/stream/seg')).status).toBe(404);
  });

  test.each([
    ['a reader that stalls', 0, 30_000_000],
    ['a reader that stalls behind others', 4, 8_000_000],
  ])('%s gets the right bytes although they were released and written over elsewhere', async (_name, others, size) => {
    // Images are let go of after some reports; they are to be there still when the reader comes.
    const { pool } = await start(others > 0 ? { reportInterval: 250 } : {});
    const blobs = new BlobFeed(pool, 'stream');
    const media = randomBytes(size);
    blobs.putBytes('seg', media);
    const answered = Array.from({ length: others }, async () => await (await get('/app/stream/seg')).arrayBuffer());
    if (loadAddon().addon !== null && others > 0) await expect.poll(() => hotBytes(pool)).toBeGreaterThanOrEqual(size);
    await Promise.all(answered);
    await expect.poll(() => inFlight(pool)).toBe(0);
    const client = await RawClient.open(port);
    client.socket.pause();
    // More than the buffers of both ends take.
    const request = 'GET /app/stream/seg HTTP/1.1\r\nHost: 127.0.0.1\r\n';
    client.send(`${`${request}\r\n`.repeat(Math.ceil(30_000_000 / size) - 1)}${request}Connection: close\r\n\r\n`);
    await expect.poll(() => inFlight(pool)).toBeGreaterThan(0);
    blobs.drop('seg');
    for (let n = 0; n < 100; n += 1) {
      blobs.putBytes(`other${n}`, Buffer.alloc(500_000, n));
      if (n >= 10) blobs.drop(`other${n - 10}`);
    }
    await expect.poll(() => pool.status().memory.retiring).toBeGreaterThan(size / 2);
    client.socket.resume();
    const answers = answersIn(Buffer.from(await client.end(15_000), 'latin1'));
    // Requests that were read after the segment had gone are refused.
    const served = answers.filter(({ status }) => status === 200);
    expect(served.length).toBeGreaterThan(0);
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(answers.length - served.length);
    expect(answers).toHaveLength(Math.ceil(30_000_000 / size));
    for (const { body } of served) expect(body.equals(media)).toBe(true);
    await expect.poll(() => inFlight(pool)).toBe(0);
    await expect.poll(() => pool.status().memory.retiring).toBe(0);
  });

  test('files are served like shared bytes, whole and in ranges, and 404 after their removal', async () => {
    const { pool } = await start({ fileBytes: 3_000_000 });
    const blobs = new BlobFeed(pool, 'stream');
    const folder = mkdtempSync(path.join(tmpdir(), 'delivery-file-'));
    const media = randomBytes(2_000_000);
    const [small, large] = [path.join(folder, 'small'), path.join(folder, 'large')];
    writeFileSync(small, media);
    writeFileSync(large, Buffer.alloc(4_000_000));
    blobs.putFile('seg', small);
    blobs.putFile('huge', large);
    blobs.putFile('gone', path.join(folder, 'gone'));
    const answers = await Promise.all(Array.from({ length: 10 }, () => get('/app/stream/seg')));
    for (const answer of answers) expect(Buffer.from(await answer.arrayBuffer()).equals(media)).toBe(true);
    const range = await get('/app/stream/seg', { headers: { range: 'bytes=-7' } });
    expect([range.status, Buffer.from(await range.arrayBuffer())]).toEqual([206, media.subarray(-7)]);
    expect((await get('/app/stream/seg', { headers: { range: 'bytes=2000000-' } })).status).toBe(416);
    expect((await get('/app/stream/seg', { method: 'HEAD' })).headers.get('content-length')).toBe('2000000');
    expect((await get('/app/stream/gone')).status).toBe(404);
    expect((await get('/app/stream/huge')).status).toBe(503);
    expect((await get('/app/stream/seg')).status).toBe(200);
    rmSync(folder, { recursive: true });
  });

  test('a view that throws fails only its request', async () => {
    (await stream()).putText('list', 'x');
    expect((await get('/app/stream/throw')).status).toBe(500);
    expect((await get('/app/stream/list')).status).toBe(200);
  });
});

function waitingNow(pool: BlobPool['pool']): number {
  return pool.status().threads.reduce((sum, { report }) => sum + (report?.waiting ?? 0), 0);
}

function inFlight(pool: BlobPool['pool']): number {
  return pool.status().threads.reduce((sum, { report }) => sum + (report?.blocksInFlight ?? 0), 0);
}

/** Kept a second time by all threads. */
function hotBytes(pool: BlobPool['pool']): number {
  return pool.status().threads.reduce((sum, { report }) => sum + (report?.hot.bytes ?? 0), 0);
}

/** The answers to pipelined requests. */
function answersIn(bytes: Buffer): { readonly status: number; readonly body: Buffer }[] {
  const answers: { readonly status: number; readonly body: Buffer }[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\r\n\r\n', at) + 4;
    const head = bytes.toString('latin1', at, end);
    at = end + Number(/^Content-Length: (\d+)/m.exec(head)?.[1]);
    answers.push({ status: Number(head.slice(9, 12)), body: bytes.subarray(end, at) });
  }
  return answers;
}
