import { expect, test } from 'vitest';
import { type AgreedTerms, DEFAULT_CONNECTION_LIMITS, SrtConnection } from './connection.ts';
import { serializeAck, serializeLightAck, serializeNak } from './control-packet.ts';
import { writeDataHeader } from './header.ts';

const TERMS: AgreedTerms = {
  ...{ socketId: 1, peerSocketId: 2, initialSequence: 100, peerInitialSequence: 200 },
  ...{ startedAt: 0, concludedAt: 0, peerTimestamp: 0, latency: 120_000, peerLatency: 120_000 },
  ...{ tooLateDrop: true, flowWindow: 8, keys: null },
};

test('send reports when it next needs a tick, and earlier due times stay', () => {
  const told: number[] = [];
  const events = { onData: () => undefined, onClosed: () => undefined, onDue: (at: number) => told.push(at) };
  const connection = new SrtConnection(TERMS, { send: () => undefined }, events, DEFAULT_CONNECTION_LIMITS);
  // Until the window is full and after it is; nothing is acknowledged.
  for (let count = 0; count < 20; count += 1) {
    const before = connection.dueAt;
    expect(connection.send(new Uint8Array(1316), 1000 * count)).toBe(true);
    expect(told.length).toBe(count + 1);
    expect(Math.min(before, told[count] ?? Number.NaN)).toBeLessThanOrEqual(connection.dueAt);
  }
  // Silence is checked within a second; the first packet must be acknowledged sooner.
  expect(told[0]).toBeLessThan(1_000_000);
});

test('receive reports when it next needs a tick, and earlier due times stay', () => {
  const events = { onData: () => undefined, onClosed: () => undefined };
  const connection = new SrtConnection(TERMS, { send: () => undefined }, events, DEFAULT_CONNECTION_LIMITS);
  const data = (sequence: number): Uint8Array => {
    const datagram = new Uint8Array(1332);
    writeDataHeader(datagram, 0, { sequence, message: 1, keyFlag: 0, timestamp: 1000 * sequence, destination: 1 });
    return datagram;
  };
  const address = { timestamp: 0, destination: 1 };
  const report = { rtt: 50_000, rttVariance: 1000, availableBuffer: 100, receiveRate: 0, linkCapacity: 0, receiveByteRate: 0 };
  const lost = [{ first: 101, last: 102 }];
  // A gap, the packet that fills it, an earlier packet, and a receiver's reports of sent packets.
  const datagrams = [
    ...[200, 201, 205, 203, 201, 204, 202].map(data),
    ...[serializeLightAck(101, address), serializeNak(lost, 1456, address), serializeAck(1, 104, report, address), Uint8Array.of(0x80)],
    ...[206, 300].map(data),
  ];
  for (let count = 0; count < 8; count += 1) connection.send(new Uint8Array(1316), 0);
  for (const [index, datagram] of datagrams.entries()) {
    const before = connection.dueAt;
    const told = connection.receive(datagram, 1000 * index);
    expect(Math.min(before, told)).toBeLessThanOrEqual(connection.dueAt);
  }
  expect(connection.malformed).toBe(1);
  connection.close('done', 20_000);
  expect(connection.receive(data(301), 20_000)).toBe(Number.POSITIVE_INFINITY);
});
