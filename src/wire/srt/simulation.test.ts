import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  CALLER,
  LISTENER,
  type LinkFaults,
  numbered,
  numbersOf,
  type RecordingSession,
  SimulatedLink,
} from '../../../test/fakes/srt-link.ts';
import type { SrtConnection } from './connection.ts';
import { serializeAck, serializeDropRequest, serializeNak, serializeShutdown, serializeUserDefined } from './control-packet.ts';
import { ExtensionType, HandshakeType, serializeHandshake } from './handshake.ts';
import { RejectionCode } from './rejection.ts';
import { handshakeWith } from './terms.ts';

const GOOD: LinkFaults = { loss: 0, delay: 20_000, jitter: 0 };
/** The link of the acceptance test: 10 % loss and 50 ± 30 ms each way, so a round trip of 100 ms. */
const BAD: LinkFaults = { loss: 0.1, delay: 50_000, jitter: 30_000, duplication: 0.02 };
const FOUR_ROUND_TRIPS = { receive: 400, peer: 400 };
const PASSPHRASE = 'correct horse battery';
/** Longer than any latency here, µs. */
const SETTLE = 3_000_000;
const NUMBERS = (count: number): number[] => Array.from({ length: count }, (_unused, index) => index);

/** Opens a connection; fails the test when that does not work. */
function open(link: SimulatedLink, call: Parameters<SimulatedLink['call']>[0] = {}): { ours: RecordingSession; theirs: RecordingSession } {
  const { session, failure } = link.call({ timeout: 20_000_000, ...call });
  for (let step = 0; step < 200 && session.connection === null && failure() === null; step += 1) link.run(100_000);
  expect(failure()).toBeNull();
  const theirs = link.accepted.at(-1);
  if (session.connection === null || theirs === undefined) throw new Error('the call led nowhere');
  return { ours: session, theirs };
}

function connectionOf(session: RecordingSession): SrtConnection {
  if (session.connection === null) throw new Error('not connected');
  return session.connection;
}

/** Sends `count` payloads, two in every tick: about 4 Mbit/s. */
function stream(link: SimulatedLink, from: RecordingSession, count: number): void {
  let sent = 0;
  const connection = connectionOf(from);
  link.run((count / 2 + 1) * 5000, (now) => {
    for (let index = 0; index < 2 && sent < count; index += 1) {
      expect(connection.send(numbered(sent), now)).toBe(true);
      sent += 1;
    }
  });
  link.run(SETTLE);
}

describe('a connection over a bad link', () => {
  test.each([1, 2, 3, 4, 5])('loses no packet at a latency of four round trips, in either direction (seed %i)', (seed) => {
    for (const direction of ['to the listener', 'to the caller']) {
      const link = new SimulatedLink({ faults: BAD, seed });
      const { ours, theirs } = open(link, { latency: FOUR_ROUND_TRIPS });
      const [from, to] = direction === 'to the listener' ? [ours, theirs] : [theirs, ours];
      stream(link, from, 1500);
      expect(numbersOf(to.received), direction).toEqual(NUMBERS(1500));
      const { sender } = connectionOf(from).statistics;
      const { receiver, rtt } = connectionOf(to).statistics;
      expect(sender.packetsRetransmitted).toBeGreaterThan(100);
      expect(receiver).toMatchObject({ packetsDelivered: 1500, packetsDroppedLate: 0 });
      expect(rtt).toBeGreaterThan(60);
      expect(rtt).toBeLessThan(160);
    }
  });

  test('loses nothing when it is encrypted and the keys change', () => {
    const refresh = { every: 300, announceBefore: 100 };
    for (const keyLength of [16, 24, 32] as const) {
      const link = new SimulatedLink({
        faults: BAD,
        seed: keyLength,
        policy: { passphrase: () => PASSPHRASE },
        listener: { keyRefresh: refresh },
      });
      const { ours, theirs } = open(link, { latency: FOUR_ROUND_TRIPS, passphrase: PASSPHRASE, keyLength, keyRefresh: refresh });
      stream(link, ours, 1200);
      stream(link, theirs, 1200);
      expect(numbersOf(theirs.received)).toEqual(NUMBERS(1200));
      expect(numbersOf(ours.received)).toEqual(NUMBERS(1200));
      for (const session of [ours, theirs]) expect(connectionOf(session).terms.keys?.changes).toBeGreaterThanOrEqual(2);
      expect(connectionOf(theirs).statistics.receiver.packetsUndecryptable).toBe(0);
    }
  });

  test('loses nothing when the next key arrives before the last packets of the key it replaces', () => {
    const refresh = { every: 300, announceBefore: 200 };
    const link = new SimulatedLink({ faults: BAD, seed: 1, policy: { passphrase: () => PASSPHRASE } });
    const { ours, theirs } = open(link, { latency: { receive: 700, peer: 700 }, passphrase: PASSPHRASE, keyRefresh: refresh });
    let sent = 0;
    link.run(1_000_000, (now) => {
      for (let index = 0; index < 20; index += 1) connectionOf(ours).send(numbered(sent + index), now);
      sent += 20;
    });
    link.run(SETTLE);
    expect(numbersOf(theirs.received)).toEqual(NUMBERS(sent));
    expect(connectionOf(ours).terms.keys?.changes).toBeGreaterThanOrEqual(4);
    expect(connectionOf(theirs).statistics.receiver).toMatchObject({ packetsDroppedLate: 0, packetsUndecryptable: 0 });
  });

  test.each([
    ['loses nothing when a key arrives after its first packets', true],
    ['drops packets whose keys never arrive', false],
  ])('%s', (_name, comes) => {
    let announced: Uint8Array | null = null;
    const drops = (datagram: Uint8Array, towardsListener: boolean): boolean => {
      const isAnnouncement = towardsListener && datagram[0] === 0xff && datagram[3] === ExtensionType.KEY_REQUEST;
      if (isAnnouncement) announced = datagram;
      return isAnnouncement;
    };
    const link = new SimulatedLink({ faults: { ...GOOD, drops }, seed: 1, policy: { passphrase: () => PASSPHRASE } });
    const refresh = { every: 100, announceBefore: 50 };
    const { ours, theirs } = open(link, { latency: FOUR_ROUND_TRIPS, passphrase: PASSPHRASE, keyRefresh: refresh });
    const connection = connectionOf(ours);
    const { socketId } = connection.terms;
    let sent = 0;
    link.run(3_000_000, (now) => {
      connection.send(numbered(sent), now);
      sent += 1;
      if (announced === null) return;
      // The caller takes its keys for confirmed, so it changes to them.
      const answer = serializeUserDefined(ExtensionType.KEY_RESPONSE, announced.subarray(16), { timestamp: 0, destination: socketId });
      link.inject(answer, LISTENER, false);
      if (comes && sent % 100 === 20) link.inject(Buffer.from(announced), CALLER, true);
    });
    link.run(SETTLE);
    const read = comes ? sent : 100;
    expect(numbersOf(theirs.received)).toEqual(NUMBERS(read));
    expect(connection.terms.keys?.changes).toBeGreaterThanOrEqual(4);
    expect(connectionOf(theirs).statistics.receiver).toMatchObject({ packetsDroppedLate: 0, packetsUndecryptable: sent - read });
  });

  test('drops late packets, delivers the rest in order and counts both', () => {
    const link = new SimulatedLink({ faults: { loss: 0.2, delay: 150_000, jitter: 0 }, seed: 7 });
    const { ours, theirs } = open(link, { latency: { receive: 120, peer: 120 } });
    stream(link, ours, 1000);
    const numbers = numbersOf(theirs.received);
    const { receiver } = connectionOf(theirs).statistics;
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(receiver.packetsDroppedLate).toBeGreaterThan(100);
    expect(receiver.packetsDelivered).toBe(numbers.length);
    expect(receiver.packetsDelivered + receiver.packetsDroppedLate).toBe(1000);
  });

  test('continues after an outage longer than its buffer', () => {
    let cut = false;
    const faults = { ...GOOD, drops: () => cut };
    const link = new SimulatedLink({ faults, seed: 1, listener: { connectionLimits: { receiveBuffer: 256 } } });
    const { ours, theirs } = open(link);
    const connection = connectionOf(ours);
    let sent = 0;
    const send = (now: number): void => {
      connection.send(numbered(sent), now);
      sent += 1;
    };
    link.run(500_000, send);
    cut = true;
    link.run(4_000_000, send);
    cut = false;
    const resumed = sent;
    link.run(5_000_000, send);
    link.run(SETTLE);
    const numbers = numbersOf(theirs.received);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    // Packets sent a second before the end of the outage, or later, are still worth repairing; none of them may be missing.
    expect(numbers.filter((number) => number >= resumed + 300)).toEqual(NUMBERS(sent).slice(resumed + 300));
    expect(ours.closed).toBeNull();
  });

  test('repairs the lost end of a burst', () => {
    let dropping = false;
    const faults = { ...GOOD, drops: (datagram: Uint8Array, towards: boolean) => dropping && towards && (datagram[0] ?? 0) < 0x80 };
    const link = new SimulatedLink({ faults, seed: 1 });
    const { ours, theirs } = open(link, { latency: { receive: 900, peer: 900 } });
    dropping = true;
    for (let index = 0; index < 5; index += 1) connectionOf(ours).send(numbered(index), link.now);
    link.run(10_000);
    dropping = false;
    link.run(SETTLE);
    expect(numbersOf(theirs.received)).toEqual(NUMBERS(5));
  });
});

describe('time', () => {
  test('a payload is delivered one latency after it was sent, not sooner', () => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1 });
    const { ours, theirs } = open(link, { latency: { receive: 0, peer: 300 } });
    connectionOf(ours).send(numbered(0), link.now);
    link.run(290_000);
    expect(theirs.received).toHaveLength(0);
    link.run(60_000);
    expect(theirs.received).toHaveLength(1);
  });

  test('packets sent at once leave at the pace of INPUTBW and OHEADBW', () => {
    // 100 packets per second and a quarter more.
    const bandwidth = { maximum: 0, input: 100 * 1360, overhead: 25 };
    const link = new SimulatedLink({ faults: GOOD, seed: 1, listener: { connectionLimits: { bandwidth } } });
    const { ours, theirs } = open(link, { latency: { receive: 3000, peer: 0 } });
    for (let index = 0; index < 200; index += 1) connectionOf(theirs).send(numbered(index), link.now);
    link.run(800_000);
    const { packetsSent } = connectionOf(theirs).statistics.sender;
    expect(packetsSent).toBeGreaterThanOrEqual(95);
    expect(packetsSent).toBeLessThanOrEqual(105);
    link.run(2 * SETTLE);
    expect(numbersOf(ours.received)).toEqual(NUMBERS(200));
  });

  test('the larger latency of both sides counts, for each direction', () => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1, listener: { latency: { receive: 200, peer: 700 } } });
    const { ours, theirs } = open(link, { latency: { receive: 500, peer: 100 } });
    expect(connectionOf(ours).terms).toMatchObject({ latency: 700_000, peerLatency: 200_000 });
    expect(connectionOf(theirs).terms).toMatchObject({ latency: 200_000, peerLatency: 700_000 });
  });

  test('an idle connection survives by keep-alives; with a silent peer it ends after the idle timeout', () => {
    let cut = false;
    const link = new SimulatedLink({ faults: { ...GOOD, drops: () => cut }, seed: 1 });
    const { ours, theirs } = open(link);
    link.run(30_000_000);
    expect([ours.closed, theirs.closed]).toEqual([null, null]);
    cut = true;
    link.run(5_100_000);
    expect(ours.closed?.code).toBe('timeout');
    expect(theirs.closed?.code).toBe('timeout');
    expect([link.caller.connections, link.listener.connections]).toEqual([0, 0]);
  });

  test('sequence numbers and timestamps wrap without a trace', () => {
    const link = new SimulatedLink({ faults: { loss: 0.05, delay: 20_000, jitter: 5000 }, seed: 3 });
    // 71 minutes and 34 seconds of idling bring the 32 bits of the timestamp to their end in the middle of the stream.
    const { ours, theirs } = open(link, { latency: FOUR_ROUND_TRIPS });
    link.run(2 ** 32 - (link.now - 1_000_000) - 1_000_000);
    stream(link, ours, 800);
    expect(numbersOf(theirs.received)).toEqual(NUMBERS(800));
  }, 120_000);
});

describe('handshakes', () => {
  test('succeed over a lossy link with the same terms', () => {
    for (let seed = 0; seed < 20; seed += 1) {
      const link = new SimulatedLink({ faults: { loss: 0.4, delay: 30_000, jitter: 10_000, duplication: 0.2 }, seed });
      const { ours, theirs } = open(link, { streamId: 'default/app/straße' });
      expect(ours.closed).toBeNull();
      expect(theirs.connection?.terms.peerSocketId).toBe(ours.connection?.terms.socketId);
      expect(link.accepted).toHaveLength(1);
    }
  });

  test.each([
    ['another passphrase', 'another passphrase', PASSPHRASE, RejectionCode.BAD_SECRET],
    ['no passphrase', null, PASSPHRASE, RejectionCode.UNSECURE],
    ['a passphrase where none is wanted', PASSPHRASE, null, RejectionCode.UNSECURE],
  ])('%s is refused with its code', (_name, passphrase, expected, code) => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1, policy: { passphrase: () => expected } });
    const { failure } = link.call({ passphrase });
    link.run(500_000);
    expect(failure()?.code).toBe(code);
    expect(link.accepted).toHaveLength(0);
    expect(link.listener).toMatchObject({ connections: 0, busy: false, counters: { refused: 1 } });
  });

  test.each([
    [null, 32, 32],
    [24, 32, 24],
    [null, null, 16],
  ] as const)('a caller that wants keys of %j bytes, and a listener that proposes %j, agree on %i', (keyLength, proposed, expected) => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1, policy: { passphrase: () => PASSPHRASE }, listener: { keyLength: proposed } });
    const { ours, theirs } = open(link, { passphrase: PASSPHRASE, keyLength });
    expect([ours, theirs].map((session) => connectionOf(session).terms.keys?.keyLength)).toEqual([expected, expected]);
  });

  test('a refusal of the policy reaches the caller', () => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1, policy: { open: () => RejectionCode.CONFLICT } });
    const { failure } = link.call();
    link.run(500_000);
    expect(failure()).toMatchObject({ code: 1409, message: 'refused by the listener: conflict (1409)' });
  });

  test('a caller that does not return its cookie takes no memory', () => {
    const link = new SimulatedLink({ faults: { ...GOOD, drops: (_datagram, towards) => !towards }, seed: 1 });
    for (let index = 0; index < 100; index += 1) link.call();
    link.run(1_000_000);
    expect(link.listener).toMatchObject({ connections: 0, busy: false });
    expect(link.accepted).toHaveLength(0);
  });

  test('connections beyond the limit are refused, and a freed place is used again', () => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1, listener: { maxConnections: 2 } });
    open(link);
    const { ours } = open(link);
    const third = link.call();
    link.run(500_000);
    expect(third.failure()?.code).toBe(RejectionCode.RESOURCE);
    connectionOf(ours).close('enough', link.now);
    link.run(200_000);
    open(link);
    expect(link.listener.connections).toBe(2);
  });

  test('passphrase trials beyond the budget are deferred to a repeated request', () => {
    const link = new SimulatedLink({
      faults: GOOD,
      seed: 1,
      policy: { passphrase: () => PASSPHRASE },
      listener: { maxKeyTrialsPerSecond: 2 },
    });
    const calls = Array.from({ length: 5 }, () => link.call({ passphrase: PASSPHRASE }));
    link.run(200_000);
    expect(link.accepted).toHaveLength(2);
    expect(link.listener.counters.deferred).toBe(3);
    link.run(2_700_000);
    expect(calls.map(({ failure }) => failure())).toEqual([null, null, null, null, null]);
    expect(link.accepted).toHaveLength(5);
  });
});

describe('the end', () => {
  test('a shutdown reaches the peer, which still delivers the packets it had received', () => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1 });
    const { ours, theirs } = open(link, { latency: { receive: 120, peer: 2000 } });
    for (let index = 0; index < 10; index += 1) connectionOf(ours).send(numbered(index), link.now);
    connectionOf(ours).close('done', link.now);
    connectionOf(ours).close('done again', link.now);
    link.run(100_000);
    expect(ours.closed).toEqual({ code: 'closed', detail: 'done' });
    expect(theirs.closed?.code).toBe('peer-left');
    expect(numbersOf(theirs.received)).toEqual(NUMBERS(10));
    expect(connectionOf(ours).send(numbered(0), link.now)).toBe(false);
  });

  test('another address cannot end a connection or put data into it', () => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1 });
    const { theirs } = open(link);
    const shutdown = serializeShutdown({ timestamp: 0, destination: connectionOf(theirs).terms.socketId });
    link.inject(shutdown, { ...CALLER, port: CALLER.port + 1 }, true);
    link.inject(shutdown, LISTENER, true);
    expect(theirs.closed).toBeNull();
    expect(link.listener.counters.stray).toBe(2);
  });
});

describe('a hostile peer', () => {
  test('absurd acknowledgements, loss reports and drop requests do no harm', () => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1 });
    const { ours, theirs } = open(link);
    const { socketId, initialSequence } = connectionOf(theirs).terms;
    const address = { timestamp: 0, destination: socketId };
    const report = { rtt: 0, rttVariance: 0, availableBuffer: 0, receiveRate: 0, linkCapacity: 0, receiveByteRate: 0 };
    for (const offset of [0, 1, 5000, 2 ** 29, 2 ** 30, 2 ** 31 - 1]) {
      const sequence = (initialSequence + offset) & 0x7f_ff_ff_ff;
      link.inject(serializeAck(1, sequence, report, address), CALLER, true);
      link.inject(serializeNak([{ first: sequence, last: (sequence + 2 ** 29) & 0x7f_ff_ff_ff }], 1456, address), CALLER, true);
      link.inject(serializeDropRequest(0, { first: sequence, last: initialSequence }, address), CALLER, true);
    }
    stream(link, theirs, 50);
    expect(numbersOf(ours.received)).toEqual(NUMBERS(50));
  });

  test('overlapping and repeated ranges of a NAK count once, an oversized range is ignored', () => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1 });
    const { theirs } = open(link);
    const connection = connectionOf(theirs);
    const { socketId, initialSequence } = connection.terms;
    const address = { timestamp: 0, destination: socketId };
    for (let index = 0; index < 100; index += 1) {
      connection.send(numbered(index), link.now);
      link.run(1000);
    }
    const { packetsSent } = connection.statistics.sender;
    const first = connection.terms.initialSequence + packetsSent - connection.sendBacklog;
    const all = { first, last: initialSequence + packetsSent - 1 };
    const count = all.last - all.first + 1;
    expect(count).toBeGreaterThan(10);
    const overlapping = Array.from({ length: 180 }, (_unused, index) => ({ ...all, first: first + (index % 10) }));
    link.inject(serializeNak(overlapping, 1456, address), CALLER, true);
    expect(connection.statistics.sender.packetsReportedLost).toBe(count);
    link.inject(serializeNak([...overlapping, ...overlapping], 1464, address), CALLER, true);
    expect(connection.malformed).toBe(1);
    // The packets are long gone, in many ranges: one answer suffices.
    link.run(SETTLE);
    const before = link.sent;
    const gone = Array.from({ length: 5 }, (_unused, index) => ({ first: initialSequence + 2 * index, last: initialSequence + 2 * index }));
    link.inject(serializeNak(gone, 1456, address), CALLER, true);
    expect(link.sent).toBe(before + 1);
  });

  test('an induction from port 0 gets no answer', () => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1 });
    const induction = handshakeWith({ type: HandshakeType.INDUCTION, socketId: 7, cookie: 0, initialSequence: 1 });
    const datagram = serializeHandshake(induction, { destination: 0, timestamp: 0, peer: CALLER.address });
    link.inject(datagram, { ...CALLER, port: 0 }, true);
    expect(link.sent).toBe(0);
    expect(link.listener.counters.stray).toBe(1);
    link.inject(datagram, CALLER, true);
    expect(link.sent).toBe(1);
  });

  test('arbitrary datagrams from the right address are handled or ignored, and later callers get in', () => {
    const kinds = fc.constantFrom(0x80_00_00_00, 0x80_01_00_00, 0x80_02_00_00, 0x80_03_00_00, 0x80_06_00_00, 0x80_07_00_00, 0xff_ff_00_03);
    const datagrams = fc.array(
      fc.record({
        head: fc.oneof(kinds, fc.nat(2 ** 32 - 1)),
        near: fc.integer({ min: -10_000, max: 10_000 }),
        isData: fc.boolean(),
        body: fc.uint8Array({ maxLength: 80 }),
      }),
      { minLength: 1, maxLength: 60 },
    );
    fc.assert(
      fc.property(datagrams, fc.boolean(), (hostile, encrypted) => {
        const secret = encrypted ? PASSPHRASE : null;
        const link = new SimulatedLink({ faults: GOOD, seed: 1, policy: { passphrase: () => secret } });
        const { theirs } = open(link, { passphrase: secret });
        const victim = connectionOf(theirs);
        for (const { head, near, isData, body } of hostile) {
          const datagram = Buffer.concat([Buffer.alloc(16), body]);
          const sequence = (victim.terms.peerInitialSequence + near) & 0x7f_ff_ff_ff;
          datagram.writeUInt32BE(isData ? sequence : head, 0);
          datagram.writeUInt32BE(head, isData ? 4 : 8);
          datagram.writeUInt32BE(victim.terms.socketId, 12);
          link.inject(datagram, CALLER, true);
          link.run(10_000);
        }
        const { ours } = open(link, { passphrase: secret });
        stream(link, ours, 10);
        expect(numbersOf(link.accepted.at(-1)?.received ?? [])).toEqual(NUMBERS(10));
      }),
      { numRuns: 60 },
    );
  });

  test('a window of zero packets slows the sender to one packet at a time, and late packets are dropped and counted', () => {
    const link = new SimulatedLink({ faults: GOOD, seed: 1, listener: { connectionLimits: { sendBuffer: 256 } } });
    const { theirs } = open(link);
    const connection = connectionOf(theirs);
    const { socketId, initialSequence } = connection.terms;
    const report = { rtt: 0, rttVariance: 0, availableBuffer: 0, receiveRate: 0, linkCapacity: 0, receiveByteRate: 0 };
    link.inject(serializeAck(1, initialSequence, report, { timestamp: 0, destination: socketId }), CALLER, true);
    let refused = 0;
    for (let index = 0; index < 300; index += 1) refused += connection.send(numbered(index), link.now) ? 0 : 1;
    expect(refused).toBe(44);
    expect(connection.sendBacklog).toBe(256);
    link.run(SETTLE);
    const { sender } = connection.statistics;
    expect(sender.packetsRefused).toBe(44);
    expect(connection.sendBacklog).toBe(0);
    expect(sender.packetsSent + sender.packetsDroppedLate).toBeGreaterThanOrEqual(256);
  });
});
