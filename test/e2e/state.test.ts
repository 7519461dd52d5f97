/** Objects of the API survive `kill -9`, and a damaged file costs only itself. */
import { once } from 'node:events';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { apiPath } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { probe } from '../harness/probe.ts';
import { publish } from '../harness/publisher.ts';
import { media, record, startRecorder, task, tasks, unfinished } from '../harness/recordings.ts';
import { ROOT, startServer, type TestServer } from '../harness/server.ts';

const BYPASS = { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'audio', bypass: true }] };
/** The macro for the name of the inbound stream. */
const ORIGIN_NAME = `\${OriginStreamName}`;
/** Short segments, so that the first playlist appears soon. */
const PUBLISHERS = { llhls: { chunkDuration: 0.5, segmentDuration: 1, segmentCount: 5 } };

async function start(): Promise<TestServer> {
  const server = await startServer({ hostNames: ['127.0.0.1'] });
  onTestFinished(async () => {
    await server.close();
  });
  return server;
}

async function createVirtualHost(server: TestServer, name: string, hostName: string): Promise<void> {
  await server.api.create('/v1/vhosts', [{ name, host: { names: [hostName] } }]);
  const profile = { name: 'bypass', outputStreamName: ORIGIN_NAME, encodes: BYPASS };
  const application = { name: 'made', type: 'live', providers: { rtmp: {} }, publishers: PUBLISHERS };
  await server.api.create(`${apiPath.vhost(name)}/apps`, [{ ...application, outputProfiles: { outputProfile: [profile] } }]);
}

function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
}

test('virtual host, application and profile survive kill -9, and the application accepts streams', async () => {
  const server = await start();
  await createVirtualHost(server, 'second', 'localhost');
  const copy = { name: 'copy', outputStreamName: `${ORIGIN_NAME}_copy`, encodes: BYPASS };
  await server.api.create(`${apiPath.app('second', 'made')}/outputProfiles`, [copy]);
  const paths = [apiPath.vhost('second'), apiPath.app('second', 'made'), `${apiPath.app('second', 'made')}/outputProfiles/copy`];
  const before = await Promise.all(paths.map((one) => server.api.get(one)));

  await server.kill();
  await server.restart();

  expect(await Promise.all(paths.map((one) => server.api.get(one)))).toEqual(before);
  const encoder = publish({ url: server.rtmp('live', 'made', 'localhost'), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.stop();
  });
  await encoder.sent(90);
  for (const name of ['live', 'live_copy']) {
    const { video } = await probe(server.http(name, 'llhls.m3u8', 'made', 'localhost'));
    expect(video, name).toMatchObject({ codec_name: 'h264', width: 320 });
  }
});

test('relative certificate paths given through the API start at the folder of the configuration, also after kill -9', async () => {
  const server = await startServer({ hostNames: ['127.0.0.1'], cwd: tmpdir() });
  onTestFinished(async () => {
    await server.close();
  });
  cpSync(path.join(ROOT, 'test/fixtures/tls'), path.join(server.folder, 'tls'), { recursive: true });
  const host = { names: ['localhost'], tls: { certPath: 'tls/cert.pem', keyPath: 'tls/key.pem' } };
  await server.api.create('/v1/vhosts', [{ name: 'secure', host }]);
  const reload = async (): Promise<number> => (await server.api.call('POST', `${apiPath.vhost('secure')}:reloadCertificate`)).status;
  expect(await reload()).toBe(200);

  await server.kill();
  await server.restart();

  expect(await reload()).toBe(200);
  expect(server.log).not.toContain('cannot be used');
  expect(await server.api.get(apiPath.vhost('secure'))).toMatchObject({ host });
});

test('deleted objects stay deleted after kill -9', async () => {
  const server = await start();
  await createVirtualHost(server, 'brief', 'brief.test');
  await createVirtualHost(server, 'lasting', 'lasting.test');
  expect((await server.api.call('DELETE', apiPath.vhost('brief'))).status).toBe(200);
  await server.kill();
  await server.restart();
  expect([...(await server.api.get<string[]>('/v1/vhosts'))].sort()).toEqual(['default', 'lasting']);
});

test('a start that discards objects made through the API logs it, finishes the recordings and keeps them', async () => {
  const [ovtPort = 0] = await freePorts(1);
  const { server, root } = await startRecorder({ push: '', ovtPort });
  await createVirtualHost(server, 'second', 'localhost');
  await record(server, 'tape', '/done.mp4');
  const push = { id: 'on', stream: { name: 'later' }, protocol: 'rtmp', url: 'rtmp://127.0.0.1:1/live', streamKey: 'k' };
  await server.api.create(`${apiPath.app('default', 'app')}:startPush`, push);
  const encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.stop();
  });
  await until('two seconds of the recording', async () => ((await task(server, 'tape'))?.recordTime ?? 0) > 2000);
  const pull = { name: 'copy', urls: [`ovt://127.0.0.1:${ovtPort}/app/live`], properties: { persistent: true } };
  await server.api.create(`${apiPath.app('default', 'app')}/streams`, pull);
  await server.kill();
  await encoder.stop();
  expect(unfinished(root)).toHaveLength(1);

  await server.restart('--forget-api-state');
  expect(await server.api.get('/v1/vhosts')).toEqual(['default']);
  expect(await tasks(server)).toEqual([]);
  expect(await server.api.get(`${apiPath.app('default', 'app')}/streams`)).toEqual([]);
  expect(await server.api.get(`${apiPath.app('default', 'app')}:pushes`)).toEqual([]);
  for (const [noun, name] of [
    ['virtual hosts', 'second'],
    ['persistent pulls', 'default/app/copy'],
    ['recording tasks', 'default/app/tape'],
    ['push tasks', 'default/app/on'],
  ]) {
    expect(server.log).toMatch(
      new RegExp(`forgot ${noun} made through the API: 1.*${name}|${name}.*forgot ${noun} made through the API: 1`),
    );
  }
  await until('the recording is finished', () => unfinished(root).length === 0);
  expect(media(root)).toEqual(['done.mp4']);

  // Objects made now survive a restart without `--forget-api-state`.
  await createVirtualHost(server, 'third', 'localhost');
  await server.restart();
  expect(await server.api.get('/v1/vhosts')).toEqual(['default', 'third']);
});

test('a start with an occupied port that should discard objects fails without discarding any', async () => {
  const server = await start();
  await createVirtualHost(server, 'second', 'localhost');
  await server.stop();
  const before = filesBelow(server.state).filter((file) => file.includes('vhosts'));
  const taken = createServer().listen(server.ports.rtmp, '0.0.0.0');
  onTestFinished(async () => {
    taken.close();
  });
  await once(taken, 'listening');
  await server.respawn('--forget-api-state');
  expect((await server.child.ended(20_000)).code).not.toBe(0);
  expect(server.log).toContain(`${server.ports.rtmp}`);
  expect(server.log).not.toContain('forgot virtual hosts');
  expect(filesBelow(server.state).filter((file) => file.includes('vhosts'))).toEqual(before);
  taken.close();
  await once(taken, 'close');
  await server.restart();
  expect(await server.api.get('/v1/vhosts')).toEqual(['default', 'second']);
  await server.restart('--forget-api-state');
  expect([await server.api.get('/v1/vhosts'), server.log.includes('forgot virtual hosts')]).toEqual([['default'], true]);
});

test('a stored object that this version cannot use is left out with a log line, and the server starts', async () => {
  const server = await start();
  await createVirtualHost(server, 'kept', 'kept.test');
  await server.kill();
  const [file = ''] = filesBelow(server.state).filter((each) => readFileSync(each, 'utf8').includes('kept.test'));
  const document = JSON.parse(readFileSync(file, 'utf8'));
  const crossDomains = { urls: ['*'], headers: [{ key: 'Bad Name', value: 'x' }] };
  document.applications.push({ name: 'bad', type: 'live', publishers: { llhls: {}, webrtc: {} }, providers: { webrtc: { crossDomains } } });
  writeFileSync(file, JSON.stringify(document));

  await server.restart();
  expect(await server.api.get('/v1/vhosts/kept/apps')).toEqual(['made']);
  expect(server.log).toContain("application 'bad' is left out: application.providers.webrtc.crossDomains.headers[0].key must be the name");
  expect(filesBelow(server.state).filter((each) => each.startsWith(`${file}.broken-`))).toHaveLength(1);
});

test('a torn state file is set aside with a log line and everything else loads', async () => {
  const server = await start();
  await createVirtualHost(server, 'kept', 'kept.test');
  await createVirtualHost(server, 'torn', 'torn.test');
  await server.kill();

  const victims = filesBelow(server.state).filter((file) => readFileSync(file, 'utf8').includes('torn.test'));
  expect(victims).toHaveLength(1);
  const [victim = ''] = victims;
  expect(readFileSync(victim, 'utf8')).not.toContain('kept.test');
  const whole = readFileSync(victim);
  const half = whole.subarray(0, Math.floor(whole.length / 2));
  writeFileSync(victim, half);

  await server.restart();
  expect([...(await server.api.get<string[]>('/v1/vhosts'))].sort()).toEqual(['default', 'kept']);
  expect(await server.api.get(apiPath.app('kept', 'made'))).toMatchObject({ name: 'made' });
  expect(server.log).toContain(path.basename(victim));
  expect(existsSync(victim)).toBe(false);
  expect(filesBelow(server.state).some((file) => readFileSync(file).equals(half))).toBe(true);
});
