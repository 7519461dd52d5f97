/** The server as a process: logs without a reader, signals, a second server, occupied ports. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MAX_LINES_PER_MINUTE } from '../../src/util/budgeted-logger.ts';
import { apiPath, type Statistics } from '../harness/api-client.ts';
import { Child } from '../harness/child.ts';
import { COMPILED } from '../harness/compiled-code.ts';
import { until } from '../harness/poll.ts';
import { freePorts } from '../harness/ports.ts';
import { publish } from '../harness/publisher.ts';
import { decodedFrames } from '../harness/recorded-file.ts';
import { finished, media, record, stopAtEnd, tasks, unfinished } from '../harness/recordings.ts';
import { ROOT, runCommand, spawnServer, startServer, type TestServer } from '../harness/server.ts';

const STOP_DEADLINE_MS = 5000;
/** The capacity of a Linux pipe. */
const PIPE_BYTES = 65_536;
const CLEAN = { code: 0, signal: null };

function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-process-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function opened(file: string, flags: number): number {
  const descriptor = openSync(file, flags);
  onTestFinished(() => closeSync(descriptor));
  return descriptor;
}

function isClosed(server: TestServer): () => Promise<void> {
  return () => server.close();
}

const smallEncoder = (server: TestServer) => stopAtEnd(publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 }));

test('a log on a full disk loses lines, and the server keeps serving', async () => {
  const server = await startServer({ stderr: opened('/dev/full', constants.O_WRONLY) });
  onTestFinished(isClosed(server));
  const encoder = smallEncoder(server);
  await encoder.sent(60);
  await until('a playlist', async () => (await fetch(server.http('live', 'llhls.m3u8'))).status === 200);
  expect(await server.stop()).toEqual(CLEAN);
});

test('a log whose reader has stopped blocks neither the server nor its stop, and reports the dropped lines later', async () => {
  const fifo = path.join(temporaryFolder(), 'log');
  expect(spawnSync('mkfifo', [fifo]).status).toBe(0);
  const reader = opened(fifo, constants.O_RDWR | constants.O_NONBLOCK);
  expect(writeSync(reader, Buffer.alloc(PIPE_BYTES, ' '))).toBe(PIPE_BYTES);
  const server = await startServer({ stderr: opened(fifo, constants.O_WRONLY) });
  onTestFinished(isClosed(server));
  // Each makes a log line of more than 600 characters; the server holds a megabyte of lines.
  const target = `/v2/internals/log?x=${'x'.repeat(600)}`;
  for (let round = 0; round < 200; round += 1) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => server.api.call('PATCH', target, { level: 'info' })));
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
  }
  const taken = Buffer.alloc(4 * 1024 * 1024);
  let length = 0;
  await until('the line about dropped lines', () => {
    try {
      for (;;) length += readSync(reader, taken, length, taken.length - length, null);
    } catch {
      return taken.toString('latin1', 0, length).includes('lines of the log were dropped');
    }
  });
  const lines = taken.toString('utf8', PIPE_BYTES, length).trimEnd().split('\n');
  expect(() => lines.map((line) => JSON.parse(line))).not.toThrow();
  writeSync(reader, Buffer.alloc(PIPE_BYTES, ' '));
  expect(await server.stop()).toEqual(CLEAN);
});

test('many short-lived viewers log a hundred lines a minute and the number of omitted lines', async () => {
  const server = await startServer();
  onTestFinished(isClosed(server));
  const encoder = smallEncoder(server);
  await encoder.sent(60);
  await until('a playlist', async () => (await fetch(server.http('live', 'llhls.m3u8'))).status === 200);
  for (let round = 0; round < 3 * MAX_LINES_PER_MINUTE; round += 1) await (await fetch(server.http('live', 'llhls.m3u8'))).text();
  // Sessions are logged in batches, so the stop may come between two.
  await until(
    'more sessions than lines are counted',
    async () => (await server.api.get<Statistics>(apiPath.stats('live'))).totalConnections > 2 * MAX_LINES_PER_MINUTE,
  );
  expect(await server.stop()).toEqual(CLEAN);
  expect(server.log.match(/"msg":"viewer session opened"/g)?.length).toBeLessThanOrEqual(2 * MAX_LINES_PER_MINUTE);
  expect(server.log).toMatch(/\d+ more lines 'viewer session opened' within a minute were left out/);
});

test('SIGHUP, SIGUSR1 and SIGUSR2 do not end the server and open no debugger', async () => {
  const server = await startServer();
  onTestFinished(isClosed(server));
  for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) {
    server.child.signal(signal);
    await server.child.printed(signal === 'SIGHUP' ? /read again: nothing has changed/ : new RegExp(`${signal}: `), 5000);
  }
  expect(server.log).not.toContain('Debugger');
  expect(await server.stop()).toEqual(CLEAN);
});

/** A configuration and state folder for another way to start a server. */
async function settings(): Promise<{ server: TestServer; root: string; args: string[] }> {
  const root = temporaryFolder();
  const server = await spawnServer({ recordRoot: root });
  onTestFinished(isClosed(server));
  await server.kill();
  return { server, root, args: ['--log-format', 'json', '--config', server.config, '--state', server.state] };
}

/** Compiled code need not be written at the end. */
const QUICK = { cwd: ROOT, env: { ...process.env, ...COMPILED } };

/** Records three files, calls `end` during the recordings, and checks them. */
async function stopsWhole(server: TestServer, root: string, child: Child, end: () => void): Promise<void> {
  await child.printed(/is ready/, 30_000);
  const before = media(root).length;
  const names = [1, 2, 3].map((number) => `${number}-${before}.mp4`);
  for (const name of names) await record(server, name, `/${name}`, { infoPath: `/${name}.xml` });
  const encoder = smallEncoder(server);
  await until('three recordings', async () => (await tasks(server)).filter(({ recordTime = 0 }) => recordTime > 1000).length === 3);
  end();
  const exit = await child.ended(STOP_DEADLINE_MS);
  await encoder.stop();
  expect(child.output).toContain('"msg":"stopped"');
  expect(exit).toEqual(CLEAN);
  expect(unfinished(root)).toEqual([]);
  await finished(root, [...names, ...names.map((name) => `${name}.xml`)]);
  for (const name of names) expect(decodedFrames(path.join(root, name)), name).toBeGreaterThan(20);
}

test('SIGTERM to the whole group of npm start finishes three recordings and exits with 0', async () => {
  const { server, root, args } = await settings();
  const npm = new Child('npm', ['start', '--', ...args], { ...QUICK, ownGroup: true });
  onTestFinished(async () => {
    npm.signalGroup('SIGKILL');
    await npm.exited;
  });
  await stopsWhole(server, root, npm, () => npm.signalGroup('SIGTERM'));
});

test('Control-C on the terminal of npm start finishes three recordings and exits with 0', async () => {
  const { server, root, args } = await settings();
  // Types Control-C on request.
  const terminal = `import os, pty, signal, sys
pid, master = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
signal.signal(signal.SIGUSR1, lambda *_: os.write(master, b'\\x03'))
while True:
    try: data = os.read(master, 65536)
    except OSError: break
    if not data: break
    os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))`;
  const shell = new Child('python3', ['-c', terminal, 'npm', 'start', '--', ...args], QUICK);
  onTestFinished(async () => {
    await shell.kill();
  });
  await stopsWhole(server, root, shell, () => shell.signal('SIGUSR1'));
});

test('a second server on the state folder of a running server is refused, and changes nothing', async () => {
  const { server: first, root } = await (async () => {
    const folder = temporaryFolder();
    return { server: await startServer({ recordRoot: folder }), root: folder };
  })();
  onTestFinished(isClosed(first));
  await record(first, 'kept', '/kept.mp4');
  const encoder = smallEncoder(first);
  await until('the recording runs', async () => (await tasks(first)).some(({ recordTime = 0 }) => recordTime > 500));
  const second = await spawnServer({ state: first.state, recordRoot: root });
  onTestFinished(isClosed(second));
  expect((await second.child.ended(15_000)).code).toBe(1);
  expect(second.log).toContain(`state folder '${first.state}' is in use by process ${first.pid}`);
  expect(second.log).not.toMatch(/\\n\s+at |of the last run/);
  expect(unfinished(root)).toHaveLength(1);
  await first.kill();
  await encoder.stop();
  // The killed process has released everything.
  await first.restart();
  await finished(root, ['kept.mp4']);
});

test.each([
  ['is a file', (folder: string) => path.join(folder, 'file')],
  ['is in a file', (folder: string) => path.join(folder, 'file/state')],
])('a state folder that %s is reported without a stack', async (_, stateIn) => {
  const folder = temporaryFolder();
  writeFileSync(path.join(folder, 'file'), 'of somebody');
  const state = stateIn(folder);
  const { code, stderr } = await runCommand(['--config', path.join(ROOT, 'conf/Server.xml'), '--log-format', 'text', '--state', state]);
  expect(code).toBe(1);
  expect(stderr).toMatch(`could not start: state folder '${state}' cannot be used: `);
  expect(stderr).not.toMatch(/\n\s+at |ENOTDIR/);
  expect(readFileSync(path.join(folder, 'file'), 'utf8')).toBe('of somebody');
});

test('occupied ports are reported together with their elements, without a stack', async () => {
  const [rtmp = 0, http = 0, api = 0] = await freePorts(3);
  for (const port of [rtmp, http, api]) {
    const holder = createServer().listen(port, '127.0.0.1');
    await once(holder, 'listening');
    onTestFinished(() => {
      holder.close();
    });
  }
  const server = await spawnServer({ ports: { rtmp, http, api } });
  onTestFinished(isClosed(server));
  expect((await server.child.ended(15_000)).code).toBe(1);
  const [line = ''] = server.log.split('\n').filter((one) => one.includes('could not start'));
  for (const [port, element] of [
    [rtmp, 'Bind/Providers/RTMP/Port'],
    [http, 'Bind/Publishers/LLHLS/Port'],
    [api, 'Bind/Managers/API'],
  ]) {
    expect(line).toContain(`port ${port} (${element}) cannot be opened: `);
  }
  expect(line).not.toContain('stack');
});
