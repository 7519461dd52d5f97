/** Figures of one connection since its start; logs and metrics read them. */

/** Counters of the sending half, which only grow. */
export interface SenderStatistics {
  packetsSent: number;
  /** Bytes of payloads, without retransmissions. */
  bytesSent: number;
  packetsRetransmitted: number;
  /** Packets the peer reported missing. */
  packetsReportedLost: number;
  /** Packets given up because they were late. */
  packetsDroppedLate: number;
  /** Packets refused because the buffer was full. */
  packetsRefused: number;
}

/** Counters of the receiving half, which only grow. */
export interface ReceiverStatistics {
  /** Retransmissions and duplicates included. */
  packetsReceived: number;
  /** Bytes of the payloads passed on. */
  bytesDelivered: number;
  packetsDelivered: number;
  packetsRetransmitted: number;
  packetsDuplicate: number;
  /** Packets detected as missing. */
  packetsLost: number;
  /** Packets that did not arrive in time. */
  packetsDroppedLate: number;
  /** Packets that came after they had been given up. */
  packetsBelated: number;
  /** Packets too far ahead of the buffer. */
  packetsTooFar: number;
  /** Packets without a usable key, or without encryption where it is required. */
  packetsUndecryptable: number;
  /** Packets longer than a datagram of 1500 bytes can hold. */
  packetsOversized: number;
}

/** A snapshot. */
export interface SrtStatistics {
  /** Round trip, ms. */
  readonly rtt: number;
  readonly sender: Readonly<SenderStatistics>;
  readonly receiver: Readonly<ReceiverStatistics>;
  /** Control packets that broke the protocol; they are ignored. */
  readonly malformed: number;
}

/** All counters at 0. */
export function newSenderStatistics(): SenderStatistics {
  return { packetsSent: 0, bytesSent: 0, packetsRetransmitted: 0, packetsReportedLost: 0, packetsDroppedLate: 0, packetsRefused: 0 };
}

/** All counters at 0. */
export function newReceiverStatistics(): ReceiverStatistics {
  return {
    packetsReceived: 0,
    bytesDelivered: 0,
    packetsDelivered: 0,
    packetsRetransmitted: 0,
    packetsDuplicate: 0,
    packetsLost: 0,
    packetsDroppedLate: 0,
    packetsBelated: 0,
    packetsTooFar: 0,
    packetsUndecryptable: 0,
    packetsOversized: 0,
  };
}
