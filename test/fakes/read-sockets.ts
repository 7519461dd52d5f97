/** Clients of a TCP server whose sockets a `SocketReader` reads. */
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import type { NativeAddon } from '../../src/native/addon.ts';
import { Rest, SocketReader } from '../../src/native/tcp/socket-reader.ts';
import { until } from '../harness/poll.ts';

/** Both ends of a connection. */
export interface ReadClient {
  readonly client: net.Socket;
  /** As the server accepted it. */
  readonly accepted: net.Socket;
  /** As the reader has given it back. */
  readonly socket: net.Socket;
  readonly bytes: () => Buffer;
  /** What each read has brought. */
  readonly reads: readonly number[];
}

/** What was told of a socket, in order. */
export function socketEvents(socket: net.Socket): string[] {
  const told: string[] = [];
  for (const name of ['end', 'close']) socket.on(name, () => told.push(name));
  socket.on('error', (error: NodeJS.ErrnoException) => told.push(error.code ?? error.message));
  return told;
}

/** A server and its clients; `listen` comes first, `close` ends all. */
export class ReadSockets {
  readonly reader: SocketReader;
  readonly clients: net.Socket[] = [];
  server = net.createServer({ pauseOnConnect: true });
  /** What is answered for every read. */
  rest: Rest = Rest.NONE;
  /** For how long, ms, nothing that comes will be needed, in a short rest. */
  slack = 0;
  /** How often that was asked. */
  asked = 0;
  /** How long each read takes, ms. */
  work = 0;

  constructor(addon: NativeAddon | null) {
    this.reader = new SocketReader(addon);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async listen(): Promise<void> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
  }

  /** Connects a client; resolves with both ends. */
  async connect(): Promise<ReadClient> {
    const taken = Promise.withResolvers<Omit<ReadClient, 'client'>>();
    this.server.once('connection', (accepted: net.Socket) => {
      let bytes = Buffer.alloc(0);
      const reads: number[] = [];
      const onRead = (data: Buffer, length: number): Rest => {
        bytes = Buffer.concat([bytes, data.subarray(0, length)]);
        reads.push(length);
        const from = performance.now();
        while (performance.now() - from < this.work);
        return this.rest;
      };
      const socket = this.reader.adopt(accepted, onRead, () => {
        this.asked += 1;
        return this.slack;
      });
      taken.resolve({ accepted, socket, bytes: () => bytes, reads });
    });
    const client = net.connect(this.port, '127.0.0.1');
    this.clients.push(client);
    await once(client, 'connect');
    return { client, ...(await taken.promise) };
  }

  /** Resolves when somebody was heard who spoke later than all before. */
  async others(): Promise<void> {
    const before = this.rest;
    this.rest = Rest.NONE;
    const other = await this.connect();
    other.client.write('other');
    await until('the other is heard', () => other.bytes().toString() === 'other', { everyMs: 5 });
    this.rest = before;
  }

  close(): void {
    this.rest = Rest.NONE;
    for (const client of this.clients.splice(0)) client.destroy();
    this.server.close();
  }
}
