/** RTMP from an encoder, or from a server that gets a push. */
import { parseAudioTag } from '../../../src/containers/flv/audio-tag.ts';
import { parseMetadata } from '../../../src/containers/flv/metadata.ts';
import { parseVideoTag } from '../../../src/containers/flv/video-tag.ts';
import { DEFAULT_RTMP_LIMITS, DEFAULT_RTMP_TIMEOUTS } from '../../../src/services/rtmp/rtmp-options.ts';
import { RtmpSession } from '../../../src/services/rtmp/rtmp-session.ts';
import { ProtocolError } from '../../../src/util/protocol-error.ts';
import { readAggregate } from '../../../src/wire/rtmp/aggregate.ts';
import { AmfObject, AmfReader, type AmfValue } from '../../../src/wire/rtmp/amf.ts';
import { parseAmf0, serializeAmf0 } from '../../../src/wire/rtmp/amf0.ts';
import { parseAmf3 } from '../../../src/wire/rtmp/amf3.ts';
import { ChunkReader, DEFAULT_CHUNK_READER_LIMITS } from '../../../src/wire/rtmp/chunk-reader.ts';
import { ChunkWriter } from '../../../src/wire/rtmp/chunk-writer.ts';
import { commandMessage, dataMessage } from '../../../src/wire/rtmp/command.ts';
import { ConnectionControl } from '../../../src/wire/rtmp/connection-control.ts';
import { controlMessage, parseControlValue, userControlMessage } from '../../../src/wire/rtmp/control.ts';
import { ClientHandshake, ServerHandshake } from '../../../src/wire/rtmp/handshake.ts';
import { MessageType, type RtmpMessage, UserControlEvent } from '../../../src/wire/rtmp/message.ts';
import { PublishClient, RtmpRefused } from '../../../src/wire/rtmp/publish-client.ts';
import { parsePublishUrl } from '../../../src/wire/rtmp/publish-url.ts';
import { parseRtmpUrl, parseStreamKey } from '../../../src/wire/rtmp/rtmp-url.ts';
import { FakeIngestGate } from '../../fakes/fake-ingest-gate.ts';
import { accept, RtmpServer } from '../../fakes/rtmp-server.ts';
import { ASC, AVCC } from '../../fixtures/bitstreams.ts';
import { serializeAmf3 } from '../../support/amf3-writer.ts';
import type { FuzzTarget } from '../support/fuzz-target.ts';
import { hex } from '../support/hex.ts';
import { tolerate } from '../support/tolerate.ts';

const word = (text: string): string => Buffer.from(text, 'latin1').toString('hex');

const METADATA = new AmfObject(
  [
    ['width', 1280],
    ['height', 720],
    ['videocodecid', 7],
    ['audiocodecid', 'mp4a'],
    ['stereo', true],
    ['encoder', 'obs'],
    ['videoTrackIdInfoMap', AmfObject.of({ 1: AmfObject.of({ videocodecid: 'hvc1', width: 1 }) })],
  ],
  'ecma-array',
);
const CONNECT = AmfObject.of({ app: 'live', tcUrl: 'rtmp://h/live', type: 'nonprivate', fourCcList: ['hvc1', 'av01'], objectEncoding: 0 });
const VALUES: readonly AmfValue[] = ['name', 1.5, -3, true, null, undefined, new Date(1e12), METADATA, [1, 'a', [null]], 'x'.repeat(70)];

const MEDIA = { chunkStreamId: 6, streamId: 1, timestamp: 0 };
const VIDEO_TAGS = [
  Buffer.concat([hex('17 00 000000'), AVCC.high720]),
  hex('17 01 000021 00000002 6588'),
  hex('27 01 fffff0 00000001 41'),
  hex(`90 ${word('hvc1')} 0101`),
  hex(`97 02 000400 03 ${word('hvc1')} aa`),
  hex(`97 02 000400 07 ff 0100 ${'00'.repeat(257)} f3 ${word('avc1')} aa`),
  hex(`96 13 ${word('hvc1')} 00 000001 aa 01 000002 bbcc`),
  hex(`96 20 ${word('avc1')} 00 000002 0142 ${word('av01')} 01 000001 81`),
  hex(`91 ${word('av01')} 1200 0a01aa`),
];
const AUDIO_TAGS = [
  Buffer.concat([hex('af 00'), ASC.stereo48]),
  hex('af 01 21aa'),
  hex('2f fffb50c0'),
  hex(`90 ${word('Opus')} ${word('OpusHead')} 0102380180bb0000000000`),
  hex(`91 ${word('Opus')} fc0102`),
  hex(`94 ${word('Opus')} 0002`),
  hex(`95 11 ${word('Opus')} 00 000001 fc`),
];
const AGGREGATE = hex('09 000002 000000 00 000001 1700 00000000 08 000001 000010 00 000001 af 00000000');

function media(typeId: number, payload: Uint8Array, timestamp = 0): RtmpMessage {
  return { ...MEDIA, typeId, payload, timestamp };
}

/** All messages of a publisher after the handshake. */
const PUBLISHING: readonly RtmpMessage[] = [
  controlMessage(MessageType.SET_CHUNK_SIZE, 4096),
  commandMessage({ name: 'connect', transactionId: 1, args: [CONNECT] }, 0),
  controlMessage(MessageType.WINDOW_ACK_SIZE, 2_500_000),
  commandMessage({ name: 'FCPublish', transactionId: 3, args: [null, 'key'] }, 0),
  commandMessage({ name: 'createStream', transactionId: 4, args: [null] }, 0),
  commandMessage({ name: 'publish', transactionId: 5, args: [null, 'key', 'live'] }, 1),
  dataMessage({ name: '@setDataFrame', args: ['onMetaData', METADATA] }, { streamId: 1, chunkStreamId: 5, timestamp: 0 }),
  ...VIDEO_TAGS.map((tag, at) => media(MessageType.VIDEO, tag, at * 40)),
  ...AUDIO_TAGS.map((tag, at) => media(MessageType.AUDIO, tag, at * 21)),
  media(MessageType.AGGREGATE, AGGREGATE, 400),
  userControlMessage(UserControlEvent.PING_REQUEST, 7),
  commandMessage({ name: 'deleteStream', transactionId: 6, args: [null, 1] }, 0),
];

function chunked(messages: readonly RtmpMessage[]): Buffer {
  const writer = new ChunkWriter();
  return Buffer.concat(
    messages.map((message) => {
      const bytes = writer.write(message);
      if (message.typeId === MessageType.SET_CHUNK_SIZE) writer.setChunkSize(parseControlValue(message));
      return bytes;
    }),
  );
}

/** A connection without its socket: chunks, control messages, session and feed, connected as in the provider. */
function publish(input: Buffer): number {
  const gate = new FakeIngestGate();
  let sent = 0;
  const send = (): void => {
    sent += 1;
  };
  const session = new RtmpSession({
    gate,
    limits: DEFAULT_RTMP_LIMITS,
    timeouts: DEFAULT_RTMP_TIMEOUTS,
    enhanced: true,
    clientId: 1,
    link: {
      local: { host: '127.0.0.1', port: 1935, scheme: 'rtmp' },
      sourceUrl: 'TCP://127.0.0.1:1',
      client: { address: '127.0.0.1', port: 1 },
      send,
      setChunkSize: send,
      onPublishing: () => undefined,
      onStarted: () => undefined,
      onUnpublished: () => undefined,
      onMalformed: () => undefined,
      onUnsupported: () => undefined,
      pauseReading: () => undefined,
      resumeReading: () => undefined,
      endRest: () => undefined,
      close: () => undefined,
      closeAfterFlush: () => undefined,
      failed: () => undefined,
      onRefused: () => undefined,
    },
  });
  const reader: ChunkReader = new ChunkReader({
    onMessage: (message) => {
      if (!control.receive(message)) session.receive(message);
    },
    onDiscard: fewDiscards(),
    limits: { ...DEFAULT_CHUNK_READER_LIMITS, pendingBytes: 1_000_000, mediaBytes: 500_000 },
  });
  const control = new ConnectionControl({ reader, send });
  try {
    control.countBytes(input.length);
    reader.push(input);
    control.acknowledge();
  } finally {
    session.feed?.checkStart(0);
    session.feed?.checkStart(10_000);
    session.end({ code: 'peer-left', detail: '' });
  }
  return sent + gate.streams.reduce((sum, stream) => sum + stream.packets.length + stream.trackSets.length, 0);
}

/** The reader of a peer limits messages that are begun and abandoned, because each takes memory. */
function fewDiscards(): () => void {
  let left = DEFAULT_RTMP_LIMITS.discardsPerSecond;
  return () => {
    left -= 1;
    if (left < 0) throw new ProtocolError('RTMP_DISCARDED', 'too many');
  };
}

/** Result of reading `input` in pieces of `piece` bytes, up to the error that ends it. */
function messagesOf(input: Buffer, piece: number): string[] {
  const messages: string[] = [];
  const reader = new ChunkReader({
    onMessage: ({ typeId, streamId, timestamp, payload }) => {
      messages.push(`${typeId} ${streamId} ${timestamp} ${Buffer.from(payload).toString('hex')}`);
      if (typeId === MessageType.SET_CHUNK_SIZE && payload.length >= 4) reader.setChunkSize(1 + (payload[3] ?? 0));
    },
    onDiscard: fewDiscards(),
    limits: { ...DEFAULT_CHUNK_READER_LIMITS, pendingBytes: 100_000, mediaBytes: 50_000 },
  });
  const whole = tolerate(() => {
    for (let at = 0; at < input.length; at += piece) reader.push(input.subarray(at, at + piece));
    return 'open';
  });
  return [...messages, whole ?? 'refused'];
}

/** Number of values in a value; a cycle counts once. */
function valuesIn(value: AmfValue, seen = new Set<unknown>()): number {
  if (typeof value !== 'object' || value === null || seen.has(value)) return 1;
  seen.add(value);
  const inside = value instanceof AmfObject ? [...value.fields.values()] : Array.isArray(value) ? value : [];
  return 1 + inside.reduce<number>((sum, item) => sum + valuesIn(item, seen), 0);
}

/** The server's part of the plain handshake. */
const GREETING = Buffer.concat([Buffer.of(3), Buffer.alloc(2 * 1536)]);

/** A server's answers to our publishing client in order, the handshake first. */
function serverAnswers(): Buffer[] {
  const answers: Buffer[] = [];
  const server = new RtmpServer((bytes) => answers.push(Buffer.from(bytes)), accept);
  const client = new PublishClient({
    ...{ app: 'live', stream: 'key', tcUrl: 'rtmp://h/live', fourCcs: ['hvc1'] },
    send: (bytes) => server.receive(Buffer.from(bytes)),
    onPublishing: () => undefined,
    onDiscard: () => undefined,
  });
  client.start();
  let given = 0;
  while (given < answers.length) client.receive(answers[given++]!);
  return answers;
}

function hello(variant: 'simple' | 'digest'): Buffer {
  return Buffer.concat([new ClientHandshake({ variant }).hello, Buffer.alloc(1536), chunked(PUBLISHING.slice(0, 2))]);
}

const TCURLS = ['rtmp://host:1935/live', 'rtmps://[::1]/live/inst?x=y', 'key?token=a&b=%20', 'rtmp://h/app/key', 'rtmp://u:p@h/a/b/c?d#e'];

export const RTMP_TARGETS: readonly FuzzTarget[] = [
  {
    name: 'rtmp-server-handshake',
    seeds: () => [hello('simple'), hello('digest')],
    run: (input) => {
      const handshake = new ServerHandshake();
      let replies = 0;
      for (let at = 0; at < input.length && !handshake.done; ) {
        const { consumed, reply } = handshake.push(input.subarray(at, at + 700));
        if (consumed === 0 && !handshake.done) throw new Error('the handshake takes nothing and is not done');
        at += consumed;
        replies += reply === null ? 0 : 1;
      }
      return replies;
    },
    most: () => 1,
    cost: 4,
  },
  {
    name: 'rtmp-publisher',
    seeds: () => [
      chunked(PUBLISHING),
      chunked(PUBLISHING.slice(0, 8)),
      ...PUBLISHING.map((message) => chunked([...PUBLISHING.slice(1, 6), message])),
    ],
    run: publish,
    most: (length) => 64 + length,
    cost: 2,
  },
  {
    name: 'rtmp-chunks',
    seeds: () => [chunked(PUBLISHING.slice(2, 9)), chunked(PUBLISHING.slice(7))],
    run: (input) => {
      const [whole = [], ...pieces] = [input.length, 1, 13].map((piece) => messagesOf(input, Math.max(1, piece)));
      if (pieces.some((other) => other.join() !== whole.join())) throw new Error('where bytes are cut makes a difference');
      return whole.length;
    },
    most: (length) => 2 + length,
    cost: 3,
  },
  {
    name: 'rtmp-client-handshake',
    seeds: () => [GREETING, serverAnswers()[0]!],
    run: (input) => {
      const handshake = new ClientHandshake({ variant: 'digest' });
      let replies = 0;
      for (let at = 0; at < input.length && !handshake.done; at += 700) {
        replies += handshake.push(input.subarray(at, at + 700)).reply === null ? 0 : 1;
      }
      return replies;
    },
    most: () => 1,
    cost: 4,
  },
  {
    name: 'rtmp-publish-client',
    seeds: () => [Buffer.concat(serverAnswers().slice(1))],
    run: (input) => {
      let sent = 0;
      const client = new PublishClient({
        ...{ app: 'live', stream: 'key', tcUrl: 'rtmp://h/live', fourCcs: ['hvc1'] },
        send: () => {
          sent += 1;
        },
        onPublishing: () => undefined,
        onDiscard: () => undefined,
      });
      client.start();
      client.receive(GREETING);
      for (let at = 0; at < input.length; at += 1000) client.receive(input.subarray(at, at + 1000));
      client.finish();
      return sent;
    },
    expects: (error) => error instanceof RtmpRefused,
    cost: 6,
  },
  {
    name: 'amf0',
    seeds: () => [serializeAmf0(VALUES), hex('0a 00000002 07 0000 07 0000'), Buffer.concat([hex('11'), serializeAmf3(METADATA)])],
    run: (input) => parseAmf0(input).reduce<number>((sum, value) => sum + valuesIn(value), 0),
    most: () => 8192,
  },
  {
    name: 'amf3',
    seeds: () => [
      ...VALUES.map((value) => serializeAmf3(value)),
      hex('090501 0401 0900'),
      hex('0d0500 00000001 00000002'),
      hex('110300 0601 0401'),
    ],
    run: (input) => {
      const reader = new AmfReader(input);
      let values = 0;
      while (!reader.atEnd) values += valuesIn(parseAmf3(reader));
      return values;
    },
    most: () => 8192,
  },
  {
    name: 'rtmp-metadata',
    seeds: () => [serializeAmf0([METADATA])],
    run: (input) => {
      const [first] = parseAmf0(input);
      if (!(first instanceof AmfObject)) return 0;
      const { video, audio } = parseMetadata(first.fields);
      return video.size + audio.size;
    },
    most: () => 512,
  },
  {
    name: 'rtmp-aggregate',
    seeds: () => [AGGREGATE],
    run: (input) => {
      let messages = 0;
      readAggregate(media(MessageType.AGGREGATE, input), () => {
        messages += 1;
      });
      return messages;
    },
    most: (length) => 1 + length / 11,
  },
  {
    name: 'rtmp-urls',
    form: 'text',
    seeds: () => TCURLS.map((url) => Buffer.from(url)),
    run: (input) => {
      const text = input.toString('utf8');
      parseRtmpUrl(text);
      parsePublishUrl(text, text);
      return Object.keys(parseStreamKey(text)).length;
    },
  },
  {
    name: 'flv-video-tag',
    seeds: () => VIDEO_TAGS,
    run: (input) => parseVideoTag(input).length,
    most: (length) => 1 + length / 4,
  },
  {
    name: 'flv-audio-tag',
    seeds: () => AUDIO_TAGS,
    run: (input) => parseAudioTag(input).length,
    most: (length) => 1 + length / 4,
  },
];
