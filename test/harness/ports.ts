/** Free ports of the loopback interface. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Below the range of ephemeral ports (from 32768 on Linux): another program's connection cannot take such a port before the requester
 * listens on it.
 */
const FIRST = 11_000;
/** Number of shares; each test worker has its own. */
const SHARES = 16;
const SHARE = 1300;
/** RTCP uses the port after RTP's. */
const STEP = 2;

const { VITEST_POOL_ID = '0' } = process.env;
const begin = FIRST + (Number(VITEST_POOL_ID) % SHARES) * SHARE;
let next = STEP * Math.floor(Math.random() * (SHARE / STEP));

/** Returns `count` different ports that are free now, for TCP and UDP. Throws if there are not enough. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let tries = SHARE / STEP; ports.length < count; tries -= 1) {
    if (tries === 0) throw new Error(`of ${SHARE / STEP} ports from ${begin} on less than ${count} are free`);
    const port = begin + next;
    next = (next + STEP) % SHARE;
    if ((await isFreeForTcp(port)) && (await isFreeForUdp(port))) ports.push(port);
  }
  return ports;
}

async function isFreeForTcp(port: number): Promise<boolean> {
  const holder = createServer();
  try {
    holder.listen(port, '127.0.0.1');
    await once(holder, 'listening');
  } catch {
    return false;
  }
  holder.close();
  await once(holder, 'close');
  return true;
}

async function isFreeForUdp(port: number): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    socket.bind(port, '127.0.0.1');
    await once(socket, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    socket.close();
  }
}
