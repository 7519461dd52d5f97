/** How much a socket that rests may bring, and how often it is read. */
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../../../test/harness/poll.ts';
import { loadAddon } from '../addon.ts';
import { Rest, SocketReader } from './socket-reader.ts';

const { addon } = loadAddon();

/** A client and the bytes of each read at the server's end; every read returns `rest`. */
async function connection(reader: SocketReader, rest: () => Rest): Promise<{ client: net.Socket; socket: net.Socket; reads: number[] }> {
  const server = net.createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  const [accepted] = (await once(server, 'connection')) as [net.Socket];
  const reads: number[] = [];
  const socket = reader.adopt(accepted, (_data, length) => {
    reads.push(length);
    return rest();
  });
  return { client, socket, reads };
}

test.skipIf(addon === null)(
  'a socket is read at once again after the first large read, and rests after the next of that size',
  async () => {
    const reader = new SocketReader();
    const { client, reads } = await connection(reader, () => Rest.LONGEST);
    const write = (length: number) => new Promise<void>((resolve) => client.write(Buffer.alloc(length), () => resolve()));
    /** Data sent earlier has arrived once another connection has received data. */
    const others = async (): Promise<void> => {
      const other = await connection(reader, () => Rest.NONE);
      other.client.write('other');
      await until('the read of the other socket', () => other.reads.length === 1, { everyMs: 5 });
    };
    await write(5);
    await until('the first read', () => reads.length === 1, { everyMs: 5 });
    await write(60_000);
    await others();
    reader.sweep();
    expect(reads).toEqual([5, 60_000]);
    await write(6);
    await until('the peer is read at once', () => reads.at(-1) === 6, { everyMs: 5 });
    await write(60_000);
    await others();
    reader.sweep();
    expect(reads).toEqual([5, 60_000, 6, 60_000]);
    await write(7);
    await others();
    expect(reads).toHaveLength(4);
    reader.sweep();
    expect(reads.at(-1)).toBe(7);
  },
);

test('sockets that only rest the longest are read half as often as others', async () => {
  const reader = new SocketReader();
  let rest: Rest = Rest.LONGEST;
  const [one, other] = [await connection(reader, () => rest), await connection(reader, () => Rest.LONGEST)];
  const read = async ({ client, reads }: typeof one): Promise<void> => {
    const before = reads.length;
    client.write('more');
    const come = (): boolean => {
      reader.sweep();
      return reads.length > before;
    };
    await until('a read of this socket', come, { everyMs: 5 });
  };
  await read(one);
  await read(other);
  expect(reader.sweepInterval).toBe(200);
  for (const sooner of [Rest.LONG, Rest.SHORT]) {
    rest = sooner;
    await read(one);
    expect(reader.sweepInterval).toBe(100);
    rest = Rest.LONGEST;
    await read(one);
    expect(reader.sweepInterval).toBe(200);
  }
  rest = Rest.LONG;
  await read(one);
  one.socket.destroy();
  await until('the sweep interval without the closed socket', () => reader.sweepInterval === 200, { everyMs: 5 });
});
