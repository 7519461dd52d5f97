/** Arguments, exit codes, signals, and outputs of the server. */
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Child } from '../harness/child.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { MAIN, ROOT, runCommand, spawnServer, startServer, type TestServer } from '../harness/server.ts';
import { serverXml } from '../harness/server-xml.ts';

const GOOD = serverXml({ rtmp: 1935, http: 3333, api: 8081, ice: 10000, relay: 3478 });
const STOP_DEADLINE_MS = 5000;
/** Compiled code of the main thread is larger than this, that of all other threads smaller. */
const MAIN_THREAD_BYTES = 1_000_000;

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-cli-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function configFile(text: string): string {
  const file = path.join(mkdtempSync(path.join(folder, 'config-')), 'Server.xml');
  writeFileSync(file, text);
  return file;
}

async function start(options?: Parameters<typeof startServer>[0]): Promise<TestServer> {
  const server = await startServer(options);
  onTestFinished(async () => {
    await server.close();
  });
  return server;
}

/** Sizes of the server's files of compiled code, bytes. */
function compiledSizes({ state }: TestServer): number[] {
  const folder = path.join(state, 'code-cache');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /^v.*\//.test(file));
  return files.map((file) => statSync(path.join(folder, file)).size);
}

test('check accepts a good configuration with exit code 0', async () => {
  const { code, stderr } = await runCommand(['check', '--config', configFile(GOOD)]);
  expect(stderr).toBe('');
  expect(code).toBe(0);
});

test('check accepts the shipped configuration', async () => {
  expect((await runCommand(['check', '--config', path.join(ROOT, 'conf/Server.xml')])).code).toBe(0);
});

test('check and start refuse DRM, which is not built yet', async () => {
  const drm = '<Publishers><LLHLS><DRM><Enable>true</Enable><InfoFile>drm.xml</InfoFile></DRM></LLHLS></Publishers>';
  const file = configFile(GOOD.replace('<Type>live</Type>', `<Type>live</Type>${drm}`));
  const sentence = "application 'default/app': Publishers/LLHLS/DRM is not built yet, and nothing is served without it";
  expect(await runCommand(['check', '--config', file])).toMatchObject({ code: 2, stdout: expect.stringContaining(`error: ${sentence}`) });
  expect(await runCommand(['serve', '--config', file])).toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) });
});

test('check and the log name settings without effect, even of an application made through the API', async () => {
  const persistent = '<PersistentStreams><Stream><Name>a</Name></Stream></PersistentStreams>';
  const file = configFile(GOOD.replace('<Type>live</Type>', `<Type>live</Type>${persistent}`));
  const { code, stdout } = await runCommand(['check', '--config', file]);
  expect(stdout).toContain("application 'default/app': PersistentStreams is not built yet");
  expect(code).toBe(0);
  const server = await start();
  await server.api.create('/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
  await server.api.create('/v1/vhosts/made/apps', [{ name: 'app', type: 'live', providers: { rtsp: {} } }]);
  await server.child.printed(/application 'made\/app': Providers\/RTSP is not built yet: nobody can publish over RTSP/, 5000);
});

test('check and the log warn of secrets too short to be removed from texts', async () => {
  const webhooks = '<AdmissionWebhooks><ControlServerUrl>http://c.test/</ControlServerUrl><SecretKey>12345</SecretKey></AdmissionWebhooks>';
  const file = configFile(GOOD.replace('<Name>default</Name>', `<Name>default</Name>${webhooks}`));
  const { code, stdout } = await runCommand(['check', '--config', file]);
  expect(stdout).toMatch(/^warning: virtual host 'default': AdmissionWebhooks\/SecretKey is shorter than 6 characters: /m);
  expect(code).toBe(0);
  const server = await start({ accessToken: 'short' });
  await server.child.printed(/Server: Managers\/API\/AccessToken is shorter than 6 characters: /, 5000);
  const signedPolicy = { policyQueryKeyName: 'p', signatureQueryKeyName: 's', secretKey: 'tiny' };
  await server.api.create('/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] }, signedPolicy }]);
  const transcodeWebhook = { enable: true, controlServerUrl: 'http://c.test/', secretKey: 'tiny', timeout: 100 };
  await server.api.create('/v1/vhosts/made/apps', [{ name: 'app', type: 'live', transcodeWebhook }]);
  await server.child.printed(/virtual host 'made': SignedPolicy\/SecretKey is shorter/, 5000);
  await server.child.printed(/application 'made\/app': TranscodeWebhook\/SecretKey is shorter/, 5000);
});

test('check refuses two elements with one port, with both places, and warns of missing files', async () => {
  const media = '<FILE><RootPath>/nonexistent</RootPath><StreamMap><Stream><Name>s</Name><Path>a.mp4</Path></Stream></StreamMap></FILE>';
  const file = configFile(GOOD.replace('<Port>8081<', '<Port>1935<').replace('<RTMP />', `<RTMP />${media}`));
  const { code, stdout } = await runCommand(['check', '--config', file]);
  expect(code).toBe(2);
  expect(stdout).toMatch(
    /^error: .*Server\.xml:\d+: Server\/Bind\/Providers\/RTMP\/Port: TCP port 1935 is already used by .*API\/Port \(line \d+\)/m,
  );
  expect(stdout).toMatch(/^warning: .*Server\.xml:\d+: .*StreamMap\/Stream\/Path: the file of stream 's' cannot be played: ENOENT/m);
});

test('check warns about an element it does not know, by path, and still exits with 0', async () => {
  const file = configFile(GOOD.replace('<Type>live</Type>', '<Type>live</Type><Bogus>1</Bogus>'));
  const { code, stdout, stderr } = await runCommand(['check', '--config', file]);
  expect(code).toBe(0);
  expect(stdout + stderr).toMatch(/Application.*Bogus/);
});

test.for([
  ['a port that is no number', GOOD.replace('<Port>1935</Port>', '<Port>nineteen</Port>'), /RTMP.*Port[\s\S]*nineteen/],
  ['a duration that is no number', GOOD.replace('<ChunkDuration>0.5<', '<ChunkDuration>soon<'), /ChunkDuration[\s\S]*soon/],
  ['an element without its end', GOOD.replace('</VirtualHosts>', ''), /Server\.xml/],
  ['an empty file', '', /Server\.xml/],
] as const)('check refuses %s with exit code 2 and the place', async ([, text, complaint]) => {
  const { code, stdout, stderr } = await runCommand(['check', '--config', configFile(text)]);
  expect(stdout + stderr).toMatch(complaint);
  expect(code).toBe(2);
});

test.for([
  ['an unknown command', ['conquer']],
  ['an unknown option', ['serve', '--colour', 'blue']],
  ['an option without its value', ['serve', '--config']],
  ['a configuration file that is not there', ['check', '--config', '/nonexistent/Server.xml']],
  ['serving with a configuration file that is not there', ['serve', '--config', '/nonexistent/Server.xml']],
] as const)('%s exits with 2 and a message', async ([, args]) => {
  const { code, stdout, stderr } = await runCommand(args);
  expect(code).toBe(2);
  expect(stdout + stderr).not.toBe('');
  expect(stdout + stderr, 'a message for people, not a stack trace').not.toMatch(/\n\s+at /);
});

test('--version prints the version of the package', async () => {
  const { code, stdout } = await runCommand(['--version']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/\d+\.\d+\.\d+/);
});

test('--help names the commands and options', async () => {
  const { code, stdout } = await runCommand(['--help']);
  expect(code).toBe(0);
  for (const word of ['serve', 'check', '--config', '--state', '--version']) expect(stdout).toContain(word);
});

test('a second start loads no compiler, no HTTP client and no module of an unconfigured port', async () => {
  const report = `import { _cache } from 'node:module';
    import { isMainThread } from 'node:worker_threads';
    const name = isMainThread ? 'main' : 'thread';
    process.on('exit', () => process._rawDebug(name + ' loaded ' + [...process.moduleLoadList, ...Object.keys(_cache)].join(' ')));`;
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(report)}` };
  const server = await spawnServer({ compileCache: true, env });
  onTestFinished(() => server.close());
  await server.ready();
  // Delivery threads start with the first connection.
  const visit = async (): Promise<void> => expect((await fetch(server.http('nobody', 'llhls.m3u8'))).status).toBe(404);
  await visit();
  await server.restart();
  await visit();
  await server.stop();
  const loadedBy = (name: string): string => new RegExp(`^${name} loaded (.*)$`, 'm').exec(server.log)?.[1] ?? '';
  expect(loadedBy('main')).toMatch(/node_modules\/pino\//);
  expect(loadedBy('main').match(/deps\/(amaro|undici)|node_modules\/(ajv|ioredis|ws)\//g)).toBeNull();
  // The main thread loads it for the API.
  expect(loadedBy('thread')).toMatch(/NativeModule zlib/);
  expect(loadedBy('thread').match(/deps\/(amaro|undici)|NativeModule http2|node_modules\/(?!\.cache\/millrace-program\/)/g)).toBeNull();
});

test('SIGTERM ends the server with code 0 within five seconds, also while an encoder is sending', async () => {
  const server = await start();
  const encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 });
  onTestFinished(async () => {
    await encoder.kill();
  });
  await encoder.sent(60);
  server.child.signal('SIGTERM');
  expect(await server.child.ended(STOP_DEADLINE_MS)).toEqual({ code: 0, signal: null });
});

test('a process with an open timer after the stop exits within five seconds', async () => {
  const hold = `import { isMainThread } from 'node:worker_threads'; if (isMainThread) setInterval(() => undefined, 1000);`;
  const server = await spawnServer({ env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(hold)}` } });
  onTestFinished(() => server.close());
  await server.ready();
  server.child.signal('SIGTERM');
  expect(await server.child.ended(STOP_DEADLINE_MS)).toEqual({ code: 1, signal: null });
  expect(server.log).toContain('the stop took too long: the process exits');
});

test('npm start forwards a signal and waits until the server has stopped', async () => {
  const server = await start();
  await server.stop();
  const npm = new Child('npm', ['start', '--', '--config', server.config, '--state', server.state], { cwd: ROOT });
  onTestFinished(async () => {
    await npm.kill();
  });
  await npm.printed(/is ready/, 30_000);
  npm.signal('SIGTERM');
  expect((await npm.ended(STOP_DEADLINE_MS)).signal).toBe(null);
  expect(npm.stderr).toContain('"msg":"stopped"');
});

test('a start from sources runs them as one bundle, and a refused start leaves no state folder', async () => {
  const told = 'module by module';
  const hook = `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) {
      if (url.endsWith('/src/server.ts')) console.error('${told}');
      if (url.endsWith('/serve.cjs')) console.error('runs ' + url);
      return next(url, context);
    } });`;
  const server = await startServer({
    compileCache: true,
    env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(hook)}` },
  });
  onTestFinished(() => server.close());
  expect(server.log).not.toContain(told);
  // The bundle made by the install, or by the start if a source has changed since.
  const bundle = path.dirname(fileURLToPath(/runs (file:.*)/.exec(server.log)?.[1] ?? ''));
  const cache = path.join(server.state, 'code-cache');
  const made = path.join(cache, 'program');
  expect([made, path.join(ROOT, 'node_modules/.cache/millrace-program')]).toContain(bundle);
  expect(readdirSync(bundle).sort()).toEqual(['delivery-worker.cjs', 'inputs.json', 'serve.cjs']);
  const { mtimeMs } = statSync(path.join(bundle, 'inputs.json'));
  await server.restart();
  expect(server.log).not.toContain(told);
  expect(statSync(path.join(bundle, 'inputs.json')).mtimeMs).toBe(mtimeMs);
  // Threads use the flags of the first start, so that they share its compiled code.
  const compiled = expect.stringContaining(process.version) as unknown;
  expect(readdirSync(cache).sort()).toEqual(bundle === made ? ['program', compiled] : [compiled]);
  expect(compiledSizes(server).filter((size) => size > MAIN_THREAD_BYTES)).toHaveLength(1);

  const state = path.join(folder, 'refused/state');
  const child = new Child(process.execPath, [MAIN, 'serve', '--config', configFile('<Server>'), '--state', state], {
    env: { ...process.env, NODE_COMPILE_CACHE: undefined },
  });
  expect((await child.ended(60_000)).code).toBe(2);
  expect(existsSync(path.dirname(state))).toBe(false);
});

test('a second signal ends the server at once', async () => {
  const server = await startServer({ compileCache: true });
  onTestFinished(() => server.close());
  server.child.signal('SIGINT');
  server.child.signal('SIGTERM');
  expect(await server.child.ended(1000)).toEqual({ code: null, signal: 'SIGKILL' });
  // The compiled code of the main thread takes longest to write.
  expect(compiledSizes(server).filter((size) => size > MAIN_THREAD_BYTES)).toEqual([]);
});

test.for(['rtmp', 'http', 'api'] as const)('an occupied %s port ends the server with code 1 and is named', async (kind) => {
  const [port = 0] = await freePorts(1);
  const holder = createServer().listen(port, '127.0.0.1');
  await once(holder, 'listening');
  const server = await spawnServer({ ports: { [kind]: port } });
  onTestFinished(async () => {
    holder.close();
    await server.close();
  });
  expect((await server.child.ended(15_000)).code).toBe(1);
  expect(server.log).toContain(`${port}`);
});

test.each([
  ['a terminal', (line: string) => new Child('script', ['--quiet', '--flush', '--return', '--command', line, '/dev/null'])],
  ['a pipe', (line: string) => new Child('/bin/sh', ['-c', `exec ${line}`])],
] as const)('a start in %s shows the token on a terminal only', async (place, run) => {
  const [rtmp = 0, http = 0, api = 0, ice = 0, relay = 0] = await freePorts(5);
  const state = mkdtempSync(path.join(folder, 'token-'));
  const config = configFile(serverXml({ rtmp, http, api, ice, relay }).replace(/<AccessToken>.*?<\/AccessToken>/, ''));
  const child = run([process.execPath, MAIN, 'serve', '--config', config, '--state', state].join(' '));
  // A terminal that closes sends SIGHUP.
  onTestFinished(async () => void (await child.stop()));
  const banner = await child.printed(/token: .*\r?\n/, 20_000);
  const token = readFileSync(path.join(state, 'access-token'), 'utf8').trim();
  expect(token).toMatch(/^\S{16,}$/);
  expect(String(banner).includes(token)).toBe(place === 'a terminal');
  expect(child.output).toContain(path.join(state, 'access-token'));
});

test('the log lists each open port, and with PrivacyProtection no address of a client', async () => {
  const server = await startServer({ privacyProtection: true });
  onTestFinished(() => server.close());
  for (const port of [server.ports.rtmp, server.ports.http, server.ports.api]) expect(server.log).toContain(`"port":${port}`);
  const encoders = [1, 2].map(() => publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 }));
  onTestFinished(async () => {
    for (const encoder of encoders) await encoder.kill();
  });
  await server.child.printed(/is already being published by TCP:\/\/xxx\.xxx\.xxx\.xxx:xxx/, 15_000);
  await until('a viewer', async () => (await fetch(server.http('live', 'llhls.m3u8'))).status === 200);
  await server.child.printed(/viewer session opened/, 15_000);
  const clients = server.child.stderr.split('\n').filter((line) => line.includes('127.0.0.1') && !line.includes('listening'));
  expect(clients).toEqual([]);
  expect(server.log).toContain('"peer":"xxx.xxx.xxx.xxx"');
});

test('the server writes only to its state folder', async () => {
  const place = mkdtempSync(path.join(folder, 'read-only-'));
  const [cwd, home, temporary] = ['cwd', 'home', 'tmp'].map((name) => path.join(place, name)) as [string, string, string];
  for (const one of [cwd, home, temporary]) mkdirSync(one, { mode: 0o555 });
  const before = projectFiles();
  const server = await startServer({ compileCache: true, cwd, env: { HOME: home, TMPDIR: temporary } });
  onTestFinished(async () => {
    await server.close();
    for (const one of [cwd, home, temporary]) chmodSync(one, 0o755);
  });
  await server.api.create('/v1/vhosts', [{ name: 'made', host: { names: ['made.test'] } }]);
  const encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 });
  await encoder.sent(60);
  await encoder.stop();
  await server.stop();
  for (const one of [cwd, home, temporary]) expect(readdirSync(one)).toEqual([]);
  expect(readdirSync(server.folder).sort()).toEqual(['Server.xml', 'state']);
  expect(projectFiles()).toEqual(before);
});

/** All files of the project with their modification times, without the folders of tools. */
function projectFiles(): Record<string, number> {
  const entries = ['src', 'conf', 'docs', 'native', 'examples'].flatMap((name) => {
    try {
      return readdirSync(path.join(ROOT, name), { recursive: true, withFileTypes: true });
    } catch {
      return []; // The project has no such folder.
    }
  });
  const top = readdirSync(ROOT, { withFileTypes: true });
  const files = [...entries, ...top].filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  return Object.fromEntries(files.sort().map((file) => [file, statSync(file).mtimeMs]));
}
