/** A UDP socket for many small datagrams: datagrams of one turn of the event loop are received and sent in batches. */

/** The other end of a datagram. */
export interface SocketAddress {
  readonly address: string;
  readonly port: number;
}

/** The address to bind, and the callbacks. They run on one thread, never after `close`. */
export interface UdpSocketOptions {
  /** Address to bind; an IPv6 address is recognised by its form, and `::` is all of IPv6 but not IPv4. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** Bytes asked of the system for each direction; it may grant less. */
  readonly bufferBytes: number;
  /** A datagram, whose buffer passes to the listener; datagrams of one turn may share a buffer. `from` must not be changed. */
  readonly onDatagram: (datagram: Uint8Array, from: SocketAddress) => void;
  /** All datagrams of the turn were passed on. */
  readonly onTurn: () => void;
  readonly onAlarm: () => void;
  readonly onError: (error: Error) => void;
  /** Called when one of the other callbacks throws. Absent: the exception is not caught. */
  readonly onFault?: (error: unknown) => void;
}

/** Since the start. */
export interface UdpCounters {
  readonly datagramsSent: number;
  /** System calls for them; NaN when not known. */
  readonly sendCalls: number;
  /** Datagrams the system refused. */
  readonly sendErrors: number;
  /** Datagrams given up because the system took nothing for too long. */
  readonly dropped: number;
  readonly datagramsReceived: number;
  /** System calls for them; NaN when not known. */
  readonly receiveCalls: number;
}

/** Datagrams that the system does not take are treated as lost: counted, never an error. */
export interface UdpSocket {
  /** The port bound. */
  readonly port: number;
  readonly counters: UdpCounters;
  /** Gathers one datagram: `head`, then `payload` if there is one. It leaves with the turn, or with `flush`. */
  send(to: SocketAddress, head: Uint8Array, payload: Uint8Array | null): void;
  flush(): void;
  /** Calls `onAlarm` once, after this many whole ms; another call before then replaces the time. */
  alarm(ms: number): void;
  /** Closes the port; no callback is called afterwards, and unsent datagrams are lost. Idempotent. */
  close(): Promise<void>;
}
