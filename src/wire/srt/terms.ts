/** The proposal of each side in a handshake, and the result. */
import { HANDSHAKE_V5, type Handshake, type SrtCapabilities, SrtFlag } from './handshake.ts';

/** The version of SRT that we announce. */
const SRT_VERSION = 0x01_05_01;
/** Older versions have no extended handshake. */
export const MIN_VERSION = 0x01_03_00;
/** Our capabilities: live mode with all features, no stream mode and no packet filter. */
const OUR_FLAGS =
  SrtFlag.TSBPD_SENDER | SrtFlag.TSBPD_RECEIVER | SrtFlag.CRYPT | SrtFlag.TOO_LATE_DROP | SrtFlag.PERIODIC_NAK | SrtFlag.RETRANSMISSION;
/** Bytes of an IP packet, our proposal. */
const MTU = 1500;

/** Delays in ms, 0 to 65535. */
export interface LatencyWish {
  /** We hold packets back for at least this long. */
  readonly receive: number;
  /** The peer should hold packets back for at least this long. */
  readonly peer: number;
}

/** libsrt's own default. */
export const DEFAULT_LATENCY: LatencyWish = { receive: 120, peer: 0 };

/** The larger wish wins, for each direction (§4.3.1.2). */
export function agreeOnLatency(own: LatencyWish, theirs: SrtCapabilities): LatencyWish {
  return { receive: Math.max(own.receive, theirs.senderDelay), peer: Math.max(own.peer, theirs.receiverDelay) };
}

/** Our capabilities for this latency; equal in a request and in a response. */
export function capabilitiesFor(latency: LatencyWish): SrtCapabilities {
  return { version: SRT_VERSION, flags: OUR_FLAGS, receiverDelay: latency.receive, senderDelay: latency.peer };
}

/** A handshake of this server with the constant fields. */
export function handshakeWith(fields: Pick<Handshake, 'type' | 'socketId' | 'cookie' | 'initialSequence'> & Partial<Handshake>): Handshake {
  return { version: HANDSHAKE_V5, encryption: 0, extensionField: 0, mtu: MTU, flowWindow: 8192, extensions: [], ...fields };
}
