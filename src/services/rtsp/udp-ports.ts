/** A pair of UDP ports for RTP and RTCP of one track, RFC 3550 §11. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';

const MAX_TRIES = 16;
const RECEIVE_BUFFER = 2_097_152;
/** Opens the way through a firewall: an RTP packet without content. */
const GREETING = Uint8Array.of(0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

/** Their opener calls `close`, which releases both. */
export class UdpPorts {
  /** Datagrams from another sender than the server. */
  foreign = 0;
  readonly #rtp: Socket;
  readonly #rtcp: Socket;
  #server: { readonly address: string; readonly rtp: number; readonly rtcp: number } | null = null;

  private constructor(rtp: Socket, rtcp: Socket) {
    this.#rtp = rtp;
    this.#rtcp = rtcp;
  }

  /** Binds an even port and the one behind it on `address`. Rejects when there is no such pair. */
  static async open(address: string): Promise<UdpPorts> {
    for (let count = 0; count < MAX_TRIES; count += 1) {
      const rtp = await bind(address, 0);
      const { port } = rtp.address();
      const rtcp = port % 2 === 0 ? await bind(address, port + 1).catch(() => null) : null;
      if (rtcp !== null) return new UdpPorts(rtp, rtcp);
      rtp.close();
    }
    throw new Error('no pair of free UDP ports');
  }

  get rtpPort(): number {
    return this.#rtp.address().port;
  }

  /** Receives from `server` only, and greets it. A port of 0 is not known and not greeted. */
  connect(
    server: { readonly address: string; readonly rtp: number; readonly rtcp: number },
    handlers: { readonly onRtp: (data: Uint8Array) => void; readonly onRtcp: (data: Uint8Array) => void },
  ): void {
    this.#server = server;
    const guarded = (handle: (data: Uint8Array) => void) => (data: Buffer, from: { address: string }) => {
      if (from.address === server.address) handle(data);
      else this.foreign += 1;
    };
    this.#rtp.on('message', guarded(handlers.onRtp));
    this.#rtcp.on('message', guarded(handlers.onRtcp));
    if (server.rtp > 0) this.#rtp.send(GREETING, server.rtp, server.address, () => undefined);
  }

  sendRtcp(data: Uint8Array): void {
    if (this.#server !== null && this.#server.rtcp > 0) this.#rtcp.send(data, this.#server.rtcp, this.#server.address, () => undefined);
  }

  /** Idempotent. */
  close(): void {
    for (const socket of [this.#rtp, this.#rtcp]) {
      try {
        socket.close();
      } catch {
        // Closed already.
      }
    }
  }
}

async function bind(address: string, port: number): Promise<Socket> {
  const socket = createSocket({ type: net.isIPv6(address) ? 'udp6' : 'udp4', recvBufferSize: RECEIVE_BUFFER });
  socket.bind({ address, port });
  try {
    await once(socket, 'listening');
  } catch (error) {
    socket.close();
    throw error;
  }
  // A refused greeting returns as an error of the socket; the following silence is noticed elsewhere.
  socket.on('error', () => undefined);
  return socket;
}
