import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ReadSockets, socketEvents } from '../../../test/fakes/read-sockets.ts';
import { selfSigned } from '../../../test/fakes/self-signed.ts';
import { loadAddon } from '../addon.ts';
import { Rest } from './socket-reader.ts';

const { addon: built } = loadAddon();

describe.each([
  { name: 'with the addon', addon: built },
  { name: 'without the addon', addon: null },
])('a socket reader $name', ({ addon }) => {
  let sockets: ReadSockets;
  beforeEach(() => {
    sockets = new ReadSockets(addon);
  });
  afterEach(() => {
    sockets.close();
  });

  it('passes on all bytes of several sockets that share its memory, in order', async () => {
    await sockets.listen();
    const ends = [await sockets.connect(), await sockets.connect()];
    const sent = ends.map((_end, index) => Buffer.alloc(1_000_000, `${index}abc`));
    for (const [index, { client }] of ends.entries()) client.write(sent[index] ?? '');
    for (const [index, { bytes }] of ends.entries()) {
      await expect.poll(() => bytes().length).toBe(1_000_000);
      expect(bytes().equals(sent[index] ?? Buffer.of())).toBe(true);
    }
  });

  it('reads nothing while the socket is paused', async () => {
    await sockets.listen();
    const { client, socket, bytes } = await sockets.connect();
    client.write('first');
    await expect.poll(() => bytes().toString()).toBe('first');
    socket.pause();
    client.write(' second');
    client.write(' third');
    // Data of another socket was sent later.
    const other = await sockets.connect();
    other.client.write('other');
    await expect.poll(() => other.bytes().toString()).toBe('other');
    expect(bytes().toString()).toBe('first');
    socket.resume();
    await expect.poll(() => bytes().toString()).toBe('first second third');
  });

  it('keeps addresses, writes, and the end of the connection', async () => {
    await sockets.listen();
    const { client, socket } = await sockets.connect();
    expect([socket.remotePort, socket.localPort]).toEqual([client.localPort, client.remotePort]);
    const ended = once(socket, 'end');
    const echoed = once(client, 'data');
    socket.write('hello');
    expect(String((await echoed)[0])).toBe('hello');
    client.end();
    await ended;
  });

  it('reports a reset, and the server forgets the socket', async () => {
    await sockets.listen();
    const { client, accepted, socket, bytes } = await sockets.connect();
    const told = socketEvents(socket);
    client.write('last words');
    await expect.poll(() => bytes().toString()).toBe('last words');
    client.resetAndDestroy();
    await expect.poll(() => told).toEqual(['ECONNRESET', 'close']);
    expect([socket.destroyed, accepted.destroyed]).toEqual([true, true]);
  });

  it('reports the end of the connection only after the data that waits during a pause', async () => {
    await sockets.listen();
    const { client, socket, bytes } = await sockets.connect();
    const told = socketEvents(socket);
    client.write('first');
    await expect.poll(() => bytes().toString()).toBe('first');
    socket.pause();
    client.end(' last');
    // Data of another socket was sent later.
    const other = await sockets.connect();
    other.client.write('other');
    await expect.poll(() => other.bytes().toString()).toBe('other');
    expect([bytes().toString(), told]).toEqual(['first', []]);
    socket.resume();
    await expect.poll(() => told).toEqual(['end', 'close']);
    expect(bytes().toString()).toBe('first last');
  });

  it('lets a socket be destroyed inside its callback, and reads nothing more from it', async () => {
    await sockets.listen();
    const taken = Promise.withResolvers<net.Socket>();
    let calls = 0;
    sockets.server.once('connection', (accepted: net.Socket) => {
      const socket = sockets.reader.adopt(accepted, () => {
        calls += 1;
        socket.destroy();
        return Rest.NONE;
      });
      taken.resolve(socket);
    });
    const client = net.connect(sockets.port, '127.0.0.1');
    sockets.clients.push(client);
    // The system answers data for a closed socket with a reset.
    client.on('error', () => undefined);
    const socket = await taken.promise;
    const told = socketEvents(socket);
    client.write(Buffer.alloc(2_000_000));
    await expect.poll(() => client.destroyed).toBe(true);
    await expect.poll(() => told).toEqual(['close']);
    expect(calls).toBe(1);
    // Other sockets that share its memory continue.
    const other = await sockets.connect();
    other.client.write('other');
    await expect.poll(() => other.bytes().toString()).toBe('other');
  });

  it('leaves TLS to Node.js, on the accepted socket', async () => {
    const tlsServer = tls.createServer(selfSigned('localhost')).listen(0, '127.0.0.1');
    sockets.server = tlsServer;
    await once(tlsServer, 'listening');
    const taken = Promise.withResolvers<{ accepted: net.Socket; socket: net.Socket }>();
    let received = '';
    tlsServer.once('secureConnection', (accepted) => {
      const socket = sockets.reader.adopt(accepted, (data, length) => {
        received += data.toString('latin1', 0, length);
        return Rest.LONG;
      });
      taken.resolve({ accepted, socket });
    });
    const client = tls.connect({ port: sockets.port, host: '127.0.0.1', rejectUnauthorized: false });
    sockets.clients.push(client);
    const { accepted, socket } = await taken.promise;
    expect(socket).toBe(accepted);
    const told = socketEvents(socket);
    client.write('over TLS');
    await expect.poll(() => received).toBe('over TLS');
    client.end();
    await expect.poll(() => told).toEqual(['end', 'close']);
  });

  it('does not affect counting and closing by the server', async () => {
    await sockets.listen();
    const count = (): Promise<number> =>
      new Promise((resolve, reject) => sockets.server.getConnections((error, open) => (error === null ? resolve(open) : reject(error))));
    const { accepted, socket } = await sockets.connect();
    const { client } = await sockets.connect();
    expect(await count()).toBe(2);
    socket.destroy();
    await expect.poll(count).toBe(1);
    expect(accepted.destroyed).toBe(true);
    const closed = once(sockets.server, 'close');
    sockets.server.close();
    client.destroy();
    await closed;
  });
});
