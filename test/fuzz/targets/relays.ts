/** Bytes of another server, for pulls and for its own pulls from us: RTSP and OVT. */
import { once } from 'node:events';
import net from 'node:net';
import { OvtPullSource } from '../../../src/services/ovt/ovt-pull-source.ts';
import { mediaFormat } from '../../../src/services/rtsp/media-track.ts';
import { RtpFeed } from '../../../src/services/rtsp/rtp-feed.ts';
import { RtspPullSource } from '../../../src/services/rtsp/rtsp-pull-source.ts';
import { parseContents } from '../../../src/wire/ovt/description.ts';
import { markContents, parseMark } from '../../../src/wire/ovt/mark.ts';
import { parseMediaPacket } from '../../../src/wire/ovt/media-packet.ts';
import { parseRequest, parseResponse, serializeRequest, serializeResponse } from '../../../src/wire/ovt/message.ts';
import { parseOvtUrl } from '../../../src/wire/ovt/ovt-url.ts';
import { OvtPayloadType, PACKET_HEADER_LENGTH } from '../../../src/wire/ovt/packet.ts';
import { OvtReader } from '../../../src/wire/ovt/reader.ts';
import { RtspAuthenticator } from '../../../src/wire/rtsp/rtsp-auth.ts';
import { parseRtspDescription } from '../../../src/wire/rtsp/rtsp-description.ts';
import { RtspReader } from '../../../src/wire/rtsp/rtsp-message.ts';
import { controlUri, parseRtspUrl } from '../../../src/wire/rtsp/rtsp-url.ts';
import { ManualClock } from '../../fakes/manual-clock.ts';
import { RecordingSink } from '../../fakes/pull-sink.ts';
import { packetsOf, recordedOvt } from '../../fakes/recorded-ovt.ts';
import { RecordingLogger } from '../../fakes/recording-logger.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { hex } from '../support/hex.ts';
import { joinPackets, splitPackets } from '../support/packets.ts';
import { tolerate } from '../support/tolerate.ts';

const CAMERA = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=cam',
  'a=control:*',
  'm=video 0 RTP/AVP 96',
  'b=AS:2500',
  'a=rtpmap:96 H264/90000',
  'a=fmtp:96 packetization-mode=1;profile-level-id=640014;sprop-parameter-sets=Z2QADazZQUGfnwEQAAADABAAAAMDweYCAB6EAAehKSygHihTLA==,aOvjyyLA',
  'a=control:trackID=0',
  'a=framerate:25',
  'm=video 0 RTP/AVP 98',
  'a=rtpmap:98 H265/90000',
  'a=control:rtsp://127.0.0.1/cam/h265',
  'm=audio 0 RTP/AVP 97',
  'a=rtpmap:97 mpeg4-generic/48000/2',
  'a=fmtp:97 streamtype=5;mode=AAC-hbr;config=1190;sizelength=13;indexlength=3;indexdeltalength=3',
  'a=control:trackID=1',
  'm=audio 0 RTP/AVP 0',
  'a=control:trackID=2',
  '',
].join('\r\n');
const CHALLENGES = [
  'Digest realm="cam \\"one\\"", nonce="abc", qop="auth,auth-int", algorithm=SHA-256, opaque="x"',
  'Basic realm="cam"',
  'Digest realm=plain, nonce=1, stale=TRUE',
];
const RTP = hex('24 00 0010 80e0 0001 00000000 00000001 65888400');
const RTCP = hex('24 01 001c 80c80006 00000001 e0000001 80000000 00015f90 0000000a 00000100');

const PLACED_MARK = {
  trackId: 0,
  dts: 90_000,
  mark: {
    ...{ run: 'run', msn: 3, time: 1000, startTime: 2000, discontinuity: false, discontinuities: 0, tags: '#EXT-X-X\n' },
    ...{ expected: 3000, earliest: 2500 },
    facts: {
      ...{ segmentDuration: 2, chunkDuration: 0.5, targetDuration: 2, partHoldBack: 1.5, offset: 0 },
      tracks: [{ id: 0, partTicks: 45_000, generation: 0 }],
    },
  },
};

/** `{}` becomes the number of the answered request, `[]` the channels that it names. */
function answer(headers: readonly string[], body = ''): Buffer {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  return Buffer.from(`${['RTSP/1.0 200 OK', 'CSeq: {}', ...headers, ...length].join('\r\n')}\r\n\r\n${body}`);
}

const DESCRIBED = answer(['Content-Base: rtsp://127.0.0.1/cam/', 'Content-Type: application/sdp'], CAMERA);
const SET_UP = answer(['Session: 42;timeout=60', 'Transport: RTP/AVP/TCP;unicast;interleaved=[];ssrc=00000001;mode="PLAY"']);
const PLAYING = answer([
  'Session: 42',
  'Range: npt=0-',
  'RTP-Info: url=rtsp://127.0.0.1/cam/trackID=0;seq=1;rtptime=0, url=trackID=1;seq=2;rtptime=4294967295',
]);
const CHALLENGED = Buffer.from(
  `RTSP/1.0 401 Unauthorized\r\nCSeq: {}\r\n${CHALLENGES.map((text) => `WWW-Authenticate: ${text}\r\n`).join('')}\r\n`,
);
const REQUESTS = Buffer.from('OPTIONS * RTSP/1.0\r\nCSeq: 9\r\n\r\nSET_PARAMETER rtsp://h RTSP/1.0\r\nCSeq: 10\r\n\r\n');

interface Answering {
  readonly port: number;
  readonly stop: () => Promise<void>;
}

/** A server on loopback that answers each request, or piece of one, with the next part of `input`; the rest follows the last part. */
async function answering(parts: readonly Buffer[]): Promise<Answering> {
  const sockets = new Set<net.Socket>();
  let next = 0;
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      const part = parts[next];
      next += 1;
      const request = data.toString('latin1');
      const sequence = /CSeq: (\d+)/.exec(request)?.[1] ?? '1';
      const channels = /interleaved=(\d+-\d+)/.exec(request)?.[1] ?? '0-1';
      if (part === undefined) socket.end();
      else socket.write(Buffer.from(part.toString('latin1').replaceAll('{}', sequence).replaceAll('[]', channels), 'latin1'));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as net.AddressInfo).port,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Separates the parts of a dialogue in one text; never occurs in RTSP. */
const NEXT = '\n====\n';

function dialogue(...parts: readonly Buffer[]): Buffer {
  return Buffer.concat(parts.flatMap((part, at) => (at === 0 ? [part] : [Buffer.from(NEXT), part])));
}

function partsOf(input: Buffer): Buffer[] {
  return input
    .toString('latin1')
    .split(NEXT)
    .map((part) => Buffer.from(part, 'latin1'));
}

/** Opens a pull from such a server and measures the result. Any `Error` is a valid result; a hang is not. */
async function pull(
  parts: readonly Buffer[],
  open: (port: number, sink: RecordingSink, signal: AbortSignal) => Promise<{ close(): void }>,
): Promise<number> {
  const server = await answering(parts);
  const sink = new RecordingSink();
  try {
    const session = await open(server.port, sink, AbortSignal.timeout(80));
    await new Promise((resolve) => setImmediate(resolve));
    session.close();
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError || !(error instanceof Error)) throw error;
  } finally {
    await server.stop();
  }
  return sink.packets.length + sink.tracks.length;
}

const target = (url: string, sink: RecordingSink, signal: AbortSignal) => ({
  url,
  settings: {},
  ignoreSenderReports: false,
  sink,
  signal,
  logger: new RecordingLogger(),
});

/** Packets of a camera with H.264 and AAC: the first byte tells the track, and whether it is RTCP. */
function cameraPackets(): Buffer[] {
  const packets: Buffer[] = [];
  for (let n = 0; n < 6; n += 1) {
    const video = hex(`00 80e0 0000 00000000 00000001 ${n % 3 === 0 ? '6588843f' : '419a'}`);
    video.writeUInt16BE(n, 3);
    video.writeUInt32BE(n * 3000, 5);
    const audio = hex('02 80e1 0000 00000000 00000002 0010 0020 21aabbcc');
    audio.writeUInt16BE(n, 3);
    audio.writeUInt32BE(n * 1600, 5);
    packets.push(video, audio);
    if (n === 1) packets.push(hex('01 80c80006 00000001 e0000001 80000000 00000bb8 0000000a 00000100'));
    if (n === 2) packets.push(hex('03 80c80006 00000002 e0000001 80000000 00000640 0000000a 00000100'));
  }
  return [...packets, hex('01 81cb0001 00000001')];
}

const FED = parseRtspDescription(CAMERA).media.filter(({ encoding }) => /h264|mpeg4/i.test(encoding));

/** The media of a session, as `cameraPackets` writes it, 20 ms apart. */
function feedMedia(input: Buffer): number {
  const clock = new ManualClock();
  const sink = new RecordingSink();
  const feed = new RtpFeed({ sink, clock, ordered: input.length % 2 === 0, ignoreSenderReports: input.length % 3 === 0 });
  for (const [id, media] of FED.entries()) feed.addTrack(2 * id, media, mediaFormat(media)!);
  feed.announceStart(0, 0);
  feed.start();
  for (const packet of splitPackets(input)) {
    const channel = (packet[0] ?? 0) % 4;
    if (channel % 2 === 0) feed.pushRtp(channel, packet.subarray(1));
    else feed.pushRtcp(channel - 1, packet.subarray(1));
    clock.advance(20);
    feed.checkDeadlines();
    feed.receiverReport(channel & 2);
  }
  clock.advance(10_000);
  feed.checkDeadlines();
  for (const { pts, dts } of sink.packets) if (!Number.isFinite(pts) || !Number.isFinite(dts)) throw new Error(`times ${pts}, ${dts}`);
  return sink.packets.length;
}

/** A real origin's answers to `describe` and `play`, and its first media. */
function ovtAnswers(): Buffer[] {
  return packetsOf(recordedOvt('origin-ladder'))
    .slice(0, 24)
    .map(({ bytes }) => bytes);
}

export const RELAY_TARGETS: readonly FuzzTarget[] = [
  {
    name: 'rtsp-messages',
    form: 'text',
    seeds: () => [Buffer.concat([DESCRIBED, SET_UP, PLAYING, RTP, RTCP, REQUESTS]), CHALLENGED, Buffer.concat([RTP, RTP, RTCP])],
    run: (input) => {
      const reader = new RtspReader();
      let items = 0;
      for (let at = 0; at < input.length; at += 100) {
        reader.push(input.subarray(at, at + 100), () => {
          items += 1;
        });
      }
      return items;
    },
    most: (length) => 1 + length / 4,
  },
  {
    name: 'rtsp-description',
    form: 'text',
    seeds: () => [Buffer.from(CAMERA)],
    run: (input) => {
      const { media, control } = parseRtspDescription(input.toString('latin1'));
      for (const one of media) {
        const format = mediaFormat(one);
        if (format !== null && !(Number.isFinite(format.clockRate) && format.clockRate > 0))
          throw new Error(`clock rate ${format.clockRate}`);
        controlUri('rtsp://h/x', one.control || control);
        // One packet for each format: no description may make the depacketizer run without end.
        const packet = { marker: true, payloadType: 96, sequence: 1, timestamp: 1, ssrc: 1, payload: hex('0020 0010 0018 aabb ccddee') };
        tolerate(() => format?.depacketizer.push(packet, false, () => undefined));
      }
      return media.length;
    },
    most: () => 32,
  },
  {
    name: 'rtsp-challenge',
    form: 'text',
    seeds: () => CHALLENGES.map((text) => Buffer.from(text)),
    run: (input) => {
      const authenticator = new RtspAuthenticator({ user: 'u"s', password: 'p' });
      authenticator.accept([input.toString('latin1')]);
      const header = authenticator.header('DESCRIBE', 'rtsp://h/x') ?? '';
      if (/[\r\n]/.test(header)) throw new Error('a line break in a header');
      return header.length;
    },
    most: (length) => 1024 + 4 * length,
  },
  {
    name: 'rtsp-and-ovt-urls',
    form: 'text',
    seeds: () =>
      ['rtsp://user:p%20w@host:554/cam?x=1', 'rtsp://[::1]/cam', 'ovt://host:9000/app/stream', 'rtspc://h'].map((text) =>
        Buffer.from(text),
      ),
    run: (input) => {
      const text = input.toString('utf8');
      parseOvtUrl(text);
      return parseRtspUrl(text)?.uri.length ?? 0;
    },
    most: (length) => 64 + 3 * length,
  },
  {
    name: 'rtsp-media',
    form: 'packets',
    seeds: () => [joinPackets(cameraPackets()), joinPackets(cameraPackets().slice(0, 5))],
    run: feedMedia,
    most: (length) => 64 + length,
    cost: 4,
  },
  {
    name: 'rtsp-session',
    form: 'text',
    seeds: () => [
      dialogue(DESCRIBED, SET_UP, SET_UP, SET_UP, SET_UP, Buffer.concat([PLAYING, RTP, RTCP])),
      dialogue(CHALLENGED, DESCRIBED, SET_UP),
      dialogue(DESCRIBED, answer(['Session: 42;timeout=0', 'Transport: RTP/AVP/TCP;interleaved=255-256']), SET_UP, SET_UP, SET_UP, PLAYING),
      dialogue(
        DESCRIBED,
        Buffer.from('RTSP/1.0 461 Unsupported Transport\r\nCSeq: {}\r\n\r\n'),
        answer(['Session: 1', 'Transport: RTP/AVP;server_port=6970-6971']),
      ),
      dialogue(Buffer.from('RTSP/1.0 302 Moved\r\nCSeq: {}\r\nLocation: rtsp://127.0.0.1:1/x\r\n\r\n')),
    ],
    run: (input) =>
      pull(partsOf(input), async (port, sink, signal) => {
        return await new RtspPullSource(new ManualClock()).open(target(`rtsp://u:p@127.0.0.1:${port}/cam`, sink, signal));
      }),
    cost: 40,
  },
  {
    name: 'ovt-packets',
    seeds: () => [
      Buffer.concat(ovtAnswers()),
      Buffer.from(serializeResponse({ id: 0, command: 'segment', code: 200, message: 'ok', contents: markContents(PLACED_MARK) }, 0)),
      Buffer.from(serializeRequest({ id: 1, command: 'play', target: 'ovt://h/a/s' }, 0)),
    ],
    run: (input) => {
      const reader = new OvtReader({ message: 100_000, media: 100_000, anyType: input.length % 2 === 0 });
      let bytes = 0;
      for (let at = 0; at < input.length; at += 333) {
        reader.push(input.subarray(at, at + 333), (type, payload) => {
          bytes += 1 + payload.length;
          if (type === OvtPayloadType.MEDIA) parseMediaPacket(payload);
          else if (type === OvtPayloadType.REQUEST) parseRequest(payload);
          // The answer to `play` has no contents; media follows it.
          else {
            tolerate(() => parseContents(parseResponse(payload).contents));
            tolerate(() => parseMark(parseResponse(payload).contents));
          }
        });
      }
      return bytes;
    },
    most: (length) => 1 + length,
  },
  {
    name: 'ovt-messages',
    form: 'text',
    seeds: () => [ovtAnswers()[0]!.subarray(PACKET_HEADER_LENGTH), Buffer.from('{"id":1,"application":"play","target":"ovt://h/a/s"}')],
    run: (input) => {
      const { target: url } = tolerate(() => parseRequest(input)) ?? { target: '' };
      parseOvtUrl(url);
      const description = parseContents(parseResponse(input).contents);
      return description.tracks.length + description.playlists.length;
    },
    most: (length) => 1 + length / 8,
  },
  {
    name: 'ovt-session',
    seeds: () => [
      dialogue(ovtAnswers()[0]!, Buffer.concat(ovtAnswers().slice(1))),
      dialogue(serializeResponse({ id: 1, command: 'describe', code: 404, message: 'no', contents: undefined }, 0)),
    ],
    run: (input) =>
      pull(partsOf(input), async (port, sink, signal) => {
        return await new OvtPullSource(new ManualClock()).open(target(`ovt://127.0.0.1:${port}/app/stream`, sink, signal));
      }),
    cost: 40,
  },
];
