/** SRT: handshakes, control packets, keys, stream ids, and live connections with arbitrary packets of a peer. */
import { parseAccessControl } from '../../../src/wire/srt/access-control.ts';
import { readConclusion } from '../../../src/wire/srt/conclusion.ts';
import { parseControlPacket } from '../../../src/wire/srt/control-packet.ts';
import { ExtensionType, type Handshake, HandshakeType, parseHandshake, serializeHandshake } from '../../../src/wire/srt/handshake.ts';
import { writeDataHeader } from '../../../src/wire/srt/header.ts';
import { parseKeyMaterial } from '../../../src/wire/srt/key-material.ts';
import type { CallPolicy } from '../../../src/wire/srt/multiplexer.ts';
import { SessionKeys } from '../../../src/wire/srt/session-keys.ts';
import { parseStreamId } from '../../../src/wire/srt/stream-id.ts';
import { CALLER, LISTENER, numbered, numbersOf, type RecordingSession, SimulatedLink } from '../../fakes/srt-link.ts';
import { SRT_ABILITIES, SRT_CONTROL, SRT_PASSPHRASE, srtConclusion } from '../../fakes/srt-packets.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { joinPackets, splitPackets } from '../support/packets.ts';

const GOOD = { loss: 0, delay: 1000, jitter: 0 };
const ADDRESS = { timestamp: 5000, destination: 1 };
/** Offsets of the destination in every packet, and of the cookie in a handshake. */
const DESTINATION_AT = 12;
const COOKIE_AT = 16 + 28;
const HEADER = 16;

const CONTROL = Object.values(SRT_CONTROL).map(({ bytes }) => bytes);

function data(sequence: number, keyFlag: 0 | 1 | 2 = 0): Uint8Array {
  const packet = new Uint8Array(HEADER + 188).fill(0x47);
  writeDataHeader(packet, 0, { sequence, message: 1 + sequence, keyFlag, ...ADDRESS });
  return packet;
}

/** The sender of the handshake fills in the cookie. */
function conclusion(fields: Partial<Handshake> = {}): Uint8Array {
  return serializeHandshake(srtConclusion({ cookie: 0, ...fields }), { destination: 0, timestamp: 5, peer: '127.0.0.1' });
}

const INDUCTION = (): Uint8Array => conclusion({ type: HandshakeType.INDUCTION, version: 4, extensions: [] });
const ENCRYPTED = (): Uint8Array =>
  conclusion({
    encryption: 2,
    extensionField: 7,
    extensions: [SRT_ABILITIES, { type: ExtensionType.KEY_REQUEST, content: SessionKeys.generate(SRT_PASSPHRASE, 16).message() }],
  });

const STREAM_IDS = [
  'default/app/stream',
  'srt://host:9999/app/stream?policy=1',
  '#!::u=admin,r=live/one,m=publish',
  '#!::h=x,s=%20,t=stream',
  '#default#app/s',
];

function opened(encrypted: boolean): { link: SimulatedLink; ours: RecordingSession; theirs: RecordingSession } {
  const policy: Partial<CallPolicy> = { passphrase: () => (encrypted ? SRT_PASSPHRASE : null) };
  const link = new SimulatedLink({ faults: GOOD, seed: 1, policy });
  const { session } = link.call({ passphrase: encrypted ? SRT_PASSPHRASE : null, keyLength: 16, latency: { receive: 20, peer: 20 } });
  link.run(20_000);
  const theirs = link.accepted[0];
  if (session.connection === null || theirs === undefined) throw new Error('the call led nowhere');
  return { link, ours: session, theirs };
}

/** A live connection that gets the packets from its peer, or from an attacker that forges the peer's address. */
function connection(name: string, encrypted: boolean): FuzzTarget {
  return {
    name,
    form: 'packets',
    seeds: () => [
      joinPackets([...CONTROL.filter((bytes) => bytes !== SRT_CONTROL.shutdown.bytes), data(0), data(1), data(5, 1), data(6, 2)]),
      joinPackets(Array.from({ length: 40 }, (_, at) => data(at * 3))),
      joinPackets([data(0), SRT_CONTROL['drop request'].bytes, data(2000), SRT_CONTROL['loss report'].bytes]),
      joinPackets(CONTROL),
    ],
    run: (input) => {
      const { link, ours, theirs } = opened(encrypted);
      const connected = ours.connection!;
      const { socketId } = theirs.connection!.terms;
      const first = connected.terms.initialSequence;
      const before = link.sent;
      for (let at = 0; at < 20; at += 1) {
        connected.send(numbered(at, 64), link.now);
        theirs.connection!.send(numbered(at, 64), link.now);
      }
      const packets = splitPackets(input);
      for (const packet of packets) {
        // Session numbers are random: the destination is filled in, and sequence numbers count from the session's first.
        if (packet.length >= HEADER) Buffer.from(packet.buffer).writeUInt32BE(socketId, DESTINATION_AT);
        const isData = ((packet[0] ?? 0) & 0x80) === 0;
        if (packet.length >= 4) {
          const view = Buffer.from(packet.buffer);
          if (isData) view.writeUInt32BE((first + (view.readUInt32BE(0) & 0xffff)) & 0x7fff_ffff, 0);
        }
        link.inject(packet, CALLER, true);
        link.run(2000);
      }
      link.run(300_000);
      const closed = theirs.closed !== null;
      if (!closed && theirs.connection!.closed) throw new Error('closed without a word');
      for (const number of numbersOf(ours.received)) if (number < -1) throw new Error('a wrong payload');
      connected.close('enough', link.now);
      link.run(20_000);
      return link.sent - before;
    },
    // Keep-alives, acknowledgements and retransmissions of the elapsed time, and the answers to each packet.
    most: (length) => 4000 + 8 * length,
    cost: 20,
  };
}

export const SRT_TARGETS: readonly FuzzTarget[] = [
  {
    name: 'srt-control',
    seeds: () => CONTROL,
    run: (input) => {
      const packet = parseControlPacket(input);
      return packet.type === 'nak' ? packet.ranges.length : 1;
    },
    most: (length) => 1 + length / 4,
  },
  {
    name: 'srt-handshake',
    seeds: () => [conclusion(), ENCRYPTED(), INDUCTION()],
    run: (input) => {
      const handshake = parseHandshake(input);
      const read = readConclusion(handshake);
      return handshake.extensions.length + (typeof read === 'number' ? 0 : read.streamId.length);
    },
    most: () => 16 + 512,
  },
  {
    name: 'srt-key-material',
    seeds: () => [16, 24, 32].map((length) => SessionKeys.generate(SRT_PASSPHRASE, length as 16 | 24 | 32).message()),
    run: (input) => parseKeyMaterial(input).wrapped.length,
    most: (length) => length,
  },
  {
    name: 'srt-key-exchange',
    seeds: () => [SessionKeys.generate(SRT_PASSPHRASE, 16).message()],
    run: (input) => {
      const keys = SessionKeys.receive(SRT_PASSPHRASE, input);
      keys?.accept(input);
      keys?.decrypt(1, 5, new Uint8Array(100), 16);
      return keys === null ? 0 : keys.encrypt(5, new Uint8Array(20)).length;
    },
    cost: 8,
  },
  {
    name: 'srt-stream-id',
    form: 'text',
    seeds: () => STREAM_IDS.map((text) => Buffer.from(text)),
    run: (input) => {
      const text = input.toString('utf8');
      parseAccessControl(text);
      return Object.values(parseStreamId(text) ?? {}).join('').length;
    },
    most: (length) => 64 + 3 * length,
  },
  {
    name: 'srt-listener',
    form: 'packets',
    seeds: () => [
      joinPackets([INDUCTION(), conclusion(), conclusion(), data(1)]),
      joinPackets([INDUCTION(), ENCRYPTED()]),
      joinPackets([INDUCTION(), conclusion({ extensions: [] })]),
    ],
    run: (input) => {
      let answers = 0;
      let cookie = 0;
      const faults = {
        ...GOOD,
        drops: (datagram: Uint8Array) => {
          answers += 1;
          cookie = cookieIn(datagram);
          return true;
        },
      };
      const listening = new SimulatedLink({
        faults,
        seed: 1,
        policy: { passphrase: ({ encrypted }) => (encrypted ? SRT_PASSPHRASE : null) },
      });
      for (const packet of splitPackets(input)) {
        const view = Buffer.from(packet.buffer);
        if (packet.length >= COOKIE_AT + 4 && view.readUInt32BE(COOKIE_AT) === 0) view.writeUInt32BE(cookie, COOKIE_AT);
        listening.inject(packet, CALLER, true);
      }
      listening.run(100_000);
      if (listening.listener.connections > splitPackets(input).length) throw new Error('more connections than callers');
      return answers;
    },
    // One answer for each packet, and keep-alives of accepted connections.
    most: (length) => 1024 + length,
    cost: 10,
  },
  {
    name: 'srt-caller',
    form: 'packets',
    seeds: () => [
      joinPackets([
        conclusion({ type: HandshakeType.INDUCTION, extensionField: 0x4a17, extensions: [], cookie: 7 }),
        conclusion({
          extensions: [{ ...SRT_ABILITIES, type: ExtensionType.HANDSHAKE_RESPONSE }],
        }),
        data(99),
      ]),
      joinPackets([conclusion({ type: 1010, extensions: [] })]),
    ],
    run: (input) => {
      let own = 0;
      let sent = 0;
      const faults = {
        ...GOOD,
        drops: (datagram: Uint8Array, towardsListener: boolean) => {
          sent += 1;
          // The first handshake contains the number of our socket.
          if (towardsListener && own === 0) own = Buffer.from(datagram).readUInt32BE(HEADER + 24);
          return true;
        },
      };
      const link = new SimulatedLink({ faults, seed: 1 });
      const { session, failure } = link.call({ timeout: 500_000, passphrase: null });
      for (const packet of splitPackets(input)) {
        if (packet.length >= HEADER) Buffer.from(packet.buffer).writeUInt32BE(own, DESTINATION_AT);
        link.inject(packet, LISTENER, false);
      }
      link.run(1_000_000);
      if (session.connection === null && failure() === null) throw new Error('the call neither failed nor was answered');
      link.caller.close('enough', link.now);
      return sent;
    },
    most: (length) => 400 + length,
    cost: 20,
  },
  connection('srt-connection', false),
  connection('srt-connection-encrypted', true),
];

function cookieIn(datagram: Uint8Array): number {
  const view = Buffer.from(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  return view.length >= COOKIE_AT + 4 ? view.readUInt32BE(COOKIE_AT) : 0;
}
