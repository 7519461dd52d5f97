import net from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { RedisServer } from '../../test/support/redis-server.ts';
import { systemClock } from '../util/clock.ts';
import { OriginMap } from './origin-map.ts';

const EXPIRY_S = 2;
const REFRESH_MS = 150;
const PATIENCE = { timeout: 10_000 };
const OF_A = 'ovt://a:9000/app/s';
const OF_B = 'ovt://b:9000/app/s';

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** How long a key still lives, ms. */
async function lifeOf(redis: RedisServer, key: string): Promise<number> {
  return Number((await redis.ask('PTTL', key)).slice(1));
}

/** A number in the text of `INFO`. */
function countIn(text: string, pattern: RegExp): number {
  return Number(pattern.exec(text)?.[1] ?? 0);
}

async function startRedis(password?: string): Promise<RedisServer> {
  const redis = await RedisServer.start(password);
  stops.push(async () => await redis.stop());
  return redis;
}

function open(host: string, options: { name?: string; auth?: string; ovtPort?: number | null } = {}) {
  const logger = new RecordingLogger();
  const { name, auth, ovtPort = 9000 } = options;
  const config = { redisServer: { host, ...(auth !== undefined && { auth }) }, ...(name !== undefined && { originHostName: name }) };
  const map = new OriginMap({ config, ovtPort, clock: systemClock, logger, expiryS: EXPIRY_S, refreshMs: REFRESH_MS });
  stops.push(async () => await map.close());
  const said = (text: string) => expect.poll(() => logger.lines.map(({ message }) => message)).toContain(text);
  return { map, logger, said };
}

const refused = (port: number): string => `Redis at 127.0.0.1:${port} cannot be used: connect ECONNREFUSED 127.0.0.1:${port}`;

describe('the origin map', () => {
  it('locates the streams of an origin for edges while they exist', async () => {
    const redis = await startRedis();
    const origin = open(redis.address, { name: 'a' });
    const edge = open(redis.address);
    origin.map.add('app', 's');
    await expect.poll(() => edge.map.locate('app', 's')).toBe(OF_A);
    expect(await redis.value('app/s')).toBe(OF_A);
    expect(await edge.map.locate('app', 'other')).toBeNull();
    expect(edge.map.figures.absent).toBeGreaterThan(0);
    expect([edge.map.figures.found, origin.map.figures.registered, origin.map.figures.waiting]).toEqual([1, 1, 0]);
    // It is renewed before it expires.
    for (let time = 0; time < 2; time += 1) {
      await redis.ask('PEXPIRE', 'app/s', `${(EXPIRY_S * 1000) / 2}`);
      await expect.poll(() => lifeOf(redis, 'app/s')).toBeGreaterThan((EXPIRY_S * 1000) / 2);
      expect(await edge.map.locate('app', 's')).toBe(OF_A);
    }
    origin.map.remove('app', 's');
    await expect.poll(() => redis.value('app/s')).toBeNull();
    expect(origin.map.size).toBe(0);
  });

  it('writes addresses with an expiry', async () => {
    const redis = await startRedis();
    const { map, said } = open(redis.address, { name: 'a' });
    map.add('app', 's');
    await said(`'app/s' is in the origin map as ${OF_A}`);
    const left = await lifeOf(redis, 'app/s');
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(EXPIRY_S * 1000);
  });

  it('keeps the first address, and takes the address of another server after its removal', async () => {
    const redis = await startRedis();
    const first = open(redis.address, { name: 'a' });
    const second = open(redis.address, { name: 'b' });
    first.map.add('app', 's');
    await first.said(`'app/s' is in the origin map as ${OF_A}`);
    second.map.add('app', 's');
    await second.said(`'app/s' is in the origin map as ${OF_A}: ours waits`);
    // A candidate that ends takes nothing away.
    second.map.remove('app', 's');
    await second.map.locate('app', 's');
    expect(await redis.value('app/s')).toBe(OF_A);
    second.map.add('app', 's');
    await expect.poll(() => second.logger.lines.filter(({ message }) => message.endsWith('ours waits')).length).toBe(2);
    first.map.remove('app', 's');
    await second.said(`'app/s' is in the origin map as ${OF_B}`);
    expect(await redis.value('app/s')).toBe(OF_B);
  });

  it('forgets a server that died', async () => {
    const redis = await startRedis();
    // What a server leaves behind that was killed.
    await redis.ask('SET', 'app/s', OF_A, 'EX', '100');
    const second = open(redis.address, { name: 'b' });
    second.map.add('app', 's');
    await second.said(`'app/s' is in the origin map as ${OF_A}: ours waits`);
    await redis.ask('PEXPIRE', 'app/s', '1');
    await second.said(`'app/s' is in the origin map as ${OF_B}`);
    expect(await redis.value('app/s')).toBe(OF_B);
  });

  it('gives a server its own address back after a restart, and sends no edge to it for streams that it lacks', async () => {
    const redis = await startRedis();
    await redis.ask('SET', 'app/s', OF_A, 'EX', '100');
    const { map, said } = open(redis.address, { name: 'a' });
    await said(`connected to Redis at ${redis.address}`);
    expect(await map.locate('app', 's')).toBeNull();
    map.add('app', 's');
    await said(`'app/s' is in the origin map as ${OF_A}`);
    expect(Number((await redis.ask('TTL', 'app/s')).slice(1))).toBeLessThanOrEqual(EXPIRY_S);
  });

  it('registers a stream that ends and restarts at once', async () => {
    const redis = await startRedis();
    const { map, said } = open(redis.address, { name: 'a' });
    await said(`connected to Redis at ${redis.address}`);
    for (let count = 0; count < 20; count += 1) {
      map.add('app', 's');
      map.remove('app', 's');
    }
    map.add('app', 's');
    await expect.poll(() => redis.value('app/s')).toBe(OF_A);
    map.remove('app', 's');
    await map.close();
    expect(await redis.value('app/s')).toBeNull();
  });

  it('withdraws the streams of a drained server in favour of a waiting server, and registers them again after the drain', async () => {
    const redis = await startRedis();
    const first = open(redis.address, { name: 'a' });
    first.map.add('app', 's');
    await first.said(`'app/s' is in the origin map as ${OF_A}`);
    const second = open(redis.address, { name: 'b' });
    second.map.add('app', 's');
    await second.said(`'app/s' is in the origin map as ${OF_A}: ours waits`);
    first.map.withdraw(true);
    first.map.add('app', 'later');
    await second.said(`'app/s' is in the origin map as ${OF_B}`);
    // Each map has had several turns to register.
    const turns = async (): Promise<number> => countIn(await redis.ask('INFO', 'commandstats'), /cmdstat_ping:calls=(\d+)/);
    const before = await turns();
    await expect.poll(turns, PATIENCE).toBeGreaterThanOrEqual(before + 8);
    expect([await redis.value('app/s'), await redis.value('app/later'), first.map.size]).toEqual([OF_B, null, 2]);
    first.map.withdraw(false);
    await expect.poll(() => redis.value('app/later')).toBe('ovt://a:9000/app/later');
    second.map.remove('app', 's');
    await expect.poll(() => redis.value('app/s')).toBe(OF_A);
  });

  it('registers and removes thousands of streams at once without commands that the link refuses', async () => {
    const redis = await startRedis();
    const { map } = open(redis.address, { name: 'a' });
    await expect.poll(() => map.reachable).toBe(true);
    for (let n = 0; n < 3000; n += 1) map.add('app', `s${n}`);
    await expect.poll(() => map.figures.registered, PATIENCE).toBe(3000);
    map.withdraw(true);
    await expect.poll(() => redis.ask('DBSIZE'), PATIENCE).toBe(':0');
    map.withdraw(false);
    await expect.poll(() => map.figures.registered, PATIENCE).toBe(3000);
    expect(map.figures.refused).toBe(0);
  });

  it('is read-only for a server without a name or without edges', async () => {
    const redis = await startRedis();
    const edge = open(redis.address);
    const deaf = open(redis.address, { name: 'a', ovtPort: null });
    for (const { map } of [edge, deaf]) map.add('app', 's');
    expect([edge.map.size, deaf.map.size]).toEqual([0, 0]);
    expect(deaf.logger.lines[0]?.message).toContain('OriginHostName has no effect');
  });

  it.each(['file:///etc/passwd', 'nonsense', 'ovt://', `ovt://a/${'x'.repeat(3000)}`])('ignores the address %s', async (address) => {
    const redis = await startRedis();
    await redis.ask('SET', 'app/s', address);
    const { map, said } = open(redis.address);
    await said(`connected to Redis at ${redis.address}`);
    expect(await map.locate('app', 's')).toBeNull();
    await said("the origin map has something for 'app/s' that is no URL of OVT or RTSP");
  });

  it('does not stop at a key of another kind', async () => {
    const redis = await startRedis();
    await redis.ask('LPUSH', 'app/s', 'x');
    const { map, said, logger } = open(redis.address, { name: 'a' });
    await said(`connected to Redis at ${redis.address}`);
    map.add('app', 's');
    map.add('app', 't');
    expect(await map.locate('app', 's')).toBeNull();
    await said("'app/t' is in the origin map as ovt://a:9000/app/t");
    const why = 'WRONGTYPE Operation against a key holding the wrong kind of value';
    await said(`'app/s' cannot be put into the origin map: ${why}`);
    expect(await map.locate('app', 's')).toBeNull();
    // Each once, however often it is tried.
    const refusals = async (): Promise<number> => countIn(await redis.ask('INFO', 'errorstats'), /errorstat_WRONGTYPE:count=(\d+)/);
    const before = await refusals();
    await expect.poll(refusals, PATIENCE).toBeGreaterThanOrEqual(before + 3);
    expect(logger.lines.filter(({ message }) => message.endsWith(why)).map(({ message }) => message)).toEqual([
      `'app/s' cannot be looked up in the origin map: ${why}`,
      `'app/s' cannot be put into the origin map: ${why}`,
    ]);
  });

  it('logs that Redis refuses writes, and registers the stream when it accepts them', async () => {
    const redis = await startRedis();
    await redis.ask('CONFIG', 'SET', 'maxmemory', '1');
    const { map, said } = open(redis.address, { name: 'a' });
    map.add('app', 's');
    await said("'app/s' cannot be put into the origin map: OOM command not allowed when used memory > 'maxmemory'.");
    await redis.ask('CONFIG', 'SET', 'maxmemory', '0');
    await said(`'app/s' is in the origin map as ${OF_A}`);
  });
});

describe('Redis', () => {
  it('is asked with the password', async () => {
    const redis = await startRedis('secret');
    const { map, said } = open(redis.address, { name: 'a', auth: 'secret' });
    map.add('app', 's');
    await said(`'app/s' is in the origin map as ${OF_A}`);
  });

  it.each([
    ['wrong', 'WRONGPASS invalid username-password pair or user is disabled.'],
    [undefined, 'NOAUTH Authentication required.'],
  ])('logs once that it refuses the password %s', async (auth, reason) => {
    const redis = await startRedis('secret');
    const { map, logger, said } = open(redis.address, { name: 'a', ...(auth !== undefined && { auth }) });
    await said(`Redis at ${redis.address} cannot be used: ${reason}`);
    let asked = 0;
    /** Connections besides those of this test. */
    const attempts = async (): Promise<number> => {
      asked += 1;
      return countIn(await redis.ask('INFO', 'stats'), /total_connections_received:(\d+)/) - asked;
    };
    const before = await attempts();
    await expect.poll(attempts, PATIENCE).toBeGreaterThanOrEqual(before + 2);
    expect(logger.lines.length).toBe(1);
    expect(await map.locate('app', 's')).toBeNull();
  });

  it('may be down, and gets every stream again when it restarts empty', async () => {
    const redis = await startRedis();
    await redis.stop();
    const { map, logger, said } = open(redis.address, { name: 'a' });
    map.add('app', 's');
    map.add('app', 't');
    await said(refused(redis.port));
    expect(await map.locate('app', 'x')).toBeNull();
    await redis.restart();
    await said(`connected to Redis at ${redis.address}`);
    await expect.poll(() => redis.value('app/t')).toBe('ovt://a:9000/app/t');
    await redis.restart();
    await said(`Redis at ${redis.address} is back`);
    await expect.poll(() => redis.value('app/s')).toBe(OF_A);
    const about = logger.lines.filter(({ message }) => message.includes('Redis at')).map(({ level, message }) => `${level} ${message}`);
    expect(about.slice(0, 3)).toEqual([
      `warn ${refused(redis.port)}`,
      `info connected to Redis at ${redis.address}`,
      // As it is killed when it has answered, before it has, or before it was asked.
      expect.stringMatching(
        new RegExp(`^warn Redis at ${redis.address} was lost: (the connection was closed|read ECONNRESET|write EPIPE)$`),
      ),
    ]);
    expect(about.at(-1)).toBe(`info Redis at ${redis.address} is back`);
    // Refused at most once in between, however often it was tried.
    expect(about.length).toBeLessThanOrEqual(5);
  });

  it('may hang while each look-up is answered in time', async () => {
    const redis = await startRedis();
    const { map, logger, said } = open(redis.address);
    await said(`connected to Redis at ${redis.address}`);
    redis.hang();
    stops.push(() => redis.wakeUp());
    const answers = await Promise.all(Array.from({ length: 1500 }, (_none, index) => map.locate('app', `s${index}`)));
    expect(new Set(answers)).toEqual(new Set([null]));
    await said(`Redis at ${redis.address} was lost: no answer in 1000 ms`);
    // Known to hang, it is not waited for at all.
    expect([map.reachable, map.figures.failed]).toEqual([false, 1500]);
    expect(await Promise.race([map.locate('app', 's'), new Promise((resolve) => setTimeout(resolve, 0, 'late'))])).toBeNull();
    redis.wakeUp();
    await said(`Redis at ${redis.address} is back`);
    expect(logger.lines.filter(({ message }) => message.includes('was lost')).length).toBe(1);
  });

  it('is found to hang without look-ups, and does not delay a close', async () => {
    const redis = await startRedis();
    const { map, said } = open(redis.address, { name: 'a' });
    map.add('app', 's');
    await said(`'app/s' is in the origin map as ${OF_A}`);
    redis.hang();
    stops.push(() => redis.wakeUp());
    await said(`Redis at ${redis.address} was lost: no answer in 1000 ms`);
    map.remove('app', 's');
    await map.close();
  });

  it.each(['HTTP/1.1 400 Bad Request\r\n\r\n', '$-7\r\n', '*999999999\r\n', ''])(
    'may be another server that answers %j',
    async (greeting) => {
      const server = net.createServer((socket) => {
        socket.on('error', () => undefined);
        socket.on('data', () => socket.write(greeting));
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const sockets = new Set<net.Socket>();
      server.on('connection', (socket) => sockets.add(socket));
      stops.push(() => {
        for (const socket of sockets) socket.destroy();
        server.close();
      });
      const { port } = server.address() as net.AddressInfo;
      const { map, logger } = open(`127.0.0.1:${port}`, { name: 'a' });
      map.add('app', 's');
      await expect.poll(() => logger.lines[0]?.message).toContain(`Redis at 127.0.0.1:${port} cannot be used`);
      expect(await map.locate('app', 's')).toBeNull();
    },
  );
});
