/** Conversations of slow clients for each protocol that the server listens for. */

import { serializeRequest } from '../../src/wire/ovt/message.ts';
import { AmfObject } from '../../src/wire/rtmp/amf.ts';
import { serializeAmf0 } from '../../src/wire/rtmp/amf0.ts';
import { ChunkWriter } from '../../src/wire/rtmp/chunk-writer.ts';
import { MessageType } from '../../src/wire/rtmp/message.ts';
import { StunAttribute, StunType, serializeStun } from '../../src/wire/stun/stun-message.ts';
import type { Conversation } from './slow-client.ts';
import { type TurnAttribute, UDP_TRANSPORT } from './turn-client.ts';

const CRLF = Buffer.from('\r\n');
const HANDSHAKE_BLOCK = 1536;

/** HTTP/1.1 for ports of viewers and signalling. */
export function viewerTalk(): Conversation[] {
  const whip = head('POST /app/whip?direction=whip', 'Content-Type: application/sdp', 'Content-Length: 5000');
  const upgrade = head(
    'GET /app/stream',
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${'a'.repeat(22)}==`,
  );
  const ping = webSocketFrame(0x1, '{"command":"ping"}');
  // A pong as well: the client answers WebSocket pings without reading them.
  const alive = Buffer.concat([webSocketFrame(0xa, ''), ping]);
  return [
    { name: 'GET', messages: [head('GET /app/none/llhls.m3u8')], filler: CRLF },
    { name: 'OPTIONS', messages: [head('OPTIONS /app/none?direction=whep')], filler: CRLF },
    { name: 'WHIP', messages: [whip, Buffer.from('v=0\r\n')], filler: Buffer.from('a') },
    { name: 'WebSocket', messages: [upgrade, ping], filler: alive },
  ];
}

/** HTTP/1.1 for ports of the API. */
export function apiTalk(token: string): Conversation[] {
  const authorization = `Authorization: Basic ${Buffer.from(token).toString('base64')}`;
  return [
    { name: 'health', messages: [head('GET /health')], filler: CRLF },
    {
      name: 'POST',
      messages: [head('POST /v1/vhosts', authorization, 'Content-Length: 5000'), Buffer.from('{"name"')],
      filler: Buffer.from(' '),
    },
    { name: 'refused POST', messages: [head('POST /v1/vhosts', 'Content-Length: 5000')], filler: Buffer.from(' ') },
    { name: 'CONNECT', messages: [head('CONNECT a.example:80')], filler: CRLF },
  ];
}

/** Requests to the metrics port, for existing and missing paths. */
export function metricsTalk(): Conversation[] {
  return [
    { name: 'metrics', messages: [head('GET /metrics')], filler: CRLF },
    { name: 'refused POST', messages: [head('POST /metrics', 'Content-Length: 5000')], filler: Buffer.from(' ') },
  ];
}

/** HTTP/2: a request whose body never ends, one whose head never ends, and pings. */
export function http2Talk(path: string, token: string): Conversation[] {
  const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), http2Frame(4, 0, 0, Buffer.alloc(0))]);
  const fields = {
    ':method': 'POST',
    ':scheme': 'https',
    ':path': path,
    ':authority': 'localhost',
    authorization: `Basic ${Buffer.from(token).toString('base64')}`,
  };
  const block = Buffer.concat(
    Object.entries(fields).map(([name, value]) => Buffer.concat([Buffer.of(0), hpackText(name), hpackText(value)])),
  );
  const [END_HEADERS, ping] = [4, http2Frame(6, 0, 0, Buffer.alloc(8))];
  const data = http2Frame(0, 0, 1, Buffer.from(' '));
  return [
    { name: 'pings', messages: [preface], filler: ping },
    { name: 'a body', messages: [preface, http2Frame(1, END_HEADERS, 1, block), data], filler: data },
    { name: 'a head', messages: [preface, http2Frame(1, 0, 1, block)], filler: http2Frame(9, 0, 1, Buffer.alloc(0)) },
  ];
}

/** RTMP up to a stream of audio, then only commands. `key`: name of the stream. */
export function rtmpTalk(key: string): Conversation {
  const writer = new ChunkWriter();
  const message = (typeId: number, payload: Buffer): Buffer =>
    Buffer.concat([writer.write({ chunkStreamId: 3, typeId, streamId: 1, timestamp: 0, payload })]);
  const command = (...values: Parameters<typeof serializeAmf0>[0]): Buffer => message(MessageType.COMMAND_AMF0, serializeAmf0(values));
  return {
    name: `RTMP '${key}'`,
    messages: [
      Buffer.concat([Buffer.of(3), Buffer.alloc(HANDSHAKE_BLOCK)]),
      Buffer.alloc(HANDSHAKE_BLOCK),
      command('connect', 1, AmfObject.of({ app: 'app', tcUrl: 'rtmp://media.example/app' })),
      command('createStream', 2, null),
      command('publish', 3, null, key, 'live'),
      message(MessageType.AUDIO, Buffer.from('af001190', 'hex')),
      message(MessageType.AUDIO, Buffer.from('af0121aa', 'hex')),
    ],
    filler: message(MessageType.DATA_AMF0, serializeAmf0(['onTextData', null])),
  };
}

/** OVT: an edge that requests a missing stream. */
export function ovtTalk(): Conversation {
  const request = serializeRequest({ id: 1, command: 'describe', target: 'ovt://media.example/app/none' }, 0);
  return { name: 'OVT', messages: [request, request], filler: request.subarray(0, 1) };
}

/** TURN without credentials. */
export function turnTalk(): Conversation {
  const allocate = stun(StunType.ALLOCATE_REQUEST, [UDP_TRANSPORT]);
  return { name: 'TURN', messages: [allocate, stun(StunType.BINDING_REQUEST, [])], filler: stun(StunType.BINDING_REQUEST, []) };
}

/** ICE over TCP (RFC 4571 frames) without a session. */
export function iceTalk(): Conversation {
  const check = stun(StunType.BINDING_REQUEST, [[StunAttribute.USERNAME, Buffer.from('none:none')]]);
  const framed = Buffer.concat([Buffer.of(check.length >> 8, check.length & 0xff), check]);
  return { name: 'ICE', messages: [framed], filler: framed };
}

/** A transport stream of stuffing packets only. */
export function transportTalk(): Conversation {
  const stuffing = Buffer.alloc(188, 0xff);
  stuffing.set([0x47, 0x1f, 0xff, 0x10]);
  return { name: 'MPEG-TS', messages: [stuffing], filler: stuffing };
}

function head(line: string, ...lines: readonly string[]): Buffer {
  return Buffer.from(`${[`${line} HTTP/1.1`, 'Host: localhost', ...lines].join('\r\n')}\r\n\r\n`);
}

/** Masked with zeros, which leaves the text unchanged. */
function webSocketFrame(kind: number, text: string): Buffer {
  return Buffer.concat([Buffer.of(0x80 | kind, 0x80 | text.length, 0, 0, 0, 0), Buffer.from(text)]);
}

function http2Frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const frame = Buffer.alloc(9 + payload.length);
  frame.writeUIntBE(payload.length, 0, 3);
  frame.set([type, flags], 3);
  frame.writeUInt32BE(stream, 5);
  frame.set(payload, 9);
  return frame;
}

/** Texts of less than 127 bytes, without Huffman coding. */
function hpackText(text: string): Buffer {
  return Buffer.concat([Buffer.of(text.length), Buffer.from(text)]);
}

function stun(type: number, attributes: readonly TurnAttribute[]): Buffer {
  return serializeStun({ type, transaction: Buffer.alloc(12, 7), attributes, password: null });
}
