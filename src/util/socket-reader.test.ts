import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { SocketReader } from './socket-reader.ts';

interface Accepted {
  readonly accepted: net.Socket;
  readonly socket: net.Socket;
  readonly bytes: () => Buffer;
}

describe('a socket reader', () => {
  const reader = new SocketReader();
  const clients: net.Socket[] = [];
  let server: net.Server;

  /** Connects a client; resolves with both ends. */
  async function connect(): Promise<Accepted & { readonly client: net.Socket }> {
    const taken = Promise.withResolvers<Accepted>();
    server.once('connection', (accepted: net.Socket) => {
      let bytes = Buffer.alloc(0);
      const socket = reader.adopt(accepted, (data, length) => {
        bytes = Buffer.concat([bytes, data.subarray(0, length)]);
      });
      taken.resolve({ accepted, socket, bytes: () => bytes });
    });
    const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    clients.push(client);
    await once(client, 'connect');
    return { client, ...(await taken.promise) };
  }

  async function listen(): Promise<void> {
    server = net.createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
    await once(server, 'listening');
  }

  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    server.close();
    if (server.listening) await once(server, 'close');
  });

  it('hands over all bytes of several sockets that share its memory, in order', async () => {
    await listen();
    const ends = [await connect(), await connect()];
    const sent = ends.map((_end, index) => Buffer.alloc(1_000_000, `${index}abc`));
    for (const [index, { client }] of ends.entries()) client.write(sent[index] ?? '');
    for (const [index, { bytes }] of ends.entries()) {
      await expect.poll(() => bytes().length).toBe(1_000_000);
      expect(bytes().equals(sent[index] ?? Buffer.of())).toBe(true);
    }
  });

  it('reads nothing while the socket is paused', async () => {
    await listen();
    const { client, socket, bytes } = await connect();
    client.write('first');
    await expect.poll(() => bytes().toString()).toBe('first');
    socket.pause();
    client.write(' second');
    client.write(' third');
    // What another socket brings was sent later.
    const other = await connect();
    other.client.write('other');
    await expect.poll(() => other.bytes().toString()).toBe('other');
    expect(bytes().toString()).toBe('first');
    socket.resume();
    await expect.poll(() => bytes().toString()).toBe('first second third');
  });

  it('keeps addresses, writes, and the end of the connection', async () => {
    await listen();
    const { client, socket } = await connect();
    expect([socket.remotePort, socket.localPort]).toEqual([client.localPort, client.remotePort]);
    const ended = once(socket, 'end');
    const echoed = once(client, 'data');
    socket.write('hello');
    expect(String((await echoed)[0])).toBe('hello');
    client.end();
    await ended;
  });

  it('lets the server count and close as usual', async () => {
    await listen();
    const count = (): Promise<number> =>
      new Promise((resolve, reject) => server.getConnections((error, open) => (error === null ? resolve(open) : reject(error))));
    const { accepted, socket } = await connect();
    const { client } = await connect();
    expect(await count()).toBe(2);
    socket.destroy();
    await expect.poll(count).toBe(1);
    expect(accepted.destroyed).toBe(true);
    const closed = once(server, 'close');
    server.close();
    client.destroy();
    await closed;
  });
});
