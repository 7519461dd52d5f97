import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { type AddressInfo, connect, createServer, Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { RawClient } from '../../../test/fakes/raw-client.ts';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import { systemClock } from '../../util/clock.ts';
import { proxyHeaders } from '../../util/trusted-proxies.ts';
import { Admission, OPEN_ADMISSION } from '../admission.ts';
import { scaledDeliveryLimits } from '../pool/delivery-limits.ts';
import { DeliveryPool } from '../pool/delivery-pool.ts';
import { type MainThreadHandler, MainThreadServer } from '../pool/main-thread-server.ts';
import type { RelayedPeer } from '../relayed-peer.ts';
import { MainThreadRelay } from './main-thread-relay.ts';

const sockets = new WebSocketServer({ noServer: true });
const clients: RelayedPeer[] = [];
const logger = new RecordingLogger();
let foreign: MainThreadServer;
let pool: DeliveryPool;
let plain = 0;
let secure = 0;

/** Answers with the request; echoes on WebSockets. */
beforeAll(async () => {
  const handler: MainThreadHandler = {
    request: (request, response, client) => {
      clients.push(client);
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        response.statusCode = 201;
        response.setHeader('Location', '/here');
        response.end(`${request.method} ${request.url} ${request.headers.host} ${Buffer.concat(chunks)}`);
      });
    },
    upgrade: (request, socket, head, client) => {
      clients.push(client);
      sockets.handleUpgrade(request, socket, head, (connection) => {
        connection.on('message', (data) => connection.send(`echo ${data.toString()} ${request.url}`));
      });
    },
  };
  foreign = new MainThreadServer(
    {
      request: (...given) => {
        if (given[0].url?.includes('fault')) throw new TypeError('made up');
        handler.request(...given);
      },
      upgrade: (...given) => {
        if (given[0].url?.includes('fault')) throw new TypeError('made up');
        handler.upgrade(...given);
      },
    },
    logger,
  );
  await foreign.listen();
  pool = new DeliveryPool({ threads: 0, views: {}, clock: systemClock, logger: new RecordingLogger() });
  pool.relaySignalling(foreign.path);
  await pool.start();
  pool.setCertificates([{ hostNames: ['*'], ...selfSigned('media.example') }]);
  plain = (await pool.listen({ host: '127.0.0.1', port: 0, tls: false })).port;
  secure = (await pool.listen({ host: '127.0.0.1', port: 0, tls: true })).port;
});

afterAll(async () => {
  sockets.close();
  await pool.stop();
  await foreign.close();
});

test('a WHEP request reaches the main thread with its body and client', async () => {
  const response = await fetch(`http://127.0.0.1:${plain}/app/stream?direction=whep`, { method: 'POST', body: 'an offer' });
  expect([response.status, response.headers.get('location')]).toEqual([201, '/here']);
  expect(await response.text()).toBe(`POST /app/stream?direction=whep 127.0.0.1:${plain} an offer`);
  expect(clients.at(-1)).toEqual({
    address: '127.0.0.1',
    port: plain,
    asked: { secure: false, port: plain },
    end: { address: '127.0.0.1', port: expect.any(Number) as number },
    realIp: '127.0.0.1',
  });
});

test('a fault of the handler fails only its request', async () => {
  const response = await fetch(`http://127.0.0.1:${plain}/app/fault?direction=whep&token=secret`, { method: 'OPTIONS' });
  expect([response.status, await response.text()]).toEqual([500, 'the server failed on this request\n']);
  const socket = new WebSocket(`ws://127.0.0.1:${plain}/app/fault?token=secret`);
  await expect(new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject))).rejects.toThrow('socket hang up');
  const told = { err: new TypeError('made up'), target: '/app/fault' };
  expect(logger.lines.filter(({ level }) => level === 'error').map(({ fields }) => fields)).toEqual([told, told]);
  expect((await fetch(`http://127.0.0.1:${plain}/app/stream?direction=whep`, { method: 'POST', body: 'x' })).status).toBe(201);
});

test('a socket that fails to accept is reported, and continues', async () => {
  const listening = vi.spyOn(Server.prototype, 'listen');
  onTestFinished(() => listening.mockRestore());
  const told = new RecordingLogger();
  const server = new MainThreadServer({ request: () => undefined, upgrade: () => undefined }, told);
  onTestFinished(() => server.close());
  await server.listen();
  const fault = new Error('EMFILE');
  // The first bytes as well as those after them.
  for (let n = 0; n < 2; n += 1) (listening.mock.contexts[0] as Server | undefined)?.emit('error', fault);
  expect(told.lines.map(({ fields }) => fields['err'])).toEqual([fault, fault]);
  const client = connect(server.path);
  onTestFinished(() => {
    client.destroy();
  });
  await once(client, 'connect');
});

test('the connection closes after a relayed request', async () => {
  const socket = connect(plain, '127.0.0.1');
  socket.write('DELETE /app/stream/key?direction=whep HTTP/1.1\r\nHost: a\r\n\r\n');
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  expect(text).toContain('Connection: close');
});

test.each(['ws', 'wss'])('WebSockets work over %s', async (scheme) => {
  const port = scheme === 'ws' ? plain : secure;
  const socket = new WebSocket(`${scheme}://127.0.0.1:${port}/app/stream?x=1`, { rejectUnauthorized: false });
  const answer = await new Promise<string>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('open', () => socket.send('hello'));
    socket.on('message', (data) => resolve(data.toString()));
  });
  expect(answer).toBe('echo hello /app/stream?x=1');
  expect(clients.at(-1)).toMatchObject({
    address: '127.0.0.1',
    port,
    asked: { secure: scheme === 'wss', port },
    end: { port: expect.any(Number) as number },
    realIp: '127.0.0.1',
  });
  const closed = new Promise<number>((resolve) => socket.on('close', (code) => resolve(code)));
  socket.close(4000);
  expect(await closed).toBe(4000);
});

test('requests over HTTPS are repeated to the main thread', async () => {
  const text = await new Promise<string>((resolve, reject) => {
    const request = httpsRequest(
      { port: secure, host: '127.0.0.1', path: '/a/b?direction=whip', method: 'PATCH', rejectUnauthorized: false },
      (response) => {
        let body = `${response.statusCode} ${response.headers.location} `;
        response.on('data', (chunk) => {
          body += String(chunk);
        });
        response.on('end', () => resolve(body));
      },
    );
    request.on('error', reject);
    request.end('a fragment');
  });
  expect(text).toBe(`201 /here PATCH /a/b?direction=whip 127.0.0.1:${secure} a fragment`);
});

test('requests over HTTP/2 too', async () => {
  const session = connectHttp2(`https://127.0.0.1:${secure}`, { rejectUnauthorized: false });
  const stream = session.request({ ':method': 'POST', ':path': '/a/b?direction=whep' });
  stream.end('an offer');
  let status = 0;
  stream.on('response', (headers) => {
    status = headers[':status'] ?? 0;
  });
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  session.close();
  expect([status, text]).toEqual([201, `POST /a/b?direction=whep 127.0.0.1:${secure} an offer`]);
});

/** The two ends of a connection. */
async function socketPair(): Promise<[Socket, Socket]> {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const client = connect((listener.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined);
  const [server] = (await once(listener, 'connection')) as [Socket];
  listener.close();
  return [client, server];
}

/** Ports whose requests are relayed to `path`, without much patience. */
async function hastyPorts(path: string, timeoutScale = 0.01): Promise<{ readonly plain: number; readonly secure: number }> {
  const delivery = new DeliveryPool({
    ...{ threads: 0, views: {}, clock: systemClock, logger: new RecordingLogger() },
    limits: scaledDeliveryLimits(timeoutScale),
  });
  delivery.relaySignalling(path);
  await delivery.start();
  delivery.setCertificates([{ hostNames: ['*'], ...selfSigned('media.example') }]);
  onTestFinished(() => delivery.stop());
  return {
    plain: (await delivery.listen({ host: '127.0.0.1', port: 0, tls: false })).port,
    secure: (await delivery.listen({ host: '127.0.0.1', port: 0, tls: true })).port,
  };
}

/** Those of a server with little patience; it answers a complete request, and refuses upgrades. */
async function hastyServer(timeoutScale = 0.005): Promise<{ readonly plain: number; readonly secure: number }> {
  const hasty = new MainThreadServer(
    {
      request: (request, response) => void request.on('end', () => response.end('late')).resume(),
      upgrade: (_request, socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    },
    logger,
    timeoutScale,
  );
  await hasty.listen();
  onTestFinished(() => hasty.close());
  return hastyPorts(hasty.path, 2 * timeoutScale);
}

test.each(['silent', 'talkative'])('a request with an endless body of a %s client is answered in time', async (manner) => {
  const ports = await hastyServer();
  const client = await RawClient.open(ports.plain, { allowHalfOpen: true });
  client.send('POST /app/stream?direction=whip HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nv=0');
  const talk = setInterval(() => manner === 'talkative' && client.send('a'), 5);
  await client.end();
  clearInterval(talk);
  client.socket.destroy();
});

test('works over TLS, and answers 502 when the main thread is silent', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-mute-'));
  const mute = createServer().listen(join(folder, 'socket'));
  await once(mute, 'listening');
  onTestFinished(() => {
    mute.close();
    rmSync(folder, { recursive: true });
  });
  const { secure: port } = await hastyPorts(join(folder, 'socket'));
  const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
  const stream = session.request({ ':method': 'POST', ':path': '/a/b?direction=whep' });
  const talk = setInterval(() => stream.write('a'), 5);
  const [headers] = (await once(stream, 'response')) as [{ ':status': number }];
  clearInterval(talk);
  expect(headers[':status']).toBe(502);
  session.destroy();
});

test('a refused upgrade is closed', async () => {
  // Of a hastier one a busy machine does not get the answer out in time.
  const ports = await hastyServer(0.1);
  const client = await RawClient.open(ports.plain, { allowHalfOpen: true });
  client.send('GET /app/stream HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
  expect(await client.end()).toContain('400');
  client.socket.destroy();
});

test('a client that does not read is cut off', async () => {
  const admission = new Admission({ ...OPEN_ADMISSION, threads: 1, slot: 0 }, { connections: 10, relays: 10, log: logger });
  onTestFinished(() => admission.close());
  const relay = new MainThreadRelay(foreign.path, admission, 0.01);
  const [client, server] = await socketPair();
  relay.takeUpgrade(
    server,
    Buffer.from(
      'GET /app/stream HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
        'Sec-WebSocket-Key: aaaaaaaaaaaaaaaaaaaaaa==\r\n\r\n',
    ),
    { remote: { address: '127.0.0.1', port: 0 }, localPort: 0, ...proxyHeaders(() => undefined) },
  );
  client.pause();
  const long = Buffer.concat([Buffer.of(0x81, 0x80 | 126, 0xff, 0xff, 0, 0, 0, 0), Buffer.alloc(65_535, 0x61)]);
  const talk = setInterval(() => client.write(long), 1);
  onTestFinished(() => {
    clearInterval(talk);
    client.destroy();
  });
  await expect.poll(() => relay.size, { timeout: 10_000 }).toBe(0);
  expect(server.destroyed).toBe(true);
});

test('other requests are not relayed', async () => {
  expect((await fetch(`http://127.0.0.1:${plain}/app/stream`, { method: 'POST' })).status).toBe(405);
  expect((await fetch(`http://127.0.0.1:${plain}/app/stream/file.m3u8`)).status).toBe(404);
});
