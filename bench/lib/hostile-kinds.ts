/** Attacks by hostile peers, a function for each kind, which makes one obstructive connection. Everything stays on loopback. */
import { createSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import WebSocket from 'ws';
import { AmfObject } from '../../src/wire/rtmp/amf.ts';
import { serializeAmf0 } from '../../src/wire/rtmp/amf0.ts';
import { ChunkWriter } from '../../src/wire/rtmp/chunk-writer.ts';
import { MessageType } from '../../src/wire/rtmp/message.ts';
import { ExtensionType, HandshakeType, parseHandshake, serializeHandshake } from '../../src/wire/srt/handshake.ts';
import { SessionKeys } from '../../src/wire/srt/session-keys.ts';
import { StunAttribute, StunType, serializeStun } from '../../src/wire/stun/stun-message.ts';
import { SRT_ABILITIES, srtConclusion } from '../../test/fakes/srt-packets.ts';
import { AVCC } from '../../test/fixtures/bitstreams.ts';
import { SIMULCAST_OFFER } from '../../test/fuzz/targets/webrtc.ts';

/** Ports of the server. */
export interface HostilePorts {
  readonly rtmp: number;
  readonly http: number;
  readonly api: number;
  readonly ice: number;
  readonly relay: number;
  readonly srt: number;
}

/** One of many peers; `close` ends it at once. */
export interface HostilePeer {
  /** False once the server has ended it. */
  readonly isOpen: () => boolean;
  readonly close: () => void;
}

export interface HostileKind {
  readonly title: string;
  readonly open: (ports: HostilePorts, number: number) => HostilePeer;
}

const HOST = '127.0.0.1';
/** Number of source addresses, so that the attack exceeds the share of one address. */
const ADDRESSES = 250;
const DRIP_MS = 1000;
const SRT_WRONG_PASSPHRASE = 'this is not the passphrase';
const INDUCTION_EVERY_MS = 200;
const CONCLUSION_EVERY_MS = 1000;
const STUN_EVERY_MS = 200;
const ASK_EVERY_MS = 500;
const HANDSHAKE = Buffer.concat([Buffer.of(3), Buffer.alloc(1536)]);
const ANSWERED_HANDSHAKE = 1 + 2 * 1536;
const MAX_MESSAGE = 0xff_ffff;
const COMMANDS = { chunkStreamId: 3, timestamp: 0, typeId: MessageType.COMMAND_AMF0 };

function addressOf(number: number): string {
  return `127.0.1.${1 + (number % ADDRESSES)}`;
}

/** A connection that sends `bytes`, and then one of `drips` every second. */
function dripping(port: number, number: number, bytes: Uint8Array, drip: Uint8Array | null = null): HostilePeer {
  const socket = connect({ port, host: HOST, localAddress: addressOf(number) });
  socket.on('error', () => undefined);
  socket.resume();
  if (bytes.length > 0) socket.write(bytes);
  const timer = drip === null ? null : setInterval(() => socket.write(drip), DRIP_MS);
  return peerOf(socket, timer);
}

function peerOf(socket: Socket, timer: NodeJS.Timeout | null = null): HostilePeer {
  socket.once('close', () => clearInterval(timer ?? undefined));
  return {
    isOpen: () => !socket.destroyed && !socket.readableEnded,
    close: () => {
      clearInterval(timer ?? undefined);
      socket.destroy();
    },
  };
}

/** An RTMP client that sends `then` after its handshake, and then stays silent. */
function rtmp(port: number, number: number, then: Buffer): HostilePeer {
  const socket = connect({ port, host: HOST, localAddress: addressOf(number) });
  let received = 0;
  socket.on('error', () => undefined);
  socket.on('data', (data) => {
    const wasAnswered = received >= ANSWERED_HANDSHAKE;
    received += data.length;
    if (!wasAnswered && received >= ANSWERED_HANDSHAKE) socket.write(Buffer.concat([Buffer.alloc(1536), then]));
  });
  socket.write(HANDSHAKE);
  return peerOf(socket);
}

function publication(stream: string): Buffer {
  const writer = new ChunkWriter();
  const values = [
    ['connect', 1, AmfObject.of({ app: 'app', type: 'nonprivate', tcUrl: 'rtmp://127.0.0.1/app' })],
    ['createStream', 2, null],
    ['publish', 3, null, stream, 'live'],
  ] as const;
  const media = { chunkStreamId: 6, streamId: 1, typeId: MessageType.VIDEO };
  const tiny = Buffer.from('1701000000000000026588', 'hex');
  return Buffer.concat([
    ...values.map((command, at) => writer.write({ ...COMMANDS, streamId: at === 2 ? 1 : 0, payload: serializeAmf0(command) })),
    writer.write({ ...media, timestamp: 0, payload: Buffer.concat([Buffer.from('1700000000', 'hex'), AVCC.high720]) }),
    ...[0, 40, 80].map((timestamp) => writer.write({ ...media, timestamp, payload: tiny })),
  ]);
}

/** A header that announces a message of 16 MB, and its first bytes. */
function announcement(): Buffer {
  const header = Buffer.alloc(12);
  header[0] = 6;
  header.writeUIntBE(MAX_MESSAGE, 4, 3);
  header[7] = MessageType.VIDEO;
  return Buffer.concat([header, Buffer.alloc(128)]);
}

function webSocket({ http }: HostilePorts, number: number, place: string, first: string | null): HostilePeer {
  const socket = new WebSocket(`ws://${HOST}:${http}${place}`, { localAddress: addressOf(number) });
  socket.on('error', () => undefined);
  if (first !== null) socket.once('open', () => socket.send(first));
  return { isOpen: () => socket.readyState === WebSocket.OPEN, close: () => socket.terminate() };
}

/** A datagram socket that repeatedly sends the result of `next`; answers go to `hear`. */
function datagrams(
  port: number,
  every: number,
  next: () => Uint8Array | null,
  hear: (bytes: Buffer) => void = () => undefined,
): HostilePeer {
  const socket = createSocket('udp4');
  let isOpen = true;
  const send = (): void => {
    const bytes = next();
    if (bytes !== null && isOpen) socket.send(bytes, port, HOST);
  };
  socket.on('error', () => undefined);
  socket.on('message', hear);
  socket.bind(0, HOST, send);
  const timer = setInterval(send, every);
  return {
    isOpen: () => isOpen,
    close: () => {
      isOpen = false;
      clearInterval(timer);
      socket.close();
    },
  };
}

function induction(number: number): Uint8Array {
  const greeting = srtConclusion({
    type: HandshakeType.INDUCTION,
    version: 4,
    extensionField: 2,
    extensions: [],
    cookie: 0,
    socketId: number + 1,
  });
  return serializeHandshake(greeting, { destination: 0, timestamp: 5, peer: HOST });
}

/** One wrong key is enough, because it refuses every caller. */
const WRONG_KEY = SessionKeys.generate(SRT_WRONG_PASSPHRASE, 16).message();

/** A caller that answers the server's cookie with the wrong key. */
function wrongCaller({ srt }: HostilePorts, number: number): HostilePeer {
  let cookie: number | null = null;
  const next = (): Uint8Array => {
    if (cookie === null) return induction(number);
    const wrong = srtConclusion({
      ...{ cookie, socketId: number + 1, encryption: 2, extensionField: 7 },
      extensions: [SRT_ABILITIES, { type: ExtensionType.KEY_REQUEST, content: WRONG_KEY }],
    });
    cookie = null;
    return serializeHandshake(wrong, { destination: 0, timestamp: 5, peer: HOST });
  };
  return datagrams(srt, CONCLUSION_EVERY_MS / 2, next, (bytes) => {
    const handshake = parseHandshake(bytes);
    if (handshake.type === HandshakeType.INDUCTION) cookie = handshake.cookie;
  });
}

function stunCheck(number: number): Uint8Array {
  return serializeStun({
    type: StunType.BINDING_REQUEST,
    transaction: Buffer.alloc(12, number),
    attributes: [[StunAttribute.USERNAME, Buffer.from(`unknown${number}:peer`)]],
    password: 'a password of nobody here',
  });
}

/** A client that requests a missing resource repeatedly on one connection. */
function asking({ http }: HostilePorts, number: number): HostilePeer {
  const request = `GET /app/none${number}/llhls.m3u8 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  const socket = connect({ port: http, host: HOST, localAddress: addressOf(number) });
  socket.on('error', () => undefined);
  socket.resume();
  socket.write(request);
  return peerOf(
    socket,
    setInterval(() => socket.write(request), ASK_EVERY_MS),
  );
}

const WHIP_HEAD = (stream: string, length: number): string =>
  `POST /app/${stream}?direction=whip HTTP/1.1\r\nHost: ${HOST}\r\nContent-Type: application/sdp\r\nContent-Length: ${length}\r\n\r\n`;

/** All kinds by name. */
export const HOSTILE_KINDS: Readonly<Record<string, HostileKind>> = {
  silent: {
    title: 'silent TCP connections, on every port',
    open: (ports, number) => {
      const all = [ports.rtmp, ports.http, ports.api, ports.relay, ports.ice];
      return dripping(all[number % all.length] ?? 0, number, Buffer.alloc(0));
    },
  },
  'slow-heads': {
    title: 'HTTP heads, a byte a second',
    open: ({ http, api }, number) =>
      dripping(number % 4 === 0 ? api : http, number, Buffer.from(`GET /app/slow HTTP/1.1\r\nHost: ${HOST}\r\nX-A: `), Buffer.from('a')),
  },
  'unfinished-whip': {
    title: 'WHIP bodies that do not end',
    open: ({ http }, number) => dripping(http, number, Buffer.from(`${WHIP_HEAD(`w${number}`, 4096)}v=0\r\n`), Buffer.from('a')),
  },
  'silent-websockets': {
    title: 'WebSockets that never ask for an offer',
    open: (ports, number) => webSocket(ports, number, '/app/paced', null),
  },
  'rtmp-handshakes': {
    title: 'RTMP handshakes that stop half-way',
    open: ({ rtmp: port }, number) => dripping(port, number, HANDSHAKE.subarray(0, 700)),
  },
  'rtmp-tiny': {
    title: 'RTMP publishers with three tiny frames',
    open: ({ rtmp: port }, number) => rtmp(port, number, publication(`tiny${number}`)),
  },
  'rtmp-announcements': {
    title: 'RTMP headers that announce 16 MB',
    open: ({ rtmp: port }, number) => rtmp(port, number, announcement()),
  },
  'half-open-play': {
    title: 'WebRTC players that answer no offer',
    open: (ports, number) => webSocket(ports, number, '/app/paced', '{"command":"request_offer"}'),
  },
  'half-open-whip': {
    title: 'WHIP publishers that never connect',
    open: ({ http }, number) =>
      dripping(http, number, Buffer.from(`${WHIP_HEAD(`half${number}`, Buffer.byteLength(SIMULCAST_OFFER))}${SIMULCAST_OFFER}`)),
  },
  'srt-inductions': {
    title: 'SRT greetings, 5 000 a second',
    open: ({ srt }, number) => datagrams(srt, INDUCTION_EVERY_MS, () => induction(number)),
  },
  'srt-wrong-keys': {
    title: 'SRT callers with a wrong key, 1 000 a second',
    open: wrongCaller,
  },
  stun: {
    title: 'STUN checks of strangers, 5 000 a second',
    open: ({ ice }, number) => datagrams(ice, STUN_EVERY_MS, () => stunCheck(number)),
  },
  'not-found': {
    title: 'requests for what is not there, 2 000 a second',
    open: asking,
  },
};
