/** The messages before the media of a WebRTC peer: STUN, TURN, framing on TCP, session descriptions, signalling. */
import { createHash, createSecretKey } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type { WebSocket } from 'ws';
import { answerIngest, offerIngest, readIngestAnswer } from '../../../src/services/webrtc/ingest/ingest-negotiation.ts';
import { answerOffer, newNumbers, offerMedias, readSdpAnswer } from '../../../src/services/webrtc/play/negotiation.ts';
import type { WebrtcSettings } from '../../../src/services/webrtc/play/settings.ts';
import { SignallingSocket } from '../../../src/services/webrtc/signalling/signalling-socket.ts';
import { readCandidates } from '../../../src/wire/ice/ice-candidate.ts';
import type { IceCredentials } from '../../../src/wire/ice/ice-credentials.ts';
import { checkRequest } from '../../../src/wire/ice/ice-lite.ts';
import { frameDatagram, TcpFramer } from '../../../src/wire/ice/tcp-framer.ts';
import { serializeDescription } from '../../../src/wire/sdp/local-description.ts';
import { parseSessionDescription } from '../../../src/wire/sdp/session-description.ts';
import {
  errorCode,
  isStunAuthentic,
  parseStun,
  readXorMappedAddress,
  StunAttribute,
  type StunDraft,
  StunType,
  serializeStun,
  xorMappedAddress,
} from '../../../src/wire/stun/stun-message.ts';
import { TurnConnection } from '../../../src/wire/turn/turn-connection.ts';
import { frameChannelData } from '../../../src/wire/turn/turn-framer.ts';
import { RecordingLogger } from '../../fakes/recording-logger.ts';
import { audioTrack, videoTrack } from '../../fakes/synthetic-media.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { tolerate } from '../support/tolerate.ts';

const FINGERPRINT = `sha-256 ${Array.from({ length: 32 }, () => 'AB').join(':')}`;
const TRANSACTION = Buffer.alloc(12, 5);
const CREDENTIALS: IceCredentials = { ufrag: 'OvME', password: 'passwordpasswordpassword' };
const ACCOUNT = { realm: 'airensoft', username: 'ome', password: 'airen' };

function stun(type: number, attributes: StunDraft['attributes'], password: StunDraft['password'] = CREDENTIALS.password): Buffer {
  return serializeStun({ type, transaction: TRANSACTION, attributes, password });
}

function check(...more: StunDraft['attributes']): Buffer {
  return stun(StunType.BINDING_REQUEST, [
    [StunAttribute.USERNAME, Buffer.from(`${CREDENTIALS.ufrag}:peer`)],
    [StunAttribute.ICE_CONTROLLING, Buffer.alloc(8, 1)],
    ...more,
  ]);
}

const BINDINGS = (): Buffer[] => [
  check([StunAttribute.USE_CANDIDATE, Buffer.alloc(0)]),
  check([StunAttribute.ICE_CONTROLLED, Buffer.alloc(8)]),
  stun(StunType.BINDING_SUCCESS, [[StunAttribute.XOR_MAPPED_ADDRESS, xorMappedAddress('192.0.2.1', 4000, TRANSACTION)]]),
  stun(StunType.BINDING_SUCCESS, [[StunAttribute.XOR_MAPPED_ADDRESS, xorMappedAddress('2001:db8::1', 4000, TRANSACTION)]]),
  stun(StunType.BINDING_ERROR, [[StunAttribute.ERROR_CODE, errorCode(487, 'Role Conflict')]], null),
];

interface TurnClient {
  readonly turn: TurnConnection;
  readonly answers: Buffer[];
  datagrams: number;
}

function turnClient(): TurnClient {
  const answers: Buffer[] = [];
  const client: TurnClient = {
    turn: new TurnConnection(
      {
        send: (bytes) => answers.push(bytes),
        datagram: () => {
          client.datagrams += 1;
        },
        allocatedUntil: () => undefined,
        now: () => 1000,
      },
      ACCOUNT,
      { host: '192.0.2.7', port: 40_000 },
      { ipv4: { host: '1.1.1.1', port: 14_090 }, ipv6: { host: '1::1', port: 14_090 } },
    ),
    answers,
    datagrams: 0,
  };
  return client;
}

const PEER = (): Buffer => xorMappedAddress('198.51.100.1', 10_000, TRANSACTION);

/** A client's messages on its connection. Each connection has a random nonce, so they are made anew for it. */
function turnDialogue(client: TurnClient): Buffer[] {
  client.turn.push(stun(StunType.ALLOCATE_REQUEST, [], null));
  const nonce = parseStun(client.answers.pop() ?? Buffer.alloc(0)).attributes.get(StunAttribute.NONCE) ?? Buffer.alloc(0);
  const account: StunDraft['attributes'] = [
    [StunAttribute.USERNAME, Buffer.from(ACCOUNT.username)],
    [StunAttribute.REALM, Buffer.from(ACCOUNT.realm)],
    [StunAttribute.NONCE, nonce],
  ];
  // The connection makes the long-term key itself; requests signed with another key are refused, which is tested as well.
  const request = (type: number, ...attributes: StunDraft['attributes']): Buffer => stun(type, [...attributes, ...account], TURN_KEY);
  return [
    request(StunType.ALLOCATE_REQUEST, [StunAttribute.REQUESTED_TRANSPORT, Buffer.of(17, 0, 0, 0)]),
    request(StunType.CREATE_PERMISSION_REQUEST, [StunAttribute.XOR_PEER_ADDRESS, PEER()]),
    request(
      StunType.CHANNEL_BIND_REQUEST,
      [StunAttribute.CHANNEL_NUMBER, Buffer.of(0x40, 1, 0, 0)],
      [StunAttribute.XOR_PEER_ADDRESS, PEER()],
    ),
    stun(
      StunType.SEND_INDICATION,
      [
        [StunAttribute.XOR_PEER_ADDRESS, PEER()],
        [StunAttribute.DATA, Buffer.from('media')],
      ],
      null,
    ),
    frameChannelData(0x4001, Buffer.from('media')),
    request(StunType.REFRESH_REQUEST, [StunAttribute.LIFETIME, Buffer.of(0, 0, 2, 88)]),
  ];
}

const TURN_KEY = createSecretKey(createHash('md5').update(`${ACCOUNT.username}:${ACCOUNT.realm}:${ACCOUNT.password}`).digest());

/** A publisher's offer with all features: simulcast, retransmissions, header extensions, several codecs. */
export const SIMULCAST_OFFER = [
  'v=0',
  'o=- 46117317 2 IN IP4 127.0.0.1',
  's=-',
  't=0 0',
  'a=group:BUNDLE 0 1',
  `a=fingerprint:${FINGERPRINT}`,
  'a=setup:actpass',
  'a=ice-ufrag:abcd',
  'a=ice-pwd:abcdefghijklmnopqrstuvwx',
  'm=video 9 UDP/TLS/RTP/SAVPF 96 97 98 45',
  'c=IN IP4 0.0.0.0',
  'a=mid:0',
  'a=sendonly',
  'a=rtcp-mux',
  'a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01',
  'a=extmap:6/sendonly urn:ietf:params:rtp-hdrext:sdes:mid',
  'a=extmap:10 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id',
  'a=extmap:11 urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id',
  'a=rtpmap:96 H264/90000',
  'a=fmtp:96 packetization-mode=1;profile-level-id=42e01f',
  'a=rtcp-fb:96 nack',
  'a=rtcp-fb:96 nack pli',
  'a=rtcp-fb:* ccm fir',
  'a=rtpmap:97 rtx/90000',
  'a=fmtp:97 apt=96',
  'a=rtpmap:98 VP8/90000',
  'a=rtcp-fb:98 goog-remb',
  'a=rtpmap:45 AV1/90000',
  'a=ssrc-group:FID 1111 4444',
  'a=ssrc:1111 cname:x',
  'a=ssrc:4444 cname:x',
  'a=rid:h send',
  'a=rid:l send',
  'a=simulcast:send h;~l,h',
  'm=audio 9 UDP/TLS/RTP/SAVPF 111',
  'a=mid:1',
  'a=sendonly',
  'a=rtpmap:111 opus/48000/2',
  'a=fmtp:111 minptime=10;useinbandfec=1',
  'a=ssrc:3333 cname:x',
  '',
].join('\r\n');
const PLAYER_OFFER = SIMULCAST_OFFER.replaceAll('sendonly', 'recvonly');
const SETTINGS: WebrtcSettings = {
  timeout: 30_000,
  rtx: true,
  playoutDelay: { min: 0, max: 100 },
  bandwidthEstimation: 'TransportCC',
  ulpfec: false,
  jitterBuffer: false,
  createDefaultPlaylist: true,
};
const TRACKS = [videoTrack(), audioTrack({ codec: 'OPUS' })];
const MIDS = { video: '0', audio: '1' };
const OFFERED = offerMedias(TRACKS, SETTINGS, MIDS, { video: newNumbers(), audio: newNumbers() });

function described(medias: Parameters<typeof serializeDescription>[0]['medias']): string {
  return serializeDescription({
    ...{ credentials: CREDENTIALS, fingerprint: FINGERPRINT.slice(8), setup: 'actpass', candidates: [], cname: 'c', streamId: 's' },
    medias,
  });
}

/** A browser's answer to our offer. */
function answerTo(offer: string, direction: string): string {
  return offer.replaceAll('sendonly', direction).replace('actpass', 'active');
}

/** The part of a WebSocket that signalling uses. */
class QuietSocket extends EventEmitter {
  readonly OPEN = 1;
  readyState = 1;
  readonly bufferedAmount = 0;
  readonly sent: string[] = [];
  send(text: string): void {
    this.sent.push(text);
  }
  close(): void {
    this.readyState = 3;
  }
  terminate(): void {
    this.readyState = 3;
  }
  ping(): void {}
}

const ID = '__ID__';
const SIGNALLING: readonly object[] = [
  { command: 'request_offer', id: 0 },
  { command: 'answer', id: ID, peer_id: 0, sdp: { type: 'answer', sdp: 'v=0\r\ns=-\r\n' } },
  { command: 'candidate', id: ID, candidates: [{ candidate: 'candidate:0 1 UDP 50 192.0.2.1 10000 typ host', sdpMLineIndex: 0 }] },
  { command: 'change_rendition', id: ID, rendition_name: '720p', auto: false },
  { command: 'notification', id: ID, message: [null, { __proto__: 1 }, 1e308] },
  { command: 'ping' },
  { command: 'stop', id: ID },
];

export const WEBRTC_TARGETS: readonly FuzzTarget[] = [
  {
    name: 'stun',
    seeds: BINDINGS,
    run: (input) => {
      const message = parseStun(input);
      isStunAuthentic(message, CREDENTIALS.password);
      const mapped = message.attributes.get(StunAttribute.XOR_MAPPED_ADDRESS);
      if (mapped !== undefined) tolerate(() => readXorMappedAddress(mapped, message.transaction));
      return message.attributes.size;
    },
    most: (length) => length / 4,
  },
  {
    name: 'ice-check',
    seeds: BINDINGS,
    run: (input) => {
      const from = { host: '192.0.2.1', port: 4000 };
      const answer = checkRequest(input, from, (ufrag) => (ufrag === CREDENTIALS.ufrag ? { credentials: CREDENTIALS } : undefined));
      return answer?.response.length ?? 0;
    },
    // Answers must be little longer than requests, so that the server is useless as an amplifier.
    most: (length) => 2 * length,
  },
  {
    name: 'turn',
    form: 'bytes',
    seeds: () => {
      const client = turnClient();
      const dialogue = turnDialogue(client);
      return [Buffer.concat(dialogue), ...dialogue];
    },
    run: (input) => {
      const fresh = turnClient();
      tolerate(() => {
        for (let at = 0; at < input.length; at += 37) fresh.turn.push(input.subarray(at, at + 37));
      });
      const settled = turnClient();
      for (const message of turnDialogue(settled)) settled.turn.push(message);
      const before = settled.answers.length + settled.datagrams;
      if (settled.datagrams < 2) throw new Error('the dialogue itself did not work');
      settled.turn.push(input);
      settled.turn.deliver({ host: '198.51.100.1', port: 10_000 }, Buffer.from('media'));
      return fresh.answers.length + settled.answers.length + settled.datagrams - before;
    },
    most: (length) => 2 + length,
    cost: 2,
  },
  {
    name: 'ice-tcp-framing',
    seeds: () => [Buffer.concat(BINDINGS().map(frameDatagram)), frameDatagram(Buffer.alloc(0))],
    run: (input) => {
      const framer = new TcpFramer();
      let frames = 0;
      for (let at = 0; at < input.length; at += 11) {
        const got = framer.push(input.subarray(at, at + 11));
        if (got === null) break;
        frames += got.length;
      }
      return frames;
    },
    most: (length) => length / 3,
  },
  {
    name: 'sdp-webrtc',
    form: 'text',
    seeds: () => [
      ...[SIMULCAST_OFFER, PLAYER_OFFER, answerTo(described(OFFERED), 'recvonly')].map((text) => Buffer.from(text)),
      Buffer.from(answerTo(described(offerIngest(MIDS)), 'sendonly').replaceAll('recvonly', 'sendonly')),
    ],
    run: (input) => {
      const description = parseSessionDescription(input.toString('utf8'));
      const lengths = [
        tolerate(() => described(answerIngest(description).medias).length),
        tolerate(() => described(answerOffer(description, TRACKS, SETTINGS, 'c').medias).length),
        tolerate(() => readSdpAnswer(description, OFFERED, SETTINGS, 'c').medias.length),
        tolerate(() => readIngestAnswer(description, offerIngest(MIDS)).medias.length),
      ];
      return lengths.reduce<number>((sum, length) => sum + (length ?? 0), 0);
    },
    // An answer repeats the offer, for either side.
    most: (length) => 8192 + 4 * length,
    cost: 3,
  },
  {
    name: 'webrtc-signalling',
    form: 'text',
    seeds: () => SIGNALLING.map((message) => Buffer.from(JSON.stringify(message))),
    run: (input) => {
      const socket = new QuietSocket();
      const logger = new RecordingLogger();
      const signalling = new SignallingSocket({
        socket: socket as unknown as WebSocket,
        client: '192.0.2.1',
        logger,
        dialogue: {
          engaged: true,
          offer: () => undefined,
          answer: (sdp) => void tolerate(() => parseSessionDescription(sdp)),
          candidates: (lines) => void readCandidates(lines),
          other: ({ command }) => command === 'change_rendition',
          stop: () => undefined,
        },
      });
      try {
        const text = input.toString('utf8').replaceAll(`"${ID}"`, `${signalling.id}`);
        socket.emit('message', Buffer.from(text), false);
        socket.emit('message', input, true);
        if (logger.matching('signalling failed').length > 0) throw new Error('a message made the server fail');
        return socket.sent.length;
      } finally {
        socket.emit('close');
      }
    },
    most: () => 2,
  },
];
