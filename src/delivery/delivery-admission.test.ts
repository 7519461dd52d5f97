/** Limits of one address at the HTTP ports, and the addresses of viewers behind proxies. */
import { once } from 'node:events';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { BlobFeed } from '../../test/fakes/blob-pool.ts';
import { BLOB_VIEWS } from '../../test/fakes/blob-views.ts';
import { RawClient } from '../../test/fakes/raw-client.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { selfSigned } from '../../test/fakes/self-signed.ts';
import { systemClock } from '../util/clock.ts';
import { DescriptorLedger } from '../util/descriptor-ledger.ts';
import { type AdmissionPlan, OPEN_ADMISSION } from './admission.ts';
import { DEFAULT_DELIVERY_LIMITS } from './pool/delivery-limits.ts';
import { DeliveryPool } from './pool/delivery-pool.ts';
import { MainThreadServer } from './pool/main-thread-server.ts';
import type { RelayedPeer } from './relayed-peer.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const GET = 'GET /app/s/hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
const SHARE = 'HTTP connections refused: their address has its share';
/** Signalling that is answered when the test says so. */
const WHEP = 'POST /app/s?direction=whep HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\n';

async function start(plan: Partial<AdmissionPlan>) {
  const logger = new RecordingLogger();
  const clients: RelayedPeer[] = [];
  const sockets = new WebSocketServer({ noServer: true });
  const foreign = new MainThreadServer(
    {
      request: (request, response, client) => {
        clients.push(client);
        request.resume().on('end', () => response.end('answered'));
      },
      upgrade: (request, socket, head, client) => {
        clients.push(client);
        sockets.handleUpgrade(request, socket, head, () => undefined);
      },
    },
    logger,
  );
  await foreign.listen();
  const pool = new DeliveryPool({
    threads: 0,
    views: BLOB_VIEWS,
    limits: { ...DEFAULT_DELIVERY_LIMITS, reportInterval: 20, stopGrace: 20 },
    admission: { ...OPEN_ADMISSION, ...plan },
    clock: systemClock,
    logger,
  });
  pool.relaySignalling(foreign.path);
  await pool.start();
  pool.setHosts([{ name: 'default', hostNames: ['127.0.0.1'] }]);
  pool.setCertificates([{ hostNames: ['*'], ...selfSigned('media.example') }]);
  new BlobFeed(pool, 's').putText('hello', 'hello there');
  cleanups.push(
    () => foreign.close(),
    () => pool.stop(),
    () => sockets.close(),
  );
  const listen = async (secure: boolean): Promise<number> => (await pool.listen({ host: '127.0.0.1', port: 0, tls: secure })).port;
  return { pool, logger, clients, plain: await listen(false), listenSecure: () => listen(true) };
}

async function open(port: number, localAddress = '127.0.0.1', first = ''): Promise<RawClient> {
  const client = await RawClient.open(port, { localAddress });
  cleanups.push(() => client.destroy());
  if (first !== '') client.send(first);
  return client;
}

/** Sends a request and resolves with the answer. */
async function ask(client: RawClient, request = GET): Promise<string> {
  client.send(request);
  return await client.until((text) => text.includes('hello there') || text.includes('too many'));
}

describe('connections of one address', () => {
  test('have a share and leave room for others, and a refused one gets the reason', async () => {
    const { plain, logger } = await start({ viewers: 2 });
    const first = await open(plain);
    expect(await ask(first)).toContain('200 OK');
    expect(await ask(await open(plain))).toContain('200 OK');
    for (let n = 0; n < 3; n += 1) expect(await ask(await open(plain))).toMatch(/^HTTP\/1\.1 503 .*Retry-After: 5.*too many connections/s);
    expect(await ask(await open(plain, '127.0.0.2'))).toContain('200 OK');
    await logger.line(SHARE);
    expect(logger.matching(SHARE).map(({ fields }) => fields['count'])).toEqual([1]);
    first.destroy();
    const again = async (): Promise<boolean> => (await ask(await open(plain))).includes('200 OK');
    while (!(await again()));
  });

  test('over TLS count with the others, and are closed before the handshake', async () => {
    const { plain, listenSecure } = await start({ viewers: 1 });
    await open(plain);
    const port = await listenSecure();
    const refused = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    refused.on('error', () => undefined);
    await new Promise((done) => refused.once('close', done));
    const other = connectTls({ port, host: '127.0.0.1', localAddress: '127.0.0.2', rejectUnauthorized: false } as object);
    await once(other, 'secureConnect');
    other.destroy();
  });

  test('of all addresses share the descriptors for viewers, including those of signalling', async () => {
    const descriptors = DescriptorLedger.open(4, 2);
    const { plain, logger } = await start({ descriptors });
    const main = new DescriptorLedger(descriptors, 0);
    expect(main.take()).toBe(true);
    // Its own, and both ends of the relay.
    const held = await open(plain, '127.0.0.1', WHEP);
    while (main.held < 4) await new Promise(setImmediate);
    expect(await ask(await open(plain, '127.0.0.2'))).toContain('503');
    expect((await logger.line('HTTP connections refused: the file descriptors for them are used up (ulimit -n)')).fields).toMatchObject({
      limit: 4,
    });
    held.send('offer');
    await held.until((text) => text.includes('answered'));
    held.destroy();
    while (main.held > 1) await new Promise(setImmediate);
    expect(await ask(await open(plain, '127.0.0.2'))).toContain('200 OK');
  });
});

describe('signalling', () => {
  test('requests that wait for an answer have a separate share per address', async () => {
    const { plain, logger, listenSecure } = await start({ signalling: 2 });
    const waiting = [await open(plain, '127.0.0.1', WHEP), await open(plain, '127.0.0.1', WHEP)];
    const refused = await open(plain, '127.0.0.1', WHEP);
    expect(await refused.until((text) => text.includes('wait for an answer'))).toMatch(/^HTTP\/1\.1 429 Too Many Requests/);
    const upgrade = new WebSocket(`wss://127.0.0.1:${await listenSecure()}/app/s`, { rejectUnauthorized: false });
    const [error] = (await once(upgrade, 'error')) as [Error];
    expect(error.message).toContain('429');
    expect(logger.matching('signalling requests refused: too many of their address wait for an answer')).toHaveLength(1);
    const other = await open(plain, '127.0.0.2', WHEP);
    other.send('offer');
    expect(await other.until((text) => text.includes('answered'))).toContain('200 OK');
    for (const client of waiting) client.send('offer');
    for (const client of waiting) await client.until((text) => text.includes('answered'));
    // WebSockets that were answered have given theirs back.
    for (let n = 0; n < 4; n += 1) {
      const socket = new WebSocket(`ws://127.0.0.1:${plain}/app/s`);
      cleanups.push(() => socket.terminate());
      await once(socket, 'open');
    }
  });
});

describe('behind a trusted proxy', () => {
  const WITH = (client: string, file: string): string =>
    GET.replace('hello', file).replace('\r\n\r\n', `\r\nX-Forwarded-For: ${client}\r\n\r\n`);

  test('the address of a viewer is taken from X-Forwarded-For, and the proxy has no share', async () => {
    const { plain, logger, clients } = await start({ viewers: 2, trustedProxies: ['127.0.0.1'] });
    const proxy = [await open(plain), await open(plain), await open(plain)];
    proxy[0]?.send(WITH('203.0.113.1, 192.0.2.7', 'new-session'));
    expect((await logger.line('viewer session opened')).fields['peer']).toBe('192.0.2.7');
    proxy[1]?.send(WHEP.replace('\r\n\r\n', '\r\nX-Forwarded-For: 192.0.2.8\r\n\r\noffer'));
    await proxy[1]?.until((text) => text.includes('answered'));
    expect(clients.at(-1)?.address).toBe('192.0.2.8');
    // Sessions are counted where the viewers are.
    const told = [WITH('192.0.2.9', 'new-session'), WITH('192.0.2.9', 'new-session'), WITH('192.0.2.9', 'new-session')];
    for (const request of told) proxy[2]?.send(request);
    await proxy[2]?.until((text) => text.endsWith('full'));
  });

  test('an untrusted proxy is ignored', async () => {
    const { plain, logger, clients } = await start({ trustedProxies: ['192.0.2.1'] });
    (await open(plain)).send(WITH('192.0.2.7', 'new-session'));
    expect((await logger.line('viewer session opened')).fields['peer']).toBe('127.0.0.1');
    const signalling = await open(plain, '127.0.0.1', WHEP.replace('\r\n\r\n', '\r\nX-Forwarded-For: 192.0.2.8\r\n\r\noffer'));
    await signalling.until((text) => text.includes('answered'));
    expect(clients.at(-1)?.address).toBe('127.0.0.1');
  });

  test('the requested scheme is taken from X-Forwarded-Proto, over WHEP and WebSocket', async () => {
    const { plain, clients, listenSecure } = await start({ trustedProxies: ['127.0.0.1'] });
    const exchange = await open(plain, '127.0.0.1', WHEP.replace('\r\n\r\n', '\r\nX-Forwarded-Proto: https\r\n\r\noffer'));
    await exchange.until((text) => text.includes('answered'));
    // The server's port determines the services.
    expect(clients.at(-1)).toMatchObject({ port: plain, asked: { secure: true, port: 443 } });
    const headers = { 'X-Forwarded-Proto': 'http', 'X-Forwarded-Port': '8080' };
    const secure = await listenSecure();
    const socket = new WebSocket(`wss://127.0.0.1:${secure}/app/s`, { rejectUnauthorized: false, headers });
    cleanups.push(() => socket.terminate());
    await once(socket, 'open');
    expect(clients.at(-1)).toMatchObject({ port: secure, asked: { secure: false, port: 8080 } });
  });

  test('the PROXY header gives the address of a viewer, also for the share, with and without TLS', async () => {
    const { plain, logger, clients, listenSecure } = await start({ viewers: 1, trustedProxies: ['127.0.0.1'], proxyProtocol: true });
    const header = (client: string): string => `PROXY TCP4 ${client} 127.0.0.1 5000 80\r\n`;
    const viewer = await open(plain, '127.0.0.1', header('192.0.2.7') + GET.replace('hello', 'new-session'));
    await viewer.until((text) => text.includes('200 OK'));
    expect((await logger.line('viewer session opened')).fields['peer']).toBe('192.0.2.7');
    expect(await ask(await open(plain), header('192.0.2.7') + GET)).toContain('503');
    expect((await logger.line(SHARE)).fields['peer']).toBe('192.0.2.7');
    expect(await ask(await open(plain), header('192.0.2.8') + GET)).toContain('200 OK');
    await (await open(plain, '127.0.0.1', GET)).end();
    await logger.line('HTTP connections closed: no PROXY header');
    const socket = connect(await listenSecure(), '127.0.0.1');
    cleanups.push(() => socket.destroy());
    socket.write(header('192.0.2.9'));
    const path = '/app/s?direction=whip';
    const secure = httpsRequest({ createConnection: () => connectTls({ socket, rejectUnauthorized: false }), method: 'POST', path });
    secure.end('offer');
    const [response] = (await once(secure, 'response')) as [NodeJS.ReadableStream];
    response.resume();
    expect(clients.at(-1)?.address).toBe('192.0.2.9');
  });
});
