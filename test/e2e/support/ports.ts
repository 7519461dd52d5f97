/** Free ports of the loopback interface. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';

/** Returns `count` ports that were free a moment ago, for TCP and UDP: all are held open until the last one is known, so they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const holders: Server[] = [];
  const ports: number[] = [];
  while (ports.length < count) {
    const holder = createServer().listen(0, '127.0.0.1');
    holders.push(holder);
    await once(holder, 'listening');
    const { port } = holder.address() as AddressInfo;
    if (await isFreeForUdp(port)) ports.push(port);
  }
  await Promise.all(
    holders.map(async (holder) => {
      holder.close();
      await once(holder, 'close');
    }),
  );
  return ports;
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

/** As `freePorts`, for UDP. */
export async function freeUdpPorts(count: number): Promise<number[]> {
  const holders = Array.from({ length: count }, () => createSocket('udp4'));
  const ports: number[] = [];
  for (const holder of holders) {
    holder.bind(0, '127.0.0.1');
    await once(holder, 'listening');
    ports.push(holder.address().port);
  }
  await Promise.all(holders.map((holder) => new Promise<void>((resolve) => holder.close(() => resolve()))));
  return ports;
}
