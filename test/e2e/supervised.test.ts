/** The server under the protocol of systemd: readiness, watchdog, reload and stop over `NOTIFY_SOCKET`. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { NotifySocket } from '../harness/notify-socket.ts';
import { until } from '../harness/poll.ts';
import { spawnServer, startServer, type TestServer } from '../harness/server.ts';

async function manager(options: { abstract?: boolean } = {}): Promise<NotifySocket> {
  const socket = await NotifySocket.open(options);
  onTestFinished(() => socket.close());
  return socket;
}

function closed(server: TestServer): TestServer {
  onTestFinished(() => server.close());
  return server;
}

/** Whether a process listens at the port. */
function connects(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

test.each([{ abstract: false }, { abstract: true }])('readiness is sent when every port listens; abstract: $abstract', async (kind) => {
  const socket = await manager(kind);
  const server = closed(await spawnServer({ env: { NOTIFY_SOCKET: socket.name } }));
  expect((await socket.hears('STATUS=')).text).toBe('STATUS=starting');
  expect((await socket.hears('READY=1')).text).toBe('READY=1\nSTATUS=running');
  const { api, http, rtmp } = server.ports;
  expect(await Promise.all([api, http, rtmp].map(connects))).toEqual([true, true, true]);
  expect(socket.heard.findIndex(({ text }) => text.startsWith('READY=1'))).toBe(1);
  await server.stop();
  await socket.hears('STOPPING=1');
  expect(socket.count('WATCHDOG=1')).toBe(0);
});

const hasProgram = spawnSync('systemd-notify', ['--version'], { stdio: 'ignore' }).status === 0;

test.skipIf(!hasProgram)('readiness is sent by a program of systemd when the addon is off', async () => {
  const socket = await manager();
  const server = closed(await spawnServer({ env: { NOTIFY_SOCKET: socket.name, WATCHDOG_USEC: '2000000', MILLRACE_NATIVE: 'off' } }));
  expect((await socket.hears('READY=1')).text).toContain('STATUS=running');
  await socket.hears('WATCHDOG=1');
  expect(await server.stop()).toEqual({ code: 0, signal: null });
});

test('a failing start never sends readiness', async () => {
  const socket = await manager();
  const first = closed(await startServer());
  const second = closed(await spawnServer({ ports: first.ports, env: { NOTIFY_SOCKET: socket.name } }));
  expect((await second.child.ended(15_000)).code).toBe(1);
  expect(socket.heard.filter(({ text }) => text.startsWith('READY=1'))).toEqual([]);
});

/** Blocks the event loop for four seconds on a signal that the server does not handle. */
const BLOCKER = `process.on('SIGWINCH', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4000));`;

test('the watchdog is notified while the event loop turns, and not while it is blocked', async () => {
  const socket = await manager();
  const preload = `--import=data:text/javascript,${encodeURIComponent(BLOCKER)}`;
  const server = closed(await startServer({ env: { NOTIFY_SOCKET: socket.name, WATCHDOG_USEC: '400000', NODE_OPTIONS: preload } }));
  await until('the watchdog is fed', () => socket.count('WATCHDOG=1') >= 5);
  server.child.signal('SIGWINCH');
  const pings = (): number[] => socket.heard.filter(({ text }) => text === 'WATCHDOG=1').map(({ at }) => at);
  const longest = (): number => {
    const times = pings();
    return Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? at)));
  };
  // Nothing else in the process sends watchdog messages, although the threads of sockets, delivery and the addon continue.
  await until('a pause of the notifications during the block', () => longest() > 3000);
  const count = pings().length;
  await until('notifications again', () => pings().length > count + 2);
});

test('a reload sends its start, its time and its end, even when it is refused', async () => {
  const socket = await manager();
  const server = closed(await startServer({ env: { NOTIFY_SOCKET: socket.name } }));
  await socket.hears('READY=1');
  const before = socket.heard.length;
  const xml = readFileSync(server.config, 'utf8');
  writeFileSync(server.config, xml.replace('<Bind>', '<Log><Level>debug</Level></Log><Bind>'));
  server.child.signal('SIGHUP');
  const begun = await socket.hears('RELOADING=1', before);
  expect(begun.text).toMatch(/^RELOADING=1\nMONOTONIC_USEC=\d+$/);
  // The message uses the clock of the machine, not of the process.
  expect(Math.abs(Number(/\d+$/.exec(begun.text)?.[0]) / 1000 - begun.at)).toBeLessThan(5000);
  expect((await socket.hears('READY=1', before)).text).toBe('READY=1\nSTATUS=running; 1 change reloaded');
  const after = socket.heard.length;
  writeFileSync(server.config, xml.replace('<Type>origin</Type>', '<Type>orign</Type>'));
  server.child.signal('SIGHUP');
  await socket.hears('RELOADING=1', after);
  const { text } = await socket.hears('READY=1', after);
  expect(text).toContain('STATUS=running; the configuration was not reloaded: ');
  expect(text).toContain('Unknown type: orign');
});
