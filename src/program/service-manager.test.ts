import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { loadAddon } from '../native/addon.ts';
import { type NotifySender, ServiceManager } from './service-manager.ts';

let told: string[];
let warnings: string[];
const logger = { warn: (_fields: object, text: string) => void warnings.push(text), info: () => undefined };
const send: NotifySender = (_socket, message) => void told.push(message);

beforeEach(() => {
  told = [];
  warnings = [];
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

function manager(environment: Record<string, string>, sender: NotifySender = send): ServiceManager {
  const made = new ServiceManager({ logger, environment, send: sender, pid: 7 });
  onTestFinished(() => made.close());
  return made;
}

test('without a socket it sends nothing', async () => {
  const made = manager({ WATCHDOG_USEC: '1000000' });
  made.ready('runs');
  made.reloading();
  made.stopping();
  await vi.advanceTimersByTimeAsync(5000);
  expect(made.active).toBe(false);
  expect(told).toEqual([]);
});

test('readiness, reloads and stops are sent in order, a reload with the monotonic clock', async () => {
  const made = manager({ NOTIFY_SOCKET: '/run/socket' });
  made.status('starts');
  made.ready('listens\non 5 ports');
  const before = process.hrtime.bigint() / 1000n;
  made.reloading();
  made.ready('runs');
  made.stopping();
  await vi.advanceTimersByTimeAsync(0);
  expect(told).toEqual([
    'STATUS=starts',
    'READY=1\nSTATUS=listens\\u000aon 5 ports',
    expect.stringMatching(/^RELOADING=1\nMONOTONIC_USEC=\d+$/),
    'READY=1\nSTATUS=runs',
    'STOPPING=1\nSTATUS=stopping',
  ]);
  const at = BigInt(/\d+$/.exec(told[2] ?? '')?.[0] ?? 0);
  expect(at >= before && at <= process.hrtime.bigint() / 1000n).toBe(true);
});

test('pings twice within the time of the watchdog, from readiness on, until it is closed', async () => {
  const made = manager({ NOTIFY_SOCKET: '@name', WATCHDOG_USEC: '3000000', WATCHDOG_PID: '7' });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told).toEqual([]);
  made.ready('runs');
  made.ready('runs');
  await vi.advanceTimersByTimeAsync(4500);
  expect(told.filter((text) => text === 'WATCHDOG=1')).toHaveLength(4);
  made.close();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told.filter((text) => text === 'WATCHDOG=1')).toHaveLength(4);
});

test.each([
  ['of another process', { WATCHDOG_USEC: '1000000', WATCHDOG_PID: '8' }],
  ['without a time', { WATCHDOG_USEC: '0' }],
  ['with a time that is not a number', { WATCHDOG_USEC: '1s' }],
])('a watchdog %s gets no pings', async (_what, members) => {
  manager({ NOTIFY_SOCKET: '/run/socket', ...members } as Record<string, string>).ready('runs');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told).toEqual(['READY=1\nSTATUS=runs']);
});

test('the variables it reads are removed from the environment of child processes', () => {
  const environment: Record<string, string> = { NOTIFY_SOCKET: '/s', WATCHDOG_USEC: '1', WATCHDOG_PID: '7', HOME: '/' };
  manager(environment);
  expect(environment).toEqual({ HOME: '/' });
});

test('a failing socket is logged once, and a hanging one gathers no pings', async () => {
  const refusing = manager({ NOTIFY_SOCKET: '/s', WATCHDOG_USEC: '1000' }, () => Promise.reject(new Error('ENOENT')));
  refusing.ready('runs');
  await vi.advanceTimersByTimeAsync(100);
  expect(warnings).toEqual(['the service manager could not be notified: ENOENT']);
  let asked = 0;
  const hanging = manager({ NOTIFY_SOCKET: '/s', WATCHDOG_USEC: '1000' }, () => {
    asked += 1;
    return new Promise(() => undefined);
  });
  hanging.ready('runs');
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toBe(1);
});

test('a name that is neither a path nor abstract is logged and ignored', async () => {
  const made = manager({ NOTIFY_SOCKET: 'vsock:2:1234' });
  made.ready('runs');
  await vi.advanceTimersByTimeAsync(0);
  expect(told).toEqual([]);
  expect(warnings).toHaveLength(1);
});

/** Listens with Python, which has Unix datagram sockets; resolves with the first message. */
async function heardBy(name: string, say: () => void): Promise<string> {
  const program = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
s.bind('\\0' + name[1:] if name.startswith('@') else name)
print('bound', flush=True)
print(s.recv(4096).decode(), flush=True)
`;
  const listener = spawn('python3', ['-c', program, name], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void listener.kill('SIGKILL'));
  let text = '';
  const line = (count: number): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => void (text.split('\n').length > count && resolve());
      listener.stdout.on('data', look);
      look();
    });
  listener.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  await line(1);
  say();
  await line(2);
  return text.split('\n')[1] ?? '';
}

test.each(['a path', 'an abstract name'])('the addon sends to a socket with %s', async (kind) => {
  vi.useRealTimers();
  const { addon } = loadAddon();
  if (addon === null) throw new Error('the addon is not built');
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-notify-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const name = kind === 'a path' ? path.join(folder, 'socket') : `@${folder}`;
  expect(await heardBy(name, () => expect(addon.notifySend(name, 'READY=1')).toBe(0))).toBe('READY=1');
  const ENOENT = 2;
  expect(addon.notifySend(path.join(folder, 'nobody'), 'READY=1')).toBe(ENOENT);
  expect(() => addon.notifySend('name', 'READY=1')).toThrow('path of a socket');
  const ENAMETOOLONG = 36;
  expect(addon.notifySend(`/${'x'.repeat(200)}`, 'READY=1')).toBe(ENAMETOOLONG);
});
