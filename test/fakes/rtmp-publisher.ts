/** An RTMP publisher for tests: sends given messages, and keeps the answers. */
import net from 'node:net';
import tls from 'node:tls';
import { type AmfObject, AmfObject as AmfObjectClass, type AmfValue } from '../../src/wire/rtmp/amf.ts';
import { serializeAmf0 } from '../../src/wire/rtmp/amf0.ts';
import { ChunkReader } from '../../src/wire/rtmp/chunk-reader.ts';
import { ChunkWriter } from '../../src/wire/rtmp/chunk-writer.ts';
import { parseCommand, type RtmpCommand } from '../../src/wire/rtmp/command.ts';
import { controlMessage, parseControlValue } from '../../src/wire/rtmp/control.ts';
import { ClientHandshake } from '../../src/wire/rtmp/handshake.ts';
import { MessageType, type RtmpMessage } from '../../src/wire/rtmp/message.ts';
import { Changes } from './changes.ts';

/** The connection of a publisher. */
export interface Origin {
  /** A loopback address to connect from. */
  readonly from?: string;
  /** Sent before everything else. */
  readonly prelude?: Buffer;
  /** Connects over TLS (RTMPS) with this server name; accepts any certificate. */
  readonly serverName?: string;
}

export class RtmpPublisher {
  readonly socket: net.Socket;
  /** All messages of the server, in order. */
  readonly messages: RtmpMessage[] = [];
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
  readonly #handshake = new ClientHandshake({ variant: 'simple' });
  readonly #writer = new ChunkWriter();
  readonly #reader: ChunkReader = new ChunkReader({ onMessage: (message) => this.#onMessage(message) });
  readonly #changes = new Changes();

  private constructor(port: number, { from, prelude, serverName }: Origin) {
    const place = { port, host: '127.0.0.1', ...(from !== undefined && { localAddress: from }) };
    this.socket =
      serverName === undefined ? net.connect(place) : tls.connect({ ...place, servername: serverName, rejectUnauthorized: false });
    // Each write leaves at once: tests look at what the server has read.
    this.socket.setNoDelay(true);
    this.closed = new Promise((resolve) => {
      this.socket.once('close', () => resolve());
    });
    this.socket.on('error', () => undefined);
    this.socket.on('data', (data: Buffer) => this.#onData(data));
    this.socket.write(Buffer.concat([prelude ?? Buffer.alloc(0), this.#handshake.hello]));
  }

  /** Connects and completes the handshake. */
  static async open(port: number, origin: Origin = {}): Promise<RtmpPublisher> {
    const publisher = new RtmpPublisher(port, origin);
    await publisher.until(() => publisher.#handshake.done);
    return publisher;
  }

  /** Connects and publishes `key`; resolves when the server has answered. */
  static async publish(port: number, options: { tcUrl?: string; key?: string } & Origin = {}): Promise<RtmpPublisher> {
    const publisher = await RtmpPublisher.open(port, options);
    publisher.connect({ tcUrl: options.tcUrl ?? `rtmp://media.example:${port}/app` });
    publisher.call('createStream', 2, null);
    publisher.call('publish', 3, null, options.key ?? 'stream', 'live');
    await publisher.command('onStatus');
    return publisher;
  }

  connect(fields: Readonly<Record<string, AmfValue>>): void {
    this.call('connect', 1, AmfObjectClass.of({ app: 'app', type: 'nonprivate', ...fields }));
  }

  call(name: string, transactionId: number, ...args: readonly AmfValue[]): void {
    this.send({
      chunkStreamId: 3,
      typeId: MessageType.COMMAND_AMF0,
      streamId: 0,
      timestamp: 0,
      payload: serializeAmf0([name, transactionId, ...args]),
    });
  }

  metadata(fields: Readonly<Record<string, AmfValue>>): void {
    const payload = serializeAmf0(['@setDataFrame', 'onMetaData', new AmfObjectClass(Object.entries(fields), 'ecma-array')]);
    this.send({ chunkStreamId: 4, typeId: MessageType.DATA_AMF0, streamId: 1, timestamp: 0, payload });
  }

  /** `tag` as hex. */
  video(timestamp: number, tag: string): void {
    this.send({ chunkStreamId: 6, typeId: MessageType.VIDEO, streamId: 1, timestamp, payload: Buffer.from(tag, 'hex') });
  }

  /** `tag` as hex. */
  audio(timestamp: number, tag: string): void {
    this.send({ chunkStreamId: 5, typeId: MessageType.AUDIO, streamId: 1, timestamp, payload: Buffer.from(tag, 'hex') });
  }

  setChunkSize(size: number): void {
    this.send(controlMessage(MessageType.SET_CHUNK_SIZE, size));
    this.#writer.setChunkSize(size);
  }

  send(message: RtmpMessage): void {
    this.socket.write(this.#writer.write(message));
  }

  /** Resolves with the first command of this name. */
  async command(name: string): Promise<RtmpCommand> {
    let found: RtmpCommand | undefined;
    await this.until(() => {
      found = this.commands().find((command) => command.name === name);
      return found !== undefined;
    });
    return found!;
  }

  commands(): RtmpCommand[] {
    return this.messages.filter((message) => message.typeId === MessageType.COMMAND_AMF0).map((message) => parseCommand(message));
  }

  /** Resolves when `predicate` holds after something was received; the test's own timeout is the deadline. */
  until(predicate: () => boolean): Promise<void> {
    return this.#changes.until(predicate);
  }

  close(): void {
    this.socket.destroy();
  }

  #onMessage(message: RtmpMessage): void {
    if (message.typeId === MessageType.SET_CHUNK_SIZE) this.#reader.setChunkSize(parseControlValue(message));
    this.messages.push(message);
  }

  #onData(data: Buffer): void {
    let rest = data;
    if (!this.#handshake.done) {
      const { consumed, reply } = this.#handshake.push(data);
      if (reply !== null) this.socket.write(reply);
      rest = data.subarray(consumed);
    }
    this.#reader.push(rest);
    this.#changes.notify();
  }
}

/** The information object of a status command. */
export function informationOf(command: RtmpCommand): Record<string, AmfValue> {
  return Object.fromEntries((command.args[1] as AmfObject).fields);
}
