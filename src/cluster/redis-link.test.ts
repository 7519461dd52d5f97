import net from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { redisTarget } from './redis-client.ts';
import { RedisLink } from './redis-link.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0).reverse()) stop();
});

/** A server whose answers `answer` writes, one for each command; resolves with its address. */
async function serverWith(answer: (command: string, socket: net.Socket) => void): Promise<string> {
  const server = net.createServer((socket) => {
    stops.push(() => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      for (const [command] of String(data).matchAll(/\*\d+\r\n(?:\$\d+\r\n[^\r]*\r\n)+/g)) answer(command, socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => server.close());
  return `127.0.0.1:${(server.address() as net.AddressInfo).port}`;
}

it('reconnects when a failover is announced while it asks a Sentinel for the master', { timeout: 20_000 }, async () => {
  const connected = new Set<net.Socket>();
  const master = await serverWith((command, socket) => {
    connected.add(socket);
    socket.write(/role/i.test(command) ? '*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n' : '+PONG\r\n');
  });
  const [host = '', port = ''] = master.split(':');
  const tellMaster = (socket: net.Socket): unknown => socket.write(`*2\r\n$${host.length}\r\n${host}\r\n$${port.length}\r\n${port}\r\n`);
  let subscriber: net.Socket | null = null;
  let isBusy = false;
  const waiting: net.Socket[] = [];
  const sentinel = await serverWith((command, socket) => {
    if (command.includes('subscribe')) {
      subscriber = socket;
      socket.write('*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n');
    } else if (!command.includes('get-master-addr-by-name')) socket.write('*0\r\n');
    else if (isBusy) waiting.push(socket);
    else tellMaster(socket);
  });
  let ups = 0;
  const onUp = (): void => {
    ups += 1;
  };
  const target = redisTarget({ url: `redis+sentinel://${sentinel}/shared` });
  const link = new RedisLink({ target, logger: new RecordingLogger(), onUp });
  stops.push(() => link.close());
  await expect.poll(() => [ups, subscriber !== null], { timeout: 5000 }).toEqual([1, true]);

  isBusy = true;
  for (const socket of connected) socket.destroy();
  await expect.poll(() => waiting.length, { timeout: 5000 }).toBe(1);
  const announced = subscriber as unknown as net.Socket;
  const heard = new Promise((resolve) => announced.once('end', resolve));
  announced.write('*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$6\r\nshared\r\n');
  await heard;
  isBusy = false;
  for (const socket of waiting) tellMaster(socket);
  await expect.poll(() => ups, { timeout: 10_000 }).toBe(2);
  expect(link.up).toBe(true);
});

it('logs a server once that answers PING only, and retries it with growing delays', { timeout: 40_000 }, async () => {
  let isWell = false;
  const cameAt: number[] = [];
  const server = net.createServer((socket) => {
    cameAt.push(performance.now());
    stops.push(() => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      if (/ping/i.test(String(data))) socket.write('+PONG\r\n');
      else if (isWell) socket.write('$-1\r\n');
      else socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => server.close());
  const address = `127.0.0.1:${(server.address() as net.AddressInfo).port}`;
  const logger = new RecordingLogger();
  const onUp = () => void link.get('key').catch(() => undefined);
  const link = new RedisLink({ target: redisTarget({ host: address }), logger, steadyMs: 2000, onUp });
  stops.push(() => link.close());
  const said = () => logger.lines.map(({ level, message }) => `${level} ${message}`);
  await expect.poll(() => cameAt.length).toBe(5);
  const before = [
    `info connected to Redis at ${address}`,
    `warn Redis at ${address} was lost: the connection was closed`,
    `info Redis at ${address} is back`,
    `warn Redis at ${address} comes and goes, the next is told when it has stayed for 2000 ms: the connection was closed`,
  ];
  expect(said()).toEqual(before);
  // A fifth of two seconds is left to chance.
  expect((cameAt[4] ?? 0) - (cameAt[3] ?? 0)).toBeGreaterThan(1500);
  isWell = true;
  await expect.poll(() => said()).toEqual([...before, `info Redis at ${address} is back`]);
  expect(link.up).toBe(true);
});
