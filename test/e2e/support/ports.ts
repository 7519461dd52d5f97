/** Free ports of the loopback interface. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/** Returns `count` ports that were free a moment ago: all are held open until the last one is known, so they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const holders = Array.from({ length: count }, () => createServer());
  const ports: number[] = [];
  for (const holder of holders) {
    holder.listen(0, '127.0.0.1');
    await once(holder, 'listening');
    ports.push((holder.address() as AddressInfo).port);
  }
  await Promise.all(
    holders.map(async (holder) => {
      holder.close();
      await once(holder, 'close');
    }),
  );
  return ports;
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
