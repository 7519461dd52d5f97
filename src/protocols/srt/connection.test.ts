import { expect, test } from 'vitest';
import { type AgreedTerms, DEFAULT_CONNECTION_LIMITS, SrtConnection } from './connection.ts';

const TERMS: AgreedTerms = {
  ...{ socketId: 1, peerSocketId: 2, initialSequence: 100, peerInitialSequence: 200 },
  ...{ startedAt: 0, concludedAt: 0, peerTimestamp: 0, latency: 120_000, peerLatency: 120_000 },
  ...{ tooLateDrop: true, flowWindow: 8, keys: null },
};

test('whoever sends is told when that wants a tick, and what was due before stays so', () => {
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
  // Silence is looked after in a second; the first packet wants its acknowledgement sooner.
  expect(told[0]).toBeLessThan(1_000_000);
});
