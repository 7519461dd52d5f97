/** `SIGHUP`: unchanged parts of the configuration keep their streams and viewers, changes take effect, and a bad file changes nothing. */
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { ApiClient, apiPath } from '../harness/api-client.ts';
import { until, within } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { probe } from '../harness/probe.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { runCommand, type StartOptions, spawnServer, startServer, type TestServer } from '../harness/server.ts';
import { fetchText, openSession, readMediaPlaylist } from '../harness/viewer.ts';

const APPS = /<Application>[\s\S]*<\/Application>/;
const ONE = /<Application>[\s\S]*?<\/Application>/;
/** The last log line of each reload, whatever its result. */
const OVER = /read again: |nothing was changed/g;

async function start(options: StartOptions = {}): Promise<TestServer> {
  const server = await startServer({ segmentDuration: 1, ...options });
  onTestFinished(async () => {
    await server.close();
  });
  return server;
}

function encoder(server: TestServer, app: string, stream = 'live'): FfmpegPublisher {
  const started = publish({ url: server.rtmp(stream, app), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await started.stop();
  });
  return started;
}

/** Replaces the file as an editor does. */
function edit(server: TestServer, change: (xml: string) => string): void {
  const before = readFileSync(server.config, 'utf8');
  const after = change(before);
  expect(after).not.toBe(before);
  writeFileSync(`${server.config}.new`, after);
  renameSync(`${server.config}.new`, server.config);
}

/** Sends SIGHUP and waits for the end of the reload; returns the log lines meanwhile. */
async function hangUp(server: TestServer): Promise<string> {
  const count = (): number => server.log.match(OVER)?.length ?? 0;
  const [before, from] = [count(), server.log.length];
  server.child.signal('SIGHUP');
  await until('the reload is over', () => count() > before);
  return server.log.slice(from);
}

/** The first application of the file, `app`, under other names, in this order. */
function applications(xml: string, ...names: readonly string[]): string {
  const one = ONE.exec(xml)?.[0] ?? '';
  return xml.replace(APPS, names.map((name) => one.replace('<Name>app</Name>', `<Name>${name}</Name>`)).join('\n'));
}

/** Requests each segment of a media playlist before it exists, as players do. */
class Follower {
  sequence = 0;
  readonly faults: string[] = [];
  #stopped = false;
  readonly #done: Promise<void>;

  constructor(url: string) {
    this.#done = this.#follow(url);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }

  async #follow(url: string): Promise<void> {
    try {
      let next = '';
      while (!this.#stopped) {
        this.sequence = readMediaPlaylist(await fetchText(`${url}${next}`), url).lastSequence;
        next = `&_HLS_msn=${this.sequence + 1}&_HLS_part=0`;
      }
    } catch (error) {
      if (!this.#stopped) this.faults.push(String(error));
    }
  }
}

async function check(server: TestServer): Promise<{ code: number | null; stdout: string }> {
  return runCommand(['check', '--config', server.config, '--state', server.state, '--against', 'running']);
}

test('a publisher and a viewer stay while one application is added and another is removed', async () => {
  const server = await start();
  edit(server, (xml) => applications(xml, 'app', 'doomed'));
  await hangUp(server);
  const [staying, leaving] = [encoder(server, 'app'), encoder(server, 'doomed')];
  await Promise.all([staying.sent(60), leaving.sent(60)]);
  const { video } = await openSession(server.http('live', 'llhls.m3u8'));
  await openSession(server.http('live', 'llhls.m3u8', 'doomed'));
  const viewer = new Follower(video);
  onTestFinished(() => viewer.stop());
  await until('the viewer follows', () => viewer.sequence > 1);

  edit(server, (xml) => applications(xml, 'app', 'news'));
  const { code, stdout } = await check(server);
  expect(code).toBe(0);
  expect(stdout).toContain('Applications/Application[doomed] removed');
  expect(stdout).toContain('Applications/Application[news] added');
  expect(stdout).toContain(`2 changes against process ${server.pid}, 0 applications to restart, 0 only with a restart of the server`);
  expect((await server.api.call('GET', apiPath.stream('live', 'doomed'))).status).toBe(200);

  const told = await hangUp(server);

  expect(told).toContain('Applications/Application[doomed] removed');
  expect(told).toContain('Applications/Application[news] added');
  await within('the encoder of the removed application loses its connection', 15_000, leaving.child.exited);
  await until('the removed stream is 404', async () => (await fetch(server.http('live', 'llhls.m3u8', 'doomed'))).status === 404);
  expect(await server.api.get<string[]>(`${apiPath.vhost('default')}/apps`)).toEqual(['app', 'news']);
  const reached = viewer.sequence;
  await until('the viewer goes on, in the same session', () => viewer.sequence > reached + 2);
  expect(viewer.faults).toEqual([]);
  await staying.sent(60);
  expect(staying.child.exit).toBeNull();
  const news = encoder(server, 'news');
  await news.sent(60);
  expect((await probe(server.http('live', 'llhls.m3u8', 'news'))).video).toMatchObject({ codec_name: 'h264' });
  expect((await check(server)).stdout).toContain('no changes against');
});

test('only a changed application restarts, and its next stream uses the new settings', async () => {
  const server = await start();
  edit(server, (xml) => applications(xml, 'app', 'other'));
  await hangUp(server);
  const [changed, other] = [encoder(server, 'app'), encoder(server, 'other')];
  await Promise.all([changed.sent(60), other.sent(60)]);
  edit(server, (xml) => xml.replace('<OutputStreamName>${OriginStreamName}<', '<OutputStreamName>${OriginStreamName}_copy<'));
  const told = await hangUp(server);
  expect(told).toContain("(application 'default/app' starts anew, its streams end)");
  expect(told).not.toContain("'default/other'");
  await within('the encoder loses its connection', 15_000, changed.child.exited);
  await other.sent(60);
  await encoder(server, 'app').sent(60);
  expect((await probe(server.http('live_copy', 'llhls.m3u8'))).video).toMatchObject({ codec_name: 'h264' });
});

test('an invalid file changes nothing, and the log gives the reason with the line', async () => {
  const server = await start();
  const live = encoder(server, 'app');
  await live.sent(60);
  const good = readFileSync(server.config, 'utf8');
  const bad = applications(good, 'app', 'news').replace('<Type>origin</Type>', '<Type>orign</Type>');
  writeFileSync(server.config, bad);
  const line = bad.slice(0, bad.indexOf('orign')).split('\n').length;
  const told = await hangUp(server);
  expect(told).toContain(`${server.config}:${line}: `);
  expect(told).toContain('Unknown type: orign');
  writeFileSync(server.config, good.replace('</Server>', ''));
  expect(await hangUp(server)).toContain(`${server.config}:`);
  expect(await server.api.get<string[]>(`${apiPath.vhost('default')}/apps`)).toEqual(['app']);
  await live.sent(60);
  expect((await check(server)).code).toBe(2);
  writeFileSync(server.config, good);
  expect(await hangUp(server)).toContain('nothing has changed');
});

test('a changed port, like other settings that need a restart, is named and not applied', async () => {
  const server = await start();
  const [port = 0] = await freePorts(1);
  edit(server, (xml) => xml.replace(`<RTMP><Port>${server.ports.rtmp}<`, `<RTMP><Port>${port}<`));
  const sentence = `Server/Bind/Providers/RTMP/Port changed: ${server.ports.rtmp} → ${port} (needs a restart, the setting before holds until then)`;
  expect((await check(server)).stdout).toContain(sentence);
  expect(await hangUp(server)).toContain(sentence);
  // A repeated reload reports it again.
  expect(await hangUp(server)).toContain(sentence);
  await encoder(server, 'app').sent(30);
  const moved = publish({ url: `rtmp://127.0.0.1:${port}/app/live` });
  onTestFinished(async () => {
    await moved.stop();
  });
  await within('nobody listens on the new port', 15_000, moved.child.exited);
});

test('tokens, allowed origins, limits, host names and the log level change at once; objects made through the API stay', async () => {
  const server = await start({ accessToken: 'first-token', apiOrigins: ['https://one.example'], hostNames: ['127.0.0.1', 'localhost'] });
  await server.api.create('/v1/vhosts', [{ name: 'made', host: { names: ['made.example'] } }]);
  await server.api.create(`${apiPath.vhost('made')}/apps`, [{ name: 'kept', type: 'live' }]);
  const live = encoder(server, 'app');
  await live.sent(60);
  const byName = (): string => server.http('live', 'llhls.m3u8', 'app', 'localhost');
  await fetchText(byName());
  edit(server, (xml) =>
    xml
      .replace('first-token', 'second-token')
      .replace('https://one.example', 'https://two.example')
      .replace('<Bind>', '<Log><Level>debug</Level></Log><Limits><PerApplication><Streams>1</Streams></PerApplication></Limits><Bind>')
      .replace('<Name>localhost</Name>', ''),
  );
  const told = await hangUp(server);
  expect(told).not.toMatch(/first-token|second-token/);
  expect(readFileSync(path.join(server.state, 'running-config.json'), 'utf8')).not.toMatch(/first-token|second-token/);
  expect(statSync(path.join(server.state, 'running-config.json')).mode & 0o777).toBe(0o600);
  expect((await server.api.call('GET', '/v1/version')).status).toBe(401);
  const api = new ApiClient(`http://127.0.0.1:${server.ports.api}`, 'second-token');
  expect(await api.get<string[]>('/v1/vhosts')).toEqual(['default', 'made']);
  expect(await api.get<string[]>(`${apiPath.vhost('made')}/apps`)).toEqual(['kept']);
  const asked = await fetch(`http://127.0.0.1:${server.ports.api}/health`, { headers: { origin: 'https://two.example' } });
  expect(asked.headers.get('access-control-allow-origin')).toBe('https://two.example');
  expect(await api.get('/v2/internals/log')).toEqual({ level: 'debug' });
  await fetchText(server.http('live', 'llhls.m3u8'));
  await until('the old host name is 404', async () => (await fetch(byName())).status === 404);
  await server.child.printed(/HTTP connection opened/, 15_000);
  const second = encoder(server, 'app', 'second');
  await within('one stream is all that the application may have now', 15_000, second.child.exited);
  await live.sent(30);
});

test('the log level changes through the API until the next start, and needs a writing token', async () => {
  const token = '<Token><Name>panel</Name><Value>may-only-read</Value><Access>read</Access></Token>';
  const server = await start({ accessTokens: token });
  expect(await server.api.get('/v2/internals/log')).toEqual({ level: 'info' });
  const reader = new ApiClient(`http://127.0.0.1:${server.ports.api}`, 'may-only-read');
  expect((await reader.call('PATCH', '/v2/internals/log', { level: 'error' })).status).toBe(403);
  const wrong = await server.api.call('PATCH', '/v2/internals/log', { level: 'loud' });
  expect(wrong).toMatchObject({ status: 400, body: { message: expect.stringContaining('[level]') } });
  expect((await server.api.call('PATCH', '/v2/internals/log', { level: 'error' })).status).toBe(200);
  const from = server.log.length;
  await encoder(server, 'app').sent(60);
  await fetchText(server.http('live', 'llhls.m3u8'));
  expect(server.log.slice(from)).not.toContain('"level":"info"');
  await server.restart();
  expect(await server.api.get('/v2/internals/log')).toEqual({ level: 'info' });
});

test('with --watch-config the file is read again when it is written', async () => {
  const server = await start();
  await server.restart('--watch-config');
  edit(server, (xml) => applications(xml, 'app', 'half').replace('</Server>', ''));
  await server.child.printed(/cannot be used: nothing was changed/, 30_000);
  expect(await server.api.get<string[]>(`${apiPath.vhost('default')}/apps`)).toEqual(['app']);
  edit(server, (xml) => `${xml}</Server>`.replace('<Name>half</Name>', '<Name>whole</Name>'));
  await server.child.printed(/Application\[whole\] added/, 30_000);
  edit(server, (xml) => applications(xml, 'app', 'news'));
  await server.child.printed(/Application\[news\] added/, 30_000);
  await until('the application is there', async () => (await server.api.call('GET', apiPath.app('default', 'news'))).status === 200);
});

test('a hang-up while the server starts is not lost', async () => {
  const server = await spawnServer();
  onTestFinished(() => server.close());
  // The server has read the file by now.
  await server.child.printed(/API listening/, 30_000);
  edit(server, (xml) => applications(xml, 'app', 'news'));
  server.child.signal('SIGHUP');
  await server.child.printed(/Application\[news\] added/, 30_000);
});

test('check --against running fails without a running server', async () => {
  const server = await start();
  await server.stop();
  expect(await check(server)).toMatchObject({ code: 1, stdout: expect.stringContaining('no server runs with the state folder') });
});
