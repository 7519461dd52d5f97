/** A small RTMP publisher that records the sending time of each video frame, to the microsecond. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { within } from '../../test/harness/poll.ts';
import { type FlvTag, isAudioFrame, isVideoFrame } from './source.ts';

const HANDSHAKE_LENGTH = 1536;
const PEER_CHUNK_SIZE = 128;
const OWN_CHUNK_SIZE = 60_000;
const SET_CHUNK_SIZE = 1;
const COMMAND = 20;
const VIDEO = 9;
const VIDEO_CHUNKS = 6;
const AUDIO_CHUNKS = 4;
const ANSWER_DEADLINE_MS = 5000;

type AmfValue = string | number | null | { readonly [key: string]: AmfValue };

function amf(value: AmfValue): Buffer {
  if (value === null) return Buffer.of(5);
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(9);
    bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (typeof value === 'string') return Buffer.concat([Buffer.of(2), amfKey(value)]);
  const members = Object.entries(value).flatMap(([key, member]) => [amfKey(key), amf(member)]);
  return Buffer.concat([Buffer.of(3), ...members, Buffer.of(0, 0, 9)]);
}

function amfKey(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes]);
}

/** One message as chunks: a full header, then continuation headers. */
function chunks(chunkStream: number, type: number, timestamp: number, messageStream: number, payload: Buffer, size: number): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt8(chunkStream, 0);
  header.writeUIntBE(timestamp, 1, 3);
  header.writeUIntBE(payload.length, 4, 3);
  header.writeUInt8(type, 7);
  header.writeUInt32LE(messageStream, 8);
  const pieces = [header, payload.subarray(0, size)];
  for (let at = size; at < payload.length; at += size) pieces.push(Buffer.of(0xc0 | chunkStream), payload.subarray(at, at + size));
  return Buffer.concat(pieces);
}

/** A tag as sent after the publish command, at `timestamp` ms. */
export function tagMessage(tag: FlvTag, timestamp: number): Buffer {
  return chunks(tag.type === VIDEO ? VIDEO_CHUNKS : AUDIO_CHUNKS, tag.type, timestamp, 1, tag.data, OWN_CHUNK_SIZE);
}

/** Parses the server's messages as far as a publisher needs them. */
class MessageReader {
  #buffer = Buffer.alloc(0);
  #chunkSize = PEER_CHUNK_SIZE;
  readonly #streams = new Map<number, { type: number; length: number; payload: Buffer }>();

  /** Takes bytes and returns completed messages. */
  read(bytes: Buffer): { type: number; payload: Buffer }[] {
    this.#buffer = Buffer.concat([this.#buffer, bytes]);
    const messages: { type: number; payload: Buffer }[] = [];
    for (let message = this.#chunk(); message !== null; message = this.#chunk()) {
      if (message.payload.length < message.length) continue;
      // Later headers may omit unchanged fields.
      this.#streams.set(message.stream, { type: message.type, length: message.length, payload: Buffer.alloc(0) });
      if (message.type === SET_CHUNK_SIZE) this.#chunkSize = message.payload.readUInt32BE(0);
      messages.push(message);
    }
    return messages;
  }

  /** A chunk; null while it is incomplete. */
  #chunk(): { stream: number; type: number; length: number; payload: Buffer } | null {
    const first = this.#buffer[0];
    if (first === undefined) return null;
    const stream = first & 0x3f;
    const headerLength = [11, 7, 3, 0][first >> 6] ?? 0;
    if (this.#buffer.length < 1 + headerLength) return null;
    const known = this.#streams.get(stream) ?? { type: 0, length: 0, payload: Buffer.alloc(0) };
    const fresh = headerLength >= 7 ? { type: this.#buffer.readUInt8(7), length: this.#buffer.readUIntBE(4, 3) } : known;
    const take = Math.min(this.#chunkSize, fresh.length - known.payload.length);
    if (this.#buffer.length < 1 + headerLength + take) return null;
    const payload = Buffer.concat([known.payload, this.#buffer.subarray(1 + headerLength, 1 + headerLength + take)]);
    this.#buffer = this.#buffer.subarray(1 + headerLength + take);
    this.#streams.set(stream, { type: fresh.type, length: fresh.length, payload });
    return { stream, type: fresh.type, length: fresh.length, payload };
  }
}

/** Publishes the tags of a file once, paced by their timestamps. */
export class RtmpSender {
  /** Video frames in sending order: media time, and `performance.now()` when sent. Both ms. */
  readonly frames: { readonly timestamp: number; readonly sentAt: number }[] = [];
  /** The user of `write` sets the pace. */
  readonly socket: Socket;
  readonly #reader = new MessageReader();
  #awaited: { text: string; resolve: () => void } | null = null;

  private constructor(socket: Socket) {
    this.socket = socket;
  }

  /** Connects and publishes `stream`; resolves when the server has accepted it. */
  static async open(port: number, app: string, stream: string): Promise<RtmpSender> {
    const socket = connect(port, '127.0.0.1').setNoDelay(true);
    await once(socket, 'connect');
    const sender = new RtmpSender(socket);
    await sender.#handshake();
    await sender.#command('_result', ['connect', 1, { app, type: 'nonprivate', tcUrl: `rtmp://127.0.0.1:${port}/${app}` }]);
    sender.write(chunks(2, SET_CHUNK_SIZE, 0, 0, Buffer.of(0, 0, OWN_CHUNK_SIZE >> 8, OWN_CHUNK_SIZE & 0xff), PEER_CHUNK_SIZE));
    await sender.#command('_result', ['createStream', 2, null]);
    await sender.#command('NetStream.Publish.Start', ['publish', 3, null, stream, 'live'], 1);
    return sender;
  }

  /**
   * Sends all tags in real time until the end or `signal`. The first video frame has media time 0, and no audio comes before it, so that
   * media times of the server and of `frames` agree.
   */
  async send(tags: readonly FlvTag[], signal: AbortSignal): Promise<void> {
    const base = tags.find(isVideoFrame)?.timestamp ?? 0;
    const startedAt = performance.now();
    for (const tag of tags) {
      if (isAudioFrame(tag) && tag.timestamp < base) continue;
      const timestamp = Math.max(0, tag.timestamp - base);
      const wait = startedAt + timestamp - performance.now();
      if (wait > 0) await delay(wait);
      if (signal.aborted) return;
      if (isVideoFrame(tag)) this.frames.push({ timestamp, sentAt: performance.now() });
      this.write(tagMessage(tag, timestamp));
    }
  }

  /** Index of the frame whose media time is nearest to `timestamp` (ms). */
  indexOf(timestamp: number): number {
    const after = this.frames.findIndex((frame) => frame.timestamp >= timestamp);
    const late = this.frames[after];
    const early = this.frames[after - 1];
    if (late === undefined) return this.frames.length - 1;
    return early !== undefined && timestamp - early.timestamp < late.timestamp - timestamp ? after - 1 : after;
  }

  close(): void {
    this.socket.destroy();
  }

  async #handshake(): Promise<void> {
    this.write(Buffer.concat([Buffer.of(3), Buffer.alloc(HANDSHAKE_LENGTH)]));
    let answer = Buffer.alloc(0);
    while (answer.length < 1 + 2 * HANDSHAKE_LENGTH) {
      const [bytes] = (await within('the RTMP handshake', ANSWER_DEADLINE_MS, once(this.socket, 'data'))) as [Buffer];
      answer = Buffer.concat([answer, bytes]);
    }
    this.write(answer.subarray(1, 1 + HANDSHAKE_LENGTH));
    this.socket.on('data', (bytes: Buffer) => {
      for (const { type, payload } of this.#reader.read(bytes)) {
        if (type === COMMAND && this.#awaited !== null && payload.includes(this.#awaited.text)) this.#awaited.resolve();
      }
    });
  }

  async #command(answer: string, values: readonly AmfValue[], messageStream = 0): Promise<void> {
    const answered = new Promise<void>((resolve) => {
      this.#awaited = { text: answer, resolve };
    });
    this.write(
      chunks(3, COMMAND, 0, messageStream, Buffer.concat(values.map(amf)), messageStream === 0 ? PEER_CHUNK_SIZE : OWN_CHUNK_SIZE),
    );
    await within(`RTMP answer ${answer}`, ANSWER_DEADLINE_MS, answered);
  }

  /** Writes messages made by `tagMessage`. */
  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }
}
