/** A client that wastes time: it sends part of a conversation, then nothing or single bytes, and never closes. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** The messages of one client of a protocol. */
export interface Conversation {
  readonly name: string;
  readonly messages: readonly Buffer[];
  /** Repeated when all messages have been sent. */
  readonly filler: Buffer;
  /** Uses TLS with this protocol. */
  readonly alpn?: 'h2' | 'http/1.1';
  /** TLS before the first message, for protocols in which the server speaks first. */
  readonly tls?: boolean;
}

/** The point where a client starts to misbehave, and its misbehaviour. */
export interface Manner {
  /** Number of messages sent correctly. */
  readonly whole: number;
  /** `silent`: half of the next message, then nothing. `trickle`: byte by byte. `deaf`: repeats the messages without reading. */
  readonly ending: 'silent' | 'trickle' | 'deaf';
}

/** Manners that misbehave at each point of a conversation. */
export function mannersOf({ messages }: Conversation): Manner[] {
  const manners: Manner[] = [];
  for (let whole = 0; whole <= messages.length; whole += 1) manners.push({ whole, ending: 'silent' }, { whole, ending: 'trickle' });
  return manners;
}

export class SlowClient {
  readonly name: string;
  /** Local port, by which the server knows the client. */
  localPort = 0;
  readonly #tcp: Socket;
  #timer: NodeJS.Timeout | null = null;

  private constructor(name: string, tcp: Socket) {
    this.name = name;
    this.#tcp = tcp;
  }

  /** Connects and begins. `every`: ms between two bytes of a trickling client. */
  static async start(port: number, conversation: Conversation, manner: Manner, every: number): Promise<SlowClient> {
    const tcp = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const name = `${conversation.name} on port ${port}: ${manner.ending} after ${manner.whole} message(s)`;
    const client = new SlowClient(name, tcp);
    tcp.on('error', () => undefined);
    await once(tcp, 'connect');
    client.localPort = tcp.localPort ?? 0;
    const speaker = conversation.tls === true ? await secured(tcp, conversation.alpn ?? 'http/1.1') : tcp;
    if (speaker !== null) client.#speak(speaker, conversation, manner, every);
    return client;
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#tcp.destroy();
  }

  #speak(socket: Socket, { messages, filler }: Conversation, { whole, ending }: Manner, every: number): void {
    if (ending === 'deaf') socket.pause();
    else socket.resume();
    for (const message of messages.slice(0, whole)) socket.write(message);
    const next = messages[whole] ?? filler;
    if (ending === 'silent') {
      if (whole < messages.length) socket.write(next.subarray(0, next.length >> 1));
      return;
    }
    if (ending === 'deaf') {
      const all = Buffer.concat(Array.from({ length: 500 }, () => next));
      const ask = (): void => {
        while (socket.writable && socket.write(all));
      };
      socket.on('drain', ask);
      ask();
      return;
    }
    let said = 0;
    this.#timer = setInterval(() => {
      if (socket.destroyed) return;
      // The filler is sent as whole messages: the other messages already test cuts.
      const rest = whole < messages.length ? next.subarray(said, said + 1) : filler;
      socket.write(rest.length > 0 ? rest : filler.subarray(0, 1));
      said += 1;
    }, every);
  }
}

/** Null when the server closed the connection during the handshake. */
async function secured(tcp: Socket, alpn: string): Promise<Socket | null> {
  const socket = connectTls({ socket: tcp, rejectUnauthorized: false, ALPNProtocols: [alpn], servername: 'localhost' });
  socket.on('error', () => undefined);
  const { promise, resolve } = Promise.withResolvers<Socket | null>();
  socket.once('secureConnect', () => resolve(socket));
  socket.once('close', () => resolve(null));
  return promise;
}

/** The first bytes of a TLS client. */
export async function clientHello(): Promise<Buffer> {
  const { Duplex } = await import('node:stream');
  const { promise, resolve } = Promise.withResolvers<Buffer>();
  const wire = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      resolve(chunk);
      done();
    },
  });
  const socket = connectTls({ socket: wire, rejectUnauthorized: false });
  socket.on('error', () => undefined);
  const hello = await promise;
  socket.destroy();
  return hello;
}
