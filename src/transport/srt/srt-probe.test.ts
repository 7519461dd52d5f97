import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../util/clock.ts';
import { HANDSHAKE_V5, HandshakeType, parseHandshake, SRT_MAGIC, serializeHandshake } from '../../wire/srt/handshake.ts';
import { probeSrt } from './srt-probe.ts';

/** A peer on a UDP port; `answer` returns the datagrams for the `n`-th request, from 0 on. */
async function peer(answer: (request: Uint8Array, n: number) => readonly Uint8Array[]): Promise<number> {
  const socket = createSocket('udp4');
  let count = 0;
  socket.on('message', (request, { address, port }) => {
    for (const datagram of answer(request, count)) socket.send(datagram, port, address);
    count += 1;
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  return (socket.address() as AddressInfo).port;
}

/** An SRT listener's answer to an induction. */
function inductionAnswer(request: Uint8Array): Uint8Array {
  const asked = parseHandshake(request);
  const told = { ...asked, version: HANDSHAKE_V5, extensionField: SRT_MAGIC, cookie: 7 };
  return serializeHandshake(told, { destination: asked.socketId, timestamp: 0, peer: '127.0.0.1' });
}

const options = { host: '127.0.0.1', timeout: 2000, clock: systemClock };

test('an SRT listener answers, and the probe sends no conclusion', async () => {
  const types: number[] = [];
  const port = await peer((request) => {
    types.push(parseHandshake(request).type);
    return [inductionAnswer(request)];
  });
  expect(await probeSrt({ ...options, port })).toBeGreaterThanOrEqual(0);
  expect(types).toEqual([HandshakeType.INDUCTION]);
});

test('a lost request is repeated', async () => {
  const port = await peer((request, n) => (n < 2 ? [] : [inductionAnswer(request)]));
  expect(await probeSrt({ ...options, port })).toBeGreaterThan(400);
});

test('an answer in time counts even when the process was too busy to read it', async () => {
  const port = await peer((request) => {
    // After the answer, which is sent first.
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500));
    return [inductionAnswer(request)];
  });
  expect(await probeSrt({ ...options, port, timeout: 200 })).toBeGreaterThan(200);
});

test('returns null for silence, a closed port, another protocol and a truncated handshake', async () => {
  const garbage = await peer((request) => [Buffer.from('hello'), request.slice(0, 20), request]);
  expect(await probeSrt({ ...options, port: garbage, timeout: 400 })).toBeNull();
  const port = await peer(() => []);
  expect(await probeSrt({ ...options, port, timeout: 300 })).toBeNull();
  const closed = createSocket('udp4').bind(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port: free } = closed.address();
  closed.close();
  await once(closed, 'close');
  expect(await probeSrt({ ...options, port: free })).toBeNull();
});
