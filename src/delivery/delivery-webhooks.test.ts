/** Admission webhooks over HTTP: the threads of a pool, which ask a control server of the test. */
import { get } from 'node:http';
import { get as getSecurely } from 'node:https';
import { afterEach, describe, expect, test } from 'vitest';
import { BlobFeed, type BlobPool, startBlobPool } from '../../test/fakes/blob-pool.ts';
import { type ControlAnswer, type ControlRequest, ControlServer } from '../../test/fakes/control-server.ts';
import { metricsText } from '../../test/fakes/metrics-text.ts';
import { RawClient } from '../../test/fakes/raw-client.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { selfSigned } from '../../test/fakes/self-signed.ts';
import { until } from '../../test/harness/poll.ts';
import { type AdmissionRecord, AdmissionWebhooks } from '../access/admission-webhooks.ts';
import { RefusalCounts } from '../access/refusal-counts.ts';
import { systemClock } from '../util/clock.ts';
import { hashKey } from '../util/key-hash.ts';

const DEADLINE = { deadlineMs: 20_000 };

const started: { pools: BlobPool[]; webhooks: AdmissionWebhooks[]; controls: ControlServer[] } = { pools: [], webhooks: [], controls: [] };
afterEach(async () => {
  for (const { pool } of started.pools.splice(0)) await pool.stop();
  for (const webhooks of started.webhooks.splice(0)) await webhooks.stop();
  for (const control of started.controls.splice(0)) control.close();
});

/** A control server that admits unless stated otherwise, with the URLs of the ends that it was notified of. */
async function startControl() {
  const server = await ControlServer.start();
  started.controls.push(server);
  return {
    server,
    get asked(): readonly ControlRequest[] {
      return server.about('', 'opening');
    },
    get over(): readonly string[] {
      return server.about('', 'closing').map(({ request }) => request.url);
    },
    set says(says: (request: ControlRequest['request']) => ControlAnswer | Promise<ControlAnswer>) {
      server.answer = async ({ request }) => {
        const said = await says(request);
        return typeof said === 'object' && said !== null ? { allowed: true, ...said } : said;
      };
    },
  };
}

async function serve({ threads = 0, sessionIdle = 60_000 }: { threads?: number; sessionIdle?: number } = {}) {
  const control = await startControl();
  const adopted: { readonly record: AdmissionRecord; over: number }[] = [];
  const adopt = (record: AdmissionRecord) => {
    const entry = { record, over: 0 };
    adopted.push(entry);
    return () => {
      entry.over += 1;
    };
  };
  const refusals = new RefusalCounts();
  const webhooks = new AdmissionWebhooks({ clock: systemClock, logger: new RecordingLogger() });
  started.webhooks.push(webhooks);
  const allBlobs = await startBlobPool(
    threads,
    { sessionIdle },
    {
      judge: (vhost, request) => webhooks.judge(vhost, request),
      adopt,
      onRefusals: (counts) => refusals.add(counts),
    },
  );
  started.pools.push(allBlobs);
  const { pool } = allBlobs;
  const admissionWebhooks = {
    ...{ controlServerUrl: control.server.url, secretKey: control.server.secretKey, timeout: 5000 },
    enables: { providers: [], publishers: ['llhls', 'hls', 'thumbnail'] },
  };
  const hosts = [
    { name: 'default', hostNames: ['127.0.0.1'], access: { admissionWebhooks } },
    { name: 'other', hostNames: ['other.example'] },
  ];
  webhooks.follow(hosts);
  pool.setHosts(hosts);
  const { port } = await pool.listen({ host: '127.0.0.1', port: 0, tls: false });
  const blobs = new BlobFeed(pool, 'stream');
  blobs.putText('part.m4s', 'part');
  new BlobFeed(pool, 'stream', { kind: 'thumbnail' }).putText('thumb.jpg', 'picture');
  const ask = async (path: string, headers: Record<string, string> = {}): Promise<{ status: number; text: string }> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
    return { status: response.status, text: await response.text() };
  };
  return { control, pool, blobs, port, ask, adopted, refusals, settings: admissionWebhooks, logger: allBlobs.logger };
}

const PLAYLIST = '/app/stream/new-session.m3u8';

describe.each([0, 2])('with %i threads', (threads) => {
  test('a viewer is asked about once with its whole URL, for all its requests', async () => {
    const { control, ask, port } = await serve({ threads });
    const { status, text } = await ask(`${PLAYLIST}?token=a%20b`, { 'user-agent': 'player/1' });
    expect(status).toBe(200);
    for (let n = 0; n < 8; n += 1) expect((await ask(`/app/stream/part.m4s?session=${text}`, { connection: 'close' })).status).toBe(200);
    expect(control.asked).toEqual([
      {
        client: { address: '127.0.0.1', port: expect.any(Number) as number, real_ip: '127.0.0.1', user_agent: 'player/1' },
        request: {
          ...{ direction: 'outgoing', protocol: 'LLHLS', status: 'opening', time: expect.any(String) as string },
          url: `http://127.0.0.1:${port}${PLAYLIST}?token=a%20b`,
        },
      },
    ]);
    expect(control.over).toEqual([]);
  });

  test('an admission ends with its session, reported by the last thread that has seen the session', async () => {
    const { control, ask, port, blobs } = await serve({ threads, sessionIdle: 2000 });
    const { text } = await ask(PLAYLIST);
    await until('the viewer', () => blobs.sessions === 1, DEADLINE);
    for (let n = 0; n < 8; n += 1) await ask(`/app/stream/part.m4s?session=${text}`, { connection: 'close' });
    await until('the report of the end', () => control.over.length > 0, DEADLINE);
    expect(blobs.sessions).toBe(0);
    expect(control.over).toEqual([`http://127.0.0.1:${port}${PLAYLIST}`]);
  });

  test('a returning session is asked about again, and may be refused', async () => {
    const { control, ask } = await serve({ threads, sessionIdle: 100 });
    const { text } = await ask(`${PLAYLIST}?seat=7`);
    const part = async (): Promise<number> => (await ask(`/app/stream/part.m4s?session=${text}`)).status;
    await until('the report of the end', () => control.over.length === 1, DEADLINE);
    expect(await part()).toBe(200);
    await until('another end', () => control.over.length === 2, DEADLINE);
    expect(new Set(control.asked.map(({ request }) => request.url)).size).toBe(1);
    expect(control.asked).toHaveLength(2);
    control.says = () => ({ allowed: false, reason: 'no' });
    expect(await part()).toBe(200);
    await expect.poll(part, { timeout: 30_000 }).toBe(401);
  });

  test('an admission ends when the server stops, whether its session was reported or not', async () => {
    const { control, ask, pool, adopted, blobs } = await serve({ threads });
    await ask(PLAYLIST);
    await until('the viewer', () => blobs.sessions === 1, DEADLINE);
    await ask(PLAYLIST);
    await pool.stop();
    expect(control.over).toHaveLength(2);
    expect(adopted).toEqual([]);
  });

  test('the requests and ends of the threads are counted', async () => {
    const { control, ask, pool, blobs, settings } = await serve({ threads });
    const sum = (): Record<string, number> => {
      const all: Record<string, number> = {};
      for (const { url, ...figures } of pool.controlServers) {
        expect(url).toBe(settings.controlServerUrl.replace(/\?.*/, ''));
        for (const [name, count] of Object.entries(figures)) all[name] = (all[name] ?? 0) + count;
      }
      return all;
    };
    for (let n = 0; n < 4; n += 1) await ask(PLAYLIST, { connection: 'close' });
    control.says = () => ({ allowed: false });
    await ask(PLAYLIST);
    control.says = () => ({ allowed: 'yes' });
    await ask(PLAYLIST);
    await until('the figures', () => sum()['requests'] === 6 && sum()['inFlight'] === 0, DEADLINE);
    expect(sum()).toMatchObject({ allowed: 4, refused: 1, failed: 1, admitted: 4, closingsDelivered: 0 });
    await until('the viewers', () => blobs.sessions === 4, DEADLINE);
    blobs.feed.close();
    await until('four delivered ends', () => sum()['closingsDelivered'] === 4, DEADLINE);
    expect(sum()).toMatchObject({ admitted: 0, closingsLost: 0, closingsPending: 0 });
  });

  test('it is over when the stream ends', async () => {
    const { control, ask, blobs } = await serve({ threads });
    await ask(PLAYLIST);
    await until('the viewer', () => blobs.sessions === 1, DEADLINE);
    blobs.feed.close();
    await until('the report of the end', () => control.over.length === 1, DEADLINE);
  });

  test('an admission ends when its viewer is disconnected', async () => {
    const { control, ask, blobs } = await serve({ threads });
    await ask(PLAYLIST);
    await until('the viewer', () => blobs.sessions === 1, DEADLINE);
    for (const { terminate } of blobs.viewers.values()) terminate();
    await until('the report of the end', () => control.over.length === 1, DEADLINE);
  });

  test('its time ends the session', async () => {
    const { control, ask } = await serve({ threads });
    control.says = () => ({ lifetime: 2500 });
    const { text } = await ask(PLAYLIST);
    expect((await ask(`/app/stream/part.m4s?session=${text}`)).status).toBe(200);
    await expect.poll(async () => (await ask(`/app/stream/part.m4s?session=${text}`)).status, { timeout: 30_000 }).toBe(401);
    await until('the report of the end', () => control.over.length === 1, DEADLINE);
  });
});

test('a refused client gets the reason, which is logged once, and no media', async () => {
  const { control, ask, logger } = await serve();
  control.says = () => ({ allowed: false, reason: 'not paid' });
  expect(await ask(PLAYLIST)).toEqual({ status: 401, text: 'not paid\n' });
  expect(await ask('/app/stream/thumb.jpg')).toEqual({ status: 401, text: 'not paid\n' });
  expect((await ask('/app/stream/part.m4s')).status).toBe(401);
  await until(
    'a line about the refused viewer',
    () => logger.lines.some(({ message }) => message === 'viewer refused: the control server does not allow it'),
    DEADLINE,
  );
  const [line] = logger.lines.filter(({ message }) => message.startsWith('viewer refused'));
  expect(line?.fields).toMatchObject({ code: 'webhook-refused', said: 'not paid', over: 'llhls' });
});

test.each([false, true])('a refused viewer gets the reason in any script, over TLS %s', async (tls) => {
  const { control, pool, port, ask } = await serve();
  pool.setCertificates([{ hostNames: ['127.0.0.1'], ...selfSigned('localhost') }]);
  const secure = tls ? (await pool.listen({ host: '127.0.0.1', port: 0, tls: true })).port : port;
  const answered = (): Promise<{ type: string | undefined; text: string }> =>
    new Promise((resolve, reject) => {
      const target = { host: '127.0.0.1', port: secure, path: PLAYLIST, rejectUnauthorized: false };
      const asked = (tls ? getSecurely : get)(target, async (response) => {
        resolve({ type: response.headers['content-type'], text: Buffer.concat(await response.toArray()).toString() });
      });
      asked.on('error', reject);
    });
  const said = 'не оплачено: 5 € — Ċ';
  control.says = () => ({ allowed: false, reason: said });
  expect(await answered()).toEqual({ type: 'text/plain; charset=utf-8', text: `${said}\n` });
  control.says = () => ({ allowed: false, reason: 'not paid' });
  expect(await answered()).toEqual({ type: 'text/plain', text: 'not paid\n' });
  expect((await ask(PLAYLIST)).text).toBe('not paid\n');
});

test.each([0, 2])('a refusal in one of %i threads is counted in the main thread', async (threads) => {
  const { control, ask, refusals } = await serve({ threads });
  control.says = () => ({ allowed: false });
  for (const path of [PLAYLIST, PLAYLIST, '/app/stream/thumb.jpg']) expect((await ask(path)).status).toBe(401);
  await until('the report', () => refusals.total === 3, DEADLINE);
  expect(metricsText(refusals)).toContain('{direction="outgoing",protocol="llhls",reason="webhook-refused"} 2\n');
});

test('other requests are served while a control server is asked, and the request itself after the answer', async () => {
  const { control, ask } = await serve();
  const { promise, resolve } = Promise.withResolvers<object>();
  control.says = ({ protocol }) => (protocol === 'LLHLS' ? promise : {});
  const held = ask(PLAYLIST);
  await until('the question', () => control.asked.length === 1, DEADLINE);
  expect(await ask('/app/stream/thumb.jpg')).toEqual({ status: 200, text: 'picture' });
  resolve({});
  expect((await held).status).toBe(200);
});

test('the admission of a client that left before the answer ends with it', async () => {
  const { control, port, pool } = await serve();
  const { promise, resolve } = Promise.withResolvers<object>();
  control.says = () => promise;
  const client = await RawClient.open(port);
  client.send(`GET ${PLAYLIST} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  await until('the question', () => control.asked.length === 1, DEADLINE);
  client.socket.destroy();
  await until('no connection is left', () => pool.status().threads[0]?.report?.connections === 0, DEADLINE);
  resolve({});
  await until('the report of the end', () => control.over.length === 1, DEADLINE);
});

test('the admission of a client without a session ends at once', async () => {
  const { control, ask } = await serve();
  expect((await ask('/app/nothing/new-session.m3u8')).status).toBe(404);
  expect((await ask('/app/stream/missing.m3u8')).status).toBe(404);
  await until('two reports of an end', () => control.over.length === 2, DEADLINE);
});

describe('new_url', () => {
  test('serves another stream at the requested address', async () => {
    const { control, ask, pool, port } = await serve();
    const blobs = new BlobFeed(pool, 'renamed');
    blobs.putText('part.m4s', 'renamed');
    new BlobFeed(pool, 'renamed', { kind: 'thumbnail' }).putText('thumb.jpg', 'another picture');
    control.says = ({ url }) => ({ new_url: url.replace('/wanted/', '/renamed/') });
    const { status, text } = await ask('/app/wanted/new-session.m3u8');
    expect(status).toBe(200);
    expect(await ask(`/app/renamed/part.m4s?session=${text}`)).toEqual({ status: 200, text: 'renamed' });
    expect((await ask(`/app/stream/part.m4s?session=${text}`)).status).toBe(401);
    expect(await ask('/app/wanted/thumb.jpg')).toEqual({ status: 200, text: 'another picture' });
    // It is not asked about the new one.
    expect(control.asked.map(({ request }) => request.url)).toEqual([
      `http://127.0.0.1:${port}/app/wanted/new-session.m3u8`,
      `http://127.0.0.1:${port}/app/wanted/thumb.jpg`,
    ]);
    await until('the viewer', () => blobs.sessions === 1, DEADLINE);
    blobs.feed.close();
    await until('the report of the end', () => control.over.length === 1, DEADLINE);
  });

  test.each([
    ['http://127.0.0.1:3333/app/renamed/base.m3u8', '../../app/renamed/'],
    ['http://127.0.0.1:3333/app/wanted/base.m3u8', ''],
    ['https://other.example:3334/app/far/base.m3u8', '//other.example:3334/app/far/'],
    ['rtmp://127.0.0.1/app/renamed', '../../app/renamed/'],
  ])('%s is reached by %o', async (newUrl, base) => {
    const { control, ask, pool } = await serve();
    for (const stream of ['renamed', 'wanted']) new BlobFeed(pool, stream);
    new BlobFeed(pool, 'far', { vhost: 'other' });
    control.says = () => ({ new_url: newUrl });
    expect(await ask('/app/wanted/base.m3u8')).toEqual({ status: 200, text: base });
  });

  test.each(['new-session.m3u8', 'ts:new-session.m3u8'])(
    'serves %s of an application with play tokens, until its lifetime ends',
    async (file) => {
      const { control, ask, pool, port, settings } = await serve();
      const tokens = [{ name: 'site', hash: hashKey('a-token-of-the-site-1') }];
      pool.setHosts([
        { name: 'default', hostNames: ['127.0.0.1'], access: { admissionWebhooks: settings } },
        { name: 'other', hostNames: ['other.example'], keys: { applications: new Map([['app', { playTokens: tokens }]]), template: {} } },
      ]);
      const kind = file.startsWith('ts:') ? 'hlsv3' : 'llhls';
      new BlobFeed(pool, 'far', { vhost: 'other', kind }).putText('part.m4s', 'far away');
      const askThere = (path: string): Promise<{ status: number | undefined; text: string }> =>
        new Promise((resolve, reject) => {
          const asked = get({ host: '127.0.0.1', port, path, headers: { host: 'other.example' } }, async (response) => {
            resolve({ status: response.statusCode, text: Buffer.concat(await response.toArray()).toString() });
          });
          asked.on('error', reject);
        });
      expect((await askThere(`/app/far/${file}`)).status).toBe(401);
      control.says = () => ({ new_url: `http://other.example/app/far/${file}`, lifetime: 3000 });
      const { text } = await ask(`/app/wanted/${file}`);
      expect(await askThere(`/app/far/part.m4s?session=${text}`)).toEqual({ status: 200, text: 'far away' });
      expect((await askThere('/app/far/part.m4s')).status).toBe(401);
      await expect.poll(async () => (await askThere(`/app/far/part.m4s?session=${text}`)).status, { timeout: 30_000 }).toBe(401);
      await until('the report of the end', () => control.over.length === 1, DEADLINE);
    },
  );

  test('of an unknown stream is 404', async () => {
    const { control, ask } = await serve();
    control.says = () => ({ new_url: 'http://nobody.example/app/stream/new-session.m3u8' });
    expect((await ask(PLAYLIST)).status).toBe(404);
    await until('the report of the end', () => control.over.length === 1, DEADLINE);
  });
});

test('a control server that does not answer refuses in time, and its threads stop in time', async () => {
  const { control, ask, pool, settings, blobs } = await serve({ threads: 2 });
  await ask(PLAYLIST);
  await until('the viewer', () => blobs.sessions === 1, DEADLINE);
  control.says = () => null;
  pool.setHosts([{ name: 'default', hostNames: ['127.0.0.1'], access: { admissionWebhooks: { ...settings, timeout: 50 } } }]);
  expect((await ask(PLAYLIST)).status).toBe(401);
  control.server.closing = () => null;
  const held = ask(PLAYLIST).catch(() => null);
  const before = performance.now();
  await pool.stop();
  expect(performance.now() - before).toBeLessThan(3000);
  await held;
  expect(control.over).toHaveLength(1);
});

test('when a thread dies the ends of its viewers are reported, and returning viewers are asked about', async () => {
  const { ask, control, pool, adopted, blobs, settings, port } = await serve({ threads: 1 });
  const { text } = await ask(PLAYLIST);
  await until('the viewer', () => blobs.sessions === 1, DEADLINE);
  blobs.feed.update({ crash: true });
  await until('the restart of the thread', () => pool.status().restarts === 1, DEADLINE);
  await until('the adopted end', () => adopted.length === 1, DEADLINE);
  const { controlServerUrl, secretKey } = settings;
  expect(adopted).toMatchObject([
    { over: 1, record: { settings: { controlServerUrl, secretKey }, request: { url: `http://127.0.0.1:${port}${PLAYLIST}` } } },
  ]);
  await until('the figures', () => pool.controlServers.some(({ allowed }) => allowed === 1), DEADLINE);
  const part = async (): Promise<number | null> => (await ask(`/app/stream/part.m4s?session=${text}`).catch(() => null))?.status ?? null;
  await expect.poll(part, { timeout: 30_000 }).toBe(200);
  await until('another question', () => control.asked.length === 2, DEADLINE);
  expect(control.over).toEqual([]);
  await pool.stop();
  await until('another end', () => control.over.length === 1, DEADLINE);
  expect(adopted).toHaveLength(1);
});
