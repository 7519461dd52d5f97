/** An OVT origin that follows a script. */
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { MEDIA_FIELD, MEDIA_HEADER_LENGTH } from '../../src/wire/ovt/media-packet.ts';
import { type OvtRequest, type OvtResponse, parseRequest, serializeResponse } from '../../src/wire/ovt/message.ts';
import { OvtPayloadType, PacketWriter, writeInt64 } from '../../src/wire/ovt/packet.ts';
import { OvtReader } from '../../src/wire/ovt/reader.ts';

/** The answer to a request; null: no answer. */
export type OvtScript = (request: OvtRequest) => Partial<OvtResponse> | Buffer | null;

export interface OvtUnit {
  readonly trackId: number;
  readonly pts?: number;
  readonly dts?: number;
  readonly flag?: number;
  readonly format: number;
  readonly data: Uint8Array;
}

export class FakeOvtOrigin {
  readonly requests: OvtRequest[] = [];
  /** Number of connections that have ended. */
  ended = 0;
  readonly #script: OvtScript;
  readonly #server: net.Server;
  readonly #sockets = new Set<net.Socket>();

  constructor(script: OvtScript) {
    this.#script = script;
    this.#server = net.createServer((socket) => this.#accept(socket));
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  /** Sends bytes to every edge. */
  send(bytes: Uint8Array): void {
    for (const socket of this.#sockets) socket.write(bytes);
  }

  sendMedia({ trackId, pts = 0, dts = pts, flag = 2, format, data }: OvtUnit): void {
    const header = Buffer.alloc(MEDIA_HEADER_LENGTH);
    header.writeUInt32BE(trackId, MEDIA_FIELD.TRACK_ID);
    writeInt64(header, pts, MEDIA_FIELD.PTS);
    writeInt64(header, dts, MEDIA_FIELD.DTS);
    header[MEDIA_FIELD.FLAG] = flag;
    header[MEDIA_FIELD.FORMAT] = format;
    header.writeUInt32BE(data.length, MEDIA_FIELD.DATA_SIZE);
    const writer = new PacketWriter(OvtPayloadType.MEDIA, 1);
    writer.begin(MEDIA_HEADER_LENGTH + data.length, 0, pts);
    writer.put(header);
    writer.put(data);
    this.send(writer.finish());
  }

  /** Sends a response to every edge. */
  respond(response: Partial<OvtResponse>): void {
    this.send(responseBytes(response));
  }

  async until(predicate: (origin: this) => boolean): Promise<void> {
    while (!predicate(this)) await delay(5);
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #accept(socket: net.Socket): void {
    this.#sockets.add(socket);
    const reader = new OvtReader({ message: 10_000, media: 0 });
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.ended += 1;
    });
    socket.on('data', (data: Buffer) => {
      reader.push(data, (_type, payload) => {
        const request = parseRequest(payload);
        this.requests.push(request);
        const answer = this.#script(request);
        if (Buffer.isBuffer(answer)) socket.write(answer);
        else if (answer !== null) socket.write(responseBytes({ id: request.id, command: request.command, ...answer }));
      });
    });
  }
}

function responseBytes(response: Partial<OvtResponse>): Buffer {
  return serializeResponse({ id: 0, command: 'unknown', code: 200, message: 'ok', contents: undefined, ...response }, 0);
}
