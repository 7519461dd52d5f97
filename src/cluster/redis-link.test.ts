import net from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { redisTarget } from './redis-client.ts';
import { RedisLink } from './redis-link.ts';

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0).reverse()) stop();
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
