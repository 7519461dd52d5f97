import { createSocket, type Socket } from 'node:dgram';
import { afterEach, expect, test, vi } from 'vitest';
import { parseStun, StunAttribute, StunType, serializeStun, xorMappedAddress } from '../../../wire/stun/stun-message.ts';
import { publicAddress } from './public-address.ts';

const sockets: Socket[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.close();
});

async function serve(answer: (transaction: Buffer) => Buffer | null, host = '127.0.0.1'): Promise<string> {
  const socket = createSocket(host === '::1' ? 'udp6' : 'udp4');
  sockets.push(socket);
  await new Promise<void>((resolve) => socket.bind(0, host, resolve));
  socket.on('message', (datagram, { port }) => {
    const reply = answer(parseStun(datagram).transaction);
    if (reply !== null) socket.send(reply, port, host);
  });
  return `${host === '::1' ? '[::1]' : host}:${socket.address().port}`;
}

test("the address is taken from the STUN server's answer, and garbage before it is ignored", async () => {
  let count = 0;
  const server = await serve((transaction) => {
    count += 1;
    if (count === 1) return Buffer.from('garbage');
    const attributes = [[StunAttribute.XOR_MAPPED_ADDRESS, xorMappedAddress('203.0.113.77', 4711, transaction)]] as const;
    return serializeStun({ type: StunType.BINDING_SUCCESS, transaction, attributes, password: null });
  });
  expect(await publicAddress(server)).toBe('203.0.113.77');
});

test('a silent server is asked four times and named', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  let asked = 0;
  const server = await serve(() => {
    asked += 1;
    vi.advanceTimersByTime(500);
    return null;
  });
  await expect(publicAddress(server)).rejects.toThrow(`the STUN server ${server} does not answer`);
  expect(asked).toBeGreaterThanOrEqual(4);
});

test('a server with an IPv6 address is asked over IPv6, and returns such an address', async () => {
  const server = await serve((transaction) => {
    const attributes = [[StunAttribute.XOR_MAPPED_ADDRESS, xorMappedAddress('2001:db8::77', 4711, transaction)]] as const;
    return serializeStun({ type: StunType.BINDING_SUCCESS, transaction, attributes, password: null });
  }, '::1');
  expect(server).toMatch(/^\[::1\]:\d+$/);
  expect(await publicAddress(server)).toBe('2001:db8::77');
});

test.each(['a:b', '[::1]:0', '[::1', 'host:70000', ''])('%j is refused as a server', async (server) => {
  await expect(publicAddress(server)).rejects.toThrow(`the STUN server '${server}' is not <host>[:<port>]`);
});

test('an unresolvable name is reported', async () => {
  await expect(publicAddress('nobody.invalid:3478')).rejects.toThrow('the STUN server nobody.invalid:3478 is not found');
});
