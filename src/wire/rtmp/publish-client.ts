/** The publishing side of a connection (RTMP 1.0 §7.2, Enhanced RTMP v2 for codecs beyond H.264 and AAC). Without a socket. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { AmfObject, type AmfValue } from './amf.ts';
import { ChunkReader, type ChunkReaderLimits } from './chunk-reader.ts';
import { ChunkWriter } from './chunk-writer.ts';
import { commandMessage, dataMessage, parseCommand, type RtmpCommand } from './command.ts';
import { ConnectionControl } from './connection-control.ts';
import { controlMessage } from './control.ts';
import { ClientHandshake } from './handshake.ts';
import { MessageType, type RtmpMessage } from './message.ts';

const AUDIO_CHUNK_STREAM = 4;
const DATA_CHUNK_STREAM = 5;
const VIDEO_CHUNK_STREAM = 6;
/** Large enough to send most frames as one chunk, small enough for every known server. */
const OWN_CHUNK_SIZE = 60_000;
/** Messages of servers are short. */
const READER_LIMITS: ChunkReaderLimits = {
  mediaBytes: 65_536,
  controlBytes: 65_536,
  pendingBytes: 262_144,
  chunkStreams: 64,
  trustedBytes: 4096,
};
/** Name by which servers know encoders that publish. */
const FLASH_VERSION = 'FMLE/3.0 (compatible; Millrace)';
const Transaction = { CONNECT: 1, RELEASE: 2, FC_PUBLISH: 3, CREATE_STREAM: 4, PUBLISH: 5, FC_UNPUBLISH: 6, DELETE_STREAM: 7 } as const;

/** The server refused; `code` is its reason, such as `NetStream.Publish.BadName`. */
export class RtmpRefused extends Error {
  override readonly name = 'RtmpRefused';
  readonly code: string;

  constructor(code: string, description: string) {
    super(description === '' ? code : `${code}: ${description}`);
    this.code = code;
  }
}

/** The stream to publish, and the receiver of bytes. `send` is called within calls of the client. */
export interface PublishClientOptions {
  readonly app: string;
  readonly stream: string;
  readonly tcUrl: string;
  /** Codecs of Enhanced RTMP that are to be sent, by FourCC; empty for H.264 and AAC alone. */
  readonly fourCcs: readonly string[];
  /** Takes bytes to send; they are never written to afterwards. */
  readonly send: (bytes: Uint8Array) => void;
  /** The server accepts media from now on. Called once. */
  readonly onPublishing: () => void;
  /** The server left a message unfinished; may throw `ProtocolError` if that happens too often. */
  readonly onDiscard: () => void;
}

/** Processes the server's messages up to the point where media can be published. Must not be used after a throw. */
export class PublishClient {
  readonly #options: PublishClientOptions;
  readonly #handshake = new ClientHandshake({ variant: 'digest' });
  readonly #reader = new ChunkReader({
    onMessage: (message) => this.#receive(message),
    onDiscard: () => this.#options.onDiscard(),
    limits: READER_LIMITS,
  });
  readonly #writer = new ChunkWriter();
  readonly #control = new ConnectionControl({ reader: this.#reader, send: (message) => this.#send(message) });
  #state: 'handshake' | 'connecting' | 'creating' | 'starting' | 'publishing' | 'over' = 'handshake';
  #streamId = 0;
  #announced: readonly string[] = [];

  constructor(options: PublishClientOptions) {
    this.#options = options;
  }

  get publishing(): boolean {
    return this.#state === 'publishing';
  }

  /** Starts the handshake. Call once, when the connection is open. */
  start(): void {
    this.#options.send(this.#handshake.hello);
  }

  /** Takes received bytes. Throws `ProtocolError` for invalid RTMP and `RtmpRefused` if the server refuses. */
  receive(data: Buffer): void {
    if (this.#state === 'over') return;
    this.#control.countBytes(data.length);
    const rest = this.#handshake.done ? data : this.#shakeHands(data);
    if (rest.length > 0) this.#reader.push(rest);
    if (this.#handshake.done) this.#control.acknowledge();
  }

  /** Whether the server accepts a codec besides H.264 and AAC, by FourCC; `*` for any. Known when publishing. */
  takes(fourCc: string): boolean {
    return this.#announced.includes(fourCc) || this.#announced.includes('*');
  }

  /** Describes the stream; servers keep it for their players. */
  metadata(fields: Readonly<Record<string, AmfValue>>): void {
    const description = new AmfObject(Object.entries(fields), 'ecma-array');
    const at = { streamId: this.#streamId, chunkStreamId: DATA_CHUNK_STREAM, timestamp: 0 };
    this.#send(dataMessage({ name: '@setDataFrame', args: ['onMetaData', description] }, at));
  }

  /** Sends a data message of AMF0 values that are serialized already. `timestamp` in ms. */
  data(timestamp: number, payload: Uint8Array): void {
    const at = { streamId: this.#streamId, chunkStreamId: DATA_CHUNK_STREAM, timestamp };
    this.#send({ ...at, typeId: MessageType.DATA_AMF0, payload: Buffer.from(payload) });
  }

  /** Appends the pieces of a tag to `out` without copying them; returns their bytes. `timestamp` in ms. */
  media(kind: 'audio' | 'video', timestamp: number, tag: readonly Uint8Array[], out: Uint8Array[]): number {
    const head =
      kind === 'video'
        ? { chunkStreamId: VIDEO_CHUNK_STREAM, typeId: MessageType.VIDEO }
        : { chunkStreamId: AUDIO_CHUNK_STREAM, typeId: MessageType.AUDIO };
    return this.#writer.gather({ ...head, streamId: this.#streamId, timestamp }, tag, out);
  }

  /** Ends the publication, so that the server ends the stream at once. Idempotent. */
  finish(): void {
    const opened = this.#state === 'starting' || this.#state === 'publishing';
    if (opened) {
      this.#call('FCUnpublish', Transaction.FC_UNPUBLISH, this.#options.stream);
      this.#call('deleteStream', Transaction.DELETE_STREAM, this.#streamId);
    }
    this.#state = 'over';
  }

  #shakeHands(data: Buffer): Buffer {
    const { consumed, reply } = this.#handshake.push(data);
    if (reply !== null) this.#options.send(reply);
    if (this.#handshake.done) {
      this.#state = 'connecting';
      this.#connect();
    }
    return data.subarray(consumed);
  }

  #connect(): void {
    const { app, tcUrl, fourCcs } = this.#options;
    const fields: Record<string, AmfValue> = { app, type: 'nonprivate', flashVer: FLASH_VERSION, tcUrl };
    if (fourCcs.length > 0) fields['fourCcList'] = fourCcs;
    this.#send(commandMessage({ name: 'connect', transactionId: Transaction.CONNECT, args: [AmfObject.of(fields)] }, 0));
  }

  #receive(message: RtmpMessage): void {
    if (this.#control.receive(message)) return;
    const { typeId } = message;
    // All other data messages are for players.
    if (typeId === MessageType.COMMAND_AMF0 || typeId === MessageType.COMMAND_AMF3) this.#receiveCommand(parseCommand(message));
  }

  #receiveCommand(command: RtmpCommand): void {
    switch (command.name) {
      case '_result':
        this.#receiveResult(command);
        break;
      case '_error':
        // Servers without these two commands may say so.
        if (command.transactionId !== Transaction.RELEASE && command.transactionId !== Transaction.FC_PUBLISH) throw refusalIn(command);
        break;
      case 'onStatus':
        this.#receiveStatus(command);
        break;
      case 'close':
        throw new RtmpRefused('close', 'the server closed the connection');
      default:
      // onBWDone, onFCPublish: nothing depends on them.
    }
  }

  #receiveResult(command: RtmpCommand): void {
    if (this.#state === 'connecting' && command.transactionId === Transaction.CONNECT) {
      this.#announced = command.args.flatMap(fourCcsIn);
      this.#send(controlMessage(MessageType.SET_CHUNK_SIZE, OWN_CHUNK_SIZE));
      this.#writer.setChunkSize(OWN_CHUNK_SIZE);
      this.#call('releaseStream', Transaction.RELEASE, this.#options.stream);
      this.#call('FCPublish', Transaction.FC_PUBLISH, this.#options.stream);
      this.#call('createStream', Transaction.CREATE_STREAM);
      this.#state = 'creating';
    } else if (this.#state === 'creating' && command.transactionId === Transaction.CREATE_STREAM) {
      const id = command.args[1];
      if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id > 0xffff_ffff) {
        throw new ProtocolError('RTMP_STREAM_ID', 'the answer to createStream holds no stream id');
      }
      this.#streamId = id;
      const args = [null, this.#options.stream, 'live'];
      this.#send(commandMessage({ name: 'publish', transactionId: Transaction.PUBLISH, args }, id));
      this.#state = 'starting';
    }
  }

  #receiveStatus(command: RtmpCommand): void {
    const { level, code } = statusIn(command);
    if (level === 'error') throw refusalIn(command);
    if (this.#state !== 'starting' || code !== 'NetStream.Publish.Start') return;
    this.#state = 'publishing';
    this.#options.onPublishing();
  }

  #call(name: string, transactionId: number, ...args: readonly AmfValue[]): void {
    this.#send(commandMessage({ name, transactionId, args: [null, ...args] }, 0));
  }

  #send(message: RtmpMessage): void {
    this.#options.send(this.#writer.write(message));
  }
}

/** The codecs named by `fourCcList` and the two info maps of an answer. */
function fourCcsIn(value: AmfValue): string[] {
  if (!(value instanceof AmfObject)) return [];
  const list = value.get('fourCcList');
  const listed = Array.isArray(list) ? list.filter((item) => typeof item === 'string') : [];
  const mapped = ['videoFourCcInfoMap', 'audioFourCcInfoMap'].flatMap((name) => {
    const map = value.get(name);
    return map instanceof AmfObject ? [...map.fields.keys()] : [];
  });
  return [...listed, ...mapped];
}

function statusIn({ args }: RtmpCommand): { level: string; code: string; description: string } {
  const information = args.find((value) => value instanceof AmfObject && value.get('code') !== undefined);
  const text = (name: string): string => {
    const value = information instanceof AmfObject ? information.get(name) : '';
    return typeof value === 'string' ? value : '';
  };
  return { level: text('level'), code: text('code'), description: text('description') };
}

/** Limit, because peers choose these texts, and they end up in logs and answers. */
const MAX_TEXT = 200;

function refusalIn(command: RtmpCommand): RtmpRefused {
  const { code, description } = statusIn(command);
  return new RtmpRefused((code === '' ? command.name : code).slice(0, MAX_TEXT), description.slice(0, MAX_TEXT));
}
