/** Free TCP ports of the loopback interface. */
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
