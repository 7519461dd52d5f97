/** The common part of a connection's two directions. */
import type { ControlAddress } from './control-packet.ts';
import type { RttEstimator } from './rtt-estimator.ts';
import type { SessionKeys } from './session-keys.ts';

/** The other end of a datagram. */
export interface DatagramPeer {
  readonly address: string;
  readonly port: number;
}

/** Where datagrams of one connection go. The bytes must stay as they are until they have left. */
export interface DatagramSink {
  /** One datagram: `head`, then `payload` if there is one. */
  send(head: Uint8Array, payload: Uint8Array | null): void;
}

/** Made by the connection, for both of its halves. */
export interface Link {
  readonly sink: DatagramSink;
  readonly rtt: RttEstimator;
  /** Null on a connection without encryption. */
  readonly keys: SessionKeys | null;
  /** For a control packet that leaves at `now` µs. */
  address(now: number): ControlAddress;
}
