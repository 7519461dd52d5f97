/** Followers of events at the real server, over HTTP/1.1 and HTTP/2, while real encoders and viewers come and go. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { selfSigned } from '../fakes/self-signed.ts';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { fetchText, openSession } from '../harness/viewer.ts';
import { EventReader } from '../support/event-reader.ts';

async function follow(server: TestServer, query = ''): Promise<EventReader> {
  const reader = await EventReader.open(`${server.api.base}/v1/events${query}`, { authorization: server.api.authorization });
  onTestFinished(() => reader.close());
  await reader.of('hello');
  return reader;
}

/** A connection that never reads. */
async function deaf(server: TestServer): Promise<ReturnType<typeof connect>> {
  const socket = connect({ port: server.ports.api, host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.pause();
  socket.write(`GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: ${server.api.authorization}\r\n\r\n`);
  return socket;
}

const followers = async (server: TestServer): Promise<number> => {
  const answer = await fetch(`${server.api.base}/metrics`, { headers: { authorization: server.api.authorization } });
  return Number(/^millrace_event_followers (\d+)$/m.exec(await answer.text())?.[1]);
};

test('report an encoder, a viewer, a recording, a refused client, and the end of the server', async () => {
  const recordRoot = mkdtempSync(path.join(tmpdir(), 'millrace-live-'));
  onTestFinished(() => rmSync(recordRoot, { recursive: true, force: true }));
  const server = await startServer({ segmentDuration: 1, recordRoot, head: '<EventLog/>' });
  onTestFinished(() => server.close());
  const reader = await follow(server);
  await deaf(server);
  await until('two followers', async () => (await followers(server)) === 2);
  const encoder = publish({ url: server.rtmp('live') });
  onTestFinished(async () => void (await encoder.stop()));
  await reader.of('stream.ready', ({ stream }) => stream === 'live');

  await server.api.create(`${apiPath.app('default', 'app')}:startRecord`, { id: 'r', stream: { name: 'live' } });
  await reader.of('task.changed', ({ task, state }) => task === 'recording' && state === 'recording');

  const { video } = await until('a playlist', () => openSession(server.http('live', 'llhls.m3u8')).catch(() => null));
  await fetchText(video);
  const { data: viewer } = await reader.of('session.started');
  expect(viewer).toMatchObject({ vhost: 'default', app: 'app', stream: 'live', publisher: 'llhls' });
  const kicked = await server.api.call('DELETE', `${apiPath.stream('live')}/sessions/${viewer.session}?protocol=all`);
  expect(kicked.status).toBe(200);
  const { data: left } = await reader.of('session.ended', ({ session }) => session === viewer.session);
  expect(left.reason).toBe('terminated through the API');

  const second = publish({ url: server.rtmp('live') });
  onTestFinished(async () => void (await second.stop()));
  const { data: refused } = await reader.of('refusal.counted');
  expect(refused).toMatchObject({
    vhost: 'default',
    app: 'app',
    stream: 'live',
    direction: 'incoming',
    protocol: 'rtmp',
    reason: 'duplicate-name',
  });

  await fetchText((await openSession(server.http('live', 'llhls.m3u8'))).video);
  const { data: last } = await reader.of('session.started', ({ session }) => session !== viewer.session);
  await encoder.stop();
  const { data: over } = await reader.of('session.ended', ({ session }) => session === last.session);
  expect(over.reason).toBe('the stream ended');
  const { data: ended } = await reader.of('stream.ended');
  expect(ended).toMatchObject({ stream: 'live', reason: 'peer-left' });
  const { data: recorded } = await reader.of('task.changed', ({ task, state }) => task === 'recording' && state === 'ready');
  expect(recorded).toMatchObject({ id: 'r', stream: 'live' });

  const stopping = performance.now();
  const stopped = server.stop();
  expect(await reader.ended()).toBe('end');
  expect(reader.types.at(-1)).toBe('end');
  const { code } = await stopped;
  expect(code).toBe(0);
  // The stop may take 3.5 s, but followers must not delay it.
  expect(performance.now() - stopping).toBeLessThan(3400);

  // The event log contains all events of the response, and the events after its end.
  const kept = readFileSync(path.join(server.state, 'logs/events.log'), 'utf8').trimEnd().split('\n');
  const lines = kept.map((line) => JSON.parse(line));
  const told = reader.events.filter(({ event }) => event !== 'hello' && event !== 'end').map(({ data }) => data);
  expect(told.length).toBeGreaterThan(7);
  expect(lines.slice(0, told.length)).toEqual(told);
});

test('are sent over HTTP/2 along with other requests of the connection', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-live-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { cert, key } = selfSigned('localhost');
  const files = { cert: path.join(folder, 'cert.pem'), key: path.join(folder, 'key.pem') };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);
  const [rtmp = 0, http = 0, api = 0] = await freePorts(3);
  const element = `<TLS><CertPath>${files.cert}</CertPath><KeyPath>${files.key}</KeyPath></TLS>`;
  const server = await startServer({ tls: { rtmp, http, api, host: element, apiHost: element } });
  onTestFinished(() => server.close());
  const session: ClientHttp2Session = connectHttp2(`https://localhost:${api}`, { ca: cert });
  onTestFinished(() => session.destroy());
  const { authorization } = server.api;
  const events = session.request({ ':path': '/v1/events?types=config', authorization });
  let text = '';
  let isOver = false;
  events.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  events.on('end', () => {
    isOver = true;
  });
  await until('the first event', () => text.includes('event: hello'));
  const post = session.request({ ':method': 'POST', ':path': '/v1/vhosts', authorization, 'content-type': 'application/json' });
  post.end(JSON.stringify([{ name: 'made', host: { names: ['made'] } }]));
  post.resume();
  await until('the event', () => /event: vhost\.created\ndata: \{.*"vhost":"made"/.test(text));
  const over = server.stop();
  await until('the end of the events', () => isOver);
  expect(text).toContain('event: end\n');
  expect((await over).code).toBe(0);
});
