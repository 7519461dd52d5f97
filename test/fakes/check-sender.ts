/** Sends connectivity checks from its own address: as another client, or over another path of the same peer. */
import { randomBytes } from 'node:crypto';
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { parseStun, StunAttribute, StunType, serializeStun, xorMappedAddress } from '../../src/wire/stun/stun-message.ts';

/** Higher than the priority of any candidate. */
const PRIORITY = 0x7fff_ffff;

export interface CheckedServer {
  readonly port: number;
  readonly ufrag: string;
  readonly password: string;
}

export class CheckSender {
  /** Bytes sent to the server, and received from it. */
  sent = 0;
  received = 0;
  /** Received datagrams by their first byte: 0 to 3 is STUN, 20 to 63 DTLS, 128 to 191 media. */
  readonly kinds = { stun: 0, dtls: 0, media: 0 };
  readonly #socket: Socket;
  readonly #server: CheckedServer;
  /** Password for answers to the server's checks; empty: checks are not answered. */
  #answers = '';

  private constructor(socket: Socket, server: CheckedServer) {
    this.#socket = socket;
    this.#server = server;
    socket.on('message', (datagram, from) => this.#take(datagram, from));
  }

  /** Opens a free port of `host`. */
  static async open(host: string, server: CheckedServer): Promise<CheckSender> {
    const socket = createSocket('udp4');
    socket.bind(0, host);
    await once(socket, 'listening');
    return new CheckSender(socket, server);
  }

  /** Sends a check with valid integrity, the highest priority and a nomination. */
  check(): void {
    const { ufrag, password } = this.#server;
    const priority = Buffer.alloc(4);
    priority.writeUInt32BE(PRIORITY);
    const attributes = [
      [StunAttribute.USERNAME, Buffer.from(`${ufrag}:x`)],
      [StunAttribute.ICE_CONTROLLING, randomBytes(8)],
      [StunAttribute.PRIORITY, priority],
      [StunAttribute.USE_CANDIDATE, Buffer.alloc(0)],
    ] as const;
    this.send(serializeStun({ type: StunType.BINDING_REQUEST, transaction: randomBytes(12), attributes, password }));
  }

  send(datagram: Uint8Array): void {
    this.sent += datagram.length;
    this.#socket.send(datagram, this.#server.port, '127.0.0.1');
  }

  /** From now on answers checks with this password. */
  answer(password: string): void {
    this.#answers = password;
  }

  close(): void {
    this.#socket.close();
  }

  #take(datagram: Buffer, { address, port }: RemoteInfo): void {
    this.received += datagram.length;
    const first = datagram[0] ?? 0xff;
    this.kinds[first <= 3 ? 'stun' : first <= 63 ? 'dtls' : 'media'] += 1;
    if (first > 3 || this.#answers === '') return;
    const { type, transaction } = parseStun(datagram);
    if (type !== StunType.BINDING_REQUEST) return;
    const attributes = [[StunAttribute.XOR_MAPPED_ADDRESS, xorMappedAddress(address, port, transaction)]] as const;
    this.send(serializeStun({ type: StunType.BINDING_SUCCESS, transaction, attributes, password: this.#answers }));
  }
}
