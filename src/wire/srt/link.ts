/** The common part of a connection's two directions. */
import type { ControlAddress } from './control-packet.ts';
import type { RttEstimator } from './rtt-estimator.ts';
import type { SessionKeys } from './session-keys.ts';

/** The other end of a datagram. */
export interface DatagramPeer {
  readonly address: string;
  readonly port: number;
}

/** Receiver of the datagrams of one connection. The bytes must stay unchanged until they have been sent. */
export interface DatagramSink {
  /** One datagram: `head`, then `payload` if there is one. */
  send(head: Uint8Array, payload: Uint8Array | null): void;
}

/** Created by the connection, for both of its halves. */
export interface Link {
  readonly sink: DatagramSink;
  readonly rtt: RttEstimator;
  /** Null on a connection without encryption. */
  readonly keys: SessionKeys | null;
  /** Address of a control packet that is sent at `now` µs. */
  address(now: number): ControlAddress;
}
