/** Clients of a TCP server whose sockets are read by a `SocketReader`. */
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import type { NativeAddon } from '../../src/native/addon.ts';
import { Rest, SocketReader } from '../../src/native/tcp/socket-reader.ts';
import { until } from '../harness/poll.ts';

/** Both ends of a connection. */
export interface ReadClient {
  readonly client: net.Socket;
  /** The socket that the server accepted. */
  readonly accepted: net.Socket;
  /** The socket that the reader returned. */
  readonly socket: net.Socket;
  readonly bytes: () => Buffer;
  /** Number of bytes of each read. */
  readonly reads: readonly number[];
}

/** Names of the events of a socket, in order. */
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
  /** Answer to every read. */
  rest: Rest = Rest.NONE;
  /** Time in a short rest until data is needed, ms. */
  neededIn = 0;
  /** Number of questions for `neededIn`. */
  asked = 0;
  /** Duration of each read, ms. */
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
        return this.neededIn;
      });
      taken.resolve({ accepted, socket, bytes: () => bytes, reads });
    });
    const client = net.connect(this.port, '127.0.0.1');
    this.clients.push(client);
    await once(client, 'connect');
    return { client, ...(await taken.promise) };
  }

  /** Resolves when data of a newly connected client has been read, so that earlier data has been read, too. */
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
