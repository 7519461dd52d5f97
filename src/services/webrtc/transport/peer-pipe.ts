/** Ways to a peer over a TCP connection. */
import type { Socket } from 'node:net';
import { hostPort } from '../../../util/client-address.ts';
import { frameDatagram, unframeDatagrams } from '../../../wire/ice/tcp-framer.ts';
import type { TurnAddress, TurnConnection } from '../../../wire/turn/turn-connection.ts';
import type { PeerAddress } from './fanout/fanout.ts';
import { endStream, sendToStream } from './peer-stream.ts';

/** Made by the acceptor of the connection; several pipes may share a connection through the relay. */
export interface PeerPipe {
  /** For the log. */
  readonly place: string;
  /** Address of the other end of the connection. */
  readonly host: string;
  /** Bytes that wait for the peer. */
  readonly backlog: number;
  send(datagram: Uint8Array): void;
  /** Several datagrams, each with two bytes of length before it (RFC 4571). */
  sendFrames(frames: Buffer): void;
  /** Closes the connection when the waiting data has been sent, whatever arrives meanwhile, or after ten seconds. */
  end(): void;
}

/** Straight to a media port (RFC 6544). */
export class DirectPipe implements PeerPipe {
  readonly host: string;
  readonly #stream: Socket;
  readonly #place: string;

  /** `from`: address of the peer. */
  constructor(stream: Socket, from: PeerAddress) {
    this.#stream = stream;
    this.host = from.host;
    this.#place = hostPort(from.host, from.port);
  }

  get place(): string {
    return `tcp ${this.#place}`;
  }

  get backlog(): number {
    return this.#stream.writableLength;
  }

  send(datagram: Uint8Array): void {
    sendToStream(this.#stream, frameDatagram(datagram));
  }

  sendFrames(frames: Buffer): void {
    this.#stream.write(frames);
  }

  end(): void {
    endStream(this.#stream);
  }
}

/** A path through our relay: `address` is the relayed address of the client at `from`. */
export class RelayedPipe implements PeerPipe {
  readonly host: string;
  readonly #stream: Socket;
  readonly #turn: TurnConnection;
  readonly #address: TurnAddress;
  readonly #place: string;

  constructor(stream: Socket, { turn, address, from }: { turn: TurnConnection; address: TurnAddress; from: PeerAddress }) {
    this.#stream = stream;
    this.host = from.host;
    this.#place = hostPort(from.host, from.port);
    this.#turn = turn;
    this.#address = address;
  }

  get place(): string {
    return `relay ${this.#place}`;
  }

  get backlog(): number {
    return this.#stream.writableLength;
  }

  send(datagram: Uint8Array): void {
    this.#turn.deliver(this.#address, datagram);
  }

  sendFrames(frames: Buffer): void {
    this.#stream.cork();
    for (const datagram of unframeDatagrams(frames)) this.send(datagram);
    this.#stream.uncork();
  }

  end(): void {
    endStream(this.#stream);
  }
}
