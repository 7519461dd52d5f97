import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { RecordingLogger } from '../test/fakes/recording-logger.ts';
import { freePorts } from '../test/harness/ports.ts';
import { ACCESS_TOKEN, serverXml } from '../test/harness/server-xml.ts';
import { MillraceServer } from './server.ts';

const AUTHORIZATION = `Basic ${Buffer.from(ACCESS_TOKEN).toString('base64')}`;

/** Starts a server in this process; the promise is of the whole start. */
async function begin(features: Parameters<typeof serverXml>[1], logger = new RecordingLogger()) {
  const [rtmp = 0, http = 0, api = 0, ice = 0, relay = 0, ovtPort = 0] = await freePorts(6);
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-health-'));
  const configFile = path.join(folder, 'Server.xml');
  writeFileSync(configFile, serverXml({ rtmp, http, api, ice, relay }, { ovtPort, ...features }));
  const started = MillraceServer.start({ configFile, stateFolder: path.join(folder, 'state'), logger });
  onTestFinished(async () => {
    await (await started).stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return { started, api, ports: [rtmp, http, api, ovtPort] };
}

async function opens(port: number): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' });
  const opened = Promise.withResolvers<boolean>();
  socket.once('connect', () => opened.resolve(true)).once('error', () => opened.resolve(false));
  const isOpen = await opened.promise;
  socket.destroy();
  return isOpen;
}

async function connected(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return socket;
}

test('a drained server reports it, ends sessions, and accepts them again after the drain', { timeout: 30_000 }, async () => {
  const { started, api, ports } = await begin({});
  const server = await started;
  const base = `http://127.0.0.1:${api}`;
  const drain = async (action: string): Promise<unknown> => {
    const answer = await fetch(`${base}/v1/server:${action}`, { method: 'POST', headers: { Authorization: AUTHORIZATION } });
    return ((await answer.json()) as { response: unknown }).response;
  };
  expect(await drain('drain')).toEqual({ draining: true, publishers: 0, sessions: 0 });
  const health = await fetch(`${base}/health`);
  const reasons = ['the server is draining: it refuses new viewers and publishers'];
  expect([health.status, await health.json()]).toEqual([503, { status: 'draining', reasons }]);
  const viewer = async (): Promise<number> => (await fetch(`http://127.0.0.1:${ports[1]}/app/stream/llhls.m3u8`)).status;
  // Delivery threads are told by a message.
  await expect.poll(viewer).toBe(503);
  expect(await drain('resume')).toMatchObject({ draining: false });
  expect((await fetch(`${base}/health`)).status).toBe(200);
  await expect.poll(viewer).toBe(404);
  // Nobody is there who would have to leave.
  await server.empty(new Promise(() => undefined));
  expect((await fetch(`${base}/health`)).status).toBe(503);
});

test('the server is "starting" until every port listens, and "stopping" until no port does', { timeout: 30_000 }, async () => {
  const { started, api, ports } = await begin({});
  const told: string[] = [];
  while (told.at(-1) !== '200 {"status":"ok"}') {
    const answer = await fetch(`http://127.0.0.1:${api}/health`).catch(() => null);
    if (answer !== null) told.push(`${answer.status} ${await answer.text()}`);
  }
  expect(await Promise.all(ports.map(opens))).toEqual([true, true, true, true]);
  expect([...new Set(told)]).toEqual(['503 {"status":"starting"}', '200 {"status":"ok"}']);

  const server = await started;
  const socket = await connected(api);
  // What has not been accepted when a port closes is reset: the server is to have the connection, and not yet its request.
  for (let turn = 0; turn < 3; turn += 1) await nextTurn();
  const answer = text(socket);
  socket.write('GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  await server.stop();
  expect(await answer).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n.*\r\n\r\n\{"status":"stopping"\}$/s);
  expect(await opens(api)).toBe(false);
});

test('a TLS port without a certificate degrades the server with a reason', { timeout: 30_000 }, async () => {
  const [rtmp = 0, http = 0] = await freePorts(2);
  const { started, api } = await begin({ tls: { rtmp, http } });
  await started;
  const answer = await fetch(`http://127.0.0.1:${api}/health`);
  const reasons = [
    `TLS port ${http} stays closed until a virtual host has a certificate (Host/TLS)`,
    `RTMPS port ${rtmp} stays closed until a virtual host has a certificate (Host/TLS)`,
  ];
  expect([answer.status, await answer.json()]).toEqual([200, { status: 'degraded', reasons }]);
});

test('a log that cannot be written degrades the server until its lost lines are reported', { timeout: 30_000 }, async () => {
  const logger = Object.assign(new RecordingLogger(), { dropped: 0 });
  const { started, api } = await begin({}, logger);
  await started;
  const health = async (): Promise<unknown> => (await fetch(`http://127.0.0.1:${api}/health`)).json();
  expect(await health()).toEqual({ status: 'ok' });
  logger.dropped = 3;
  expect(await health()).toEqual({ status: 'degraded', reasons: ['lines of the log are dropped: it cannot be written'] });
  logger.dropped = 0;
  expect(await health()).toEqual({ status: 'ok' });
});
