import { once } from 'node:events';
import { type AddressInfo, connect, createServer, Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { until } from '../../../../test/harness/poll.ts';
import { systemClock } from '../../../util/clock.ts';
import { StunType, serializeStun } from '../../../wire/stun/stun-message.ts';
import { DirectPipe } from './peer-pipe.ts';
import { admitStream, StreamGuests } from './peer-stream.ts';
import { PeerTransport } from './peer-transport.ts';
import { TurnRelay } from './turn-relay.ts';

const WAIT = { deadlineMs: 20_000, everyMs: 5 };

test('a connection that was reset before it was accepted is closed', () => {
  const stream = new Socket();
  const guests = new StreamGuests();
  expect(admitStream(stream, guests)).toBeNull();
  expect([stream.destroyed, guests.size, guests.turnedAway]).toEqual([true, 0, 0]);
});

test('connections of one address without a session are bounded, and free their place when they get one or close', async () => {
  const guests = new StreamGuests();
  const from = (host: string): Socket =>
    Object.defineProperties(new Socket(), { remoteAddress: { value: host }, remotePort: { value: 5000 } });
  const streams = Array.from({ length: 256 }, () => from('192.0.2.1'));
  for (const stream of streams) expect(admitStream(stream, guests)).toEqual({ host: '192.0.2.1', port: 5000 });
  const more = from('::ffff:192.0.2.1');
  expect([admitStream(more, guests), more.destroyed, guests.turnedAway]).toEqual([null, true, 1]);
  const other = from('192.0.2.2');
  expect(admitStream(other, guests)).not.toBeNull();
  const [settled, gone] = streams as [Socket, Socket, ...Socket[]];
  guests.leave(settled);
  guests.leave(settled);
  gone.destroy();
  await once(gone, 'close');
  const later = [from('192.0.2.1'), from('192.0.2.1'), from('192.0.2.1')];
  expect(later.map((stream) => admitStream(stream, guests) === null)).toEqual([false, false, true]);
  for (const stream of [...streams, other, ...later]) stream.destroy();
  await until('all connections are closed', () => guests.size === 0, WAIT);
});

test('a client of the relay that asks and never reads loses its connection', async () => {
  const options = { clock: systemClock, logger: new RecordingLogger() };
  const transport = await PeerTransport.open({ ports: [], tcp: false, threads: 1, ...options });
  const relay = await TurnRelay.open({ listen: [{ host: '127.0.0.1', port: 0 }], transport, ...options });
  const client = connect(relay.ports[0] ?? 0, '127.0.0.1');
  try {
    const request = serializeStun({ type: StunType.BINDING_REQUEST, transaction: Buffer.alloc(12), attributes: [], password: null });
    const many = Buffer.concat(Array.from({ length: 3000 }, () => request));
    let lost = false;
    client.on('error', () => undefined);
    const ask = (error?: Error | null): void => {
      if (error instanceof Error) lost = true;
      else client.write(many, ask);
    };
    client.pause();
    client.once('connect', () => ask());
    await until('the connection is lost', () => lost, WAIT);
  } finally {
    client.destroy();
    relay.close();
    await transport.close();
  }
});

test('a closed pipe sends its queue, and does not wait for the peer to close', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', allowHalfOpen: true });
  try {
    const [stream] = (await once(server, 'connection')) as [Socket];
    const pipe = new DirectPipe(stream, { host: '127.0.0.1', port: 1 });
    pipe.send(Buffer.from('goodbye'));
    pipe.end();
    await until('the connection is closed', () => stream.destroyed, WAIT);
    expect(((await once(client, 'data')) as [Buffer])[0].toString('latin1')).toBe('\0\x07goodbye');
  } finally {
    client.destroy();
    server.close();
  }
});

test('a closed pipe waits a limited time for a peer that does not read', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' });
  client.on('error', () => undefined).pause();
  try {
    const [stream] = (await once(server, 'connection')) as [Socket];
    const pipe = new DirectPipe(stream, { host: '127.0.0.1', port: 1 });
    // More than the kernel takes.
    pipe.sendFrames(Buffer.alloc(32 * 1024 * 1024));
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    pipe.end();
    pipe.end();
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(9999);
    expect(stream.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(stream.destroyed).toBe(true);
  } finally {
    vi.useRealTimers();
    client.destroy();
    server.close();
  }
});
