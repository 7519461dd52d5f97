/** What one side proposes in a handshake, and what comes out of it. */
import { HANDSHAKE_V5, type Handshake, type SrtCapabilities, SrtFlag } from './handshake.ts';

/** The version of SRT we speak like. */
const SRT_VERSION = 0x01_05_01;
/** Older ones have no extended handshake. */
export const MIN_VERSION = 0x01_03_00;
/** What we say of ourselves: live mode with everything it has, and no stream mode or packet filter. */
const OUR_FLAGS =
  SrtFlag.TSBPD_SENDER | SrtFlag.TSBPD_RECEIVER | SrtFlag.CRYPT | SrtFlag.TOO_LATE_DROP | SrtFlag.PERIODIC_NAK | SrtFlag.RETRANSMISSION;
/** Bytes of an IP packet, as we propose. */
const MTU = 1500;

/** Delays in ms, 0 to 65535. */
export interface LatencyWish {
  /** We hold packets back for at least this long. */
  readonly receive: number;
  /** The peer shall hold them back for at least this long. */
  readonly peer: number;
}

/** libsrt's own default. */
export const DEFAULT_LATENCY: LatencyWish = { receive: 120, peer: 0 };

/** The larger wish wins, for each direction (§4.3.1.2). */
export function agreeOnLatency(own: LatencyWish, theirs: SrtCapabilities): LatencyWish {
  return { receive: Math.max(own.receive, theirs.senderDelay), peer: Math.max(own.peer, theirs.receiverDelay) };
}

/** What we say of ourselves when we want this latency; the same in a request and in a response. */
export function capabilitiesFor(latency: LatencyWish): SrtCapabilities {
  return { version: SRT_VERSION, flags: OUR_FLAGS, receiverDelay: latency.receive, senderDelay: latency.peer };
}

/** A handshake of ours with the fields that never differ. */
export function handshakeWith(fields: Pick<Handshake, 'type' | 'socketId' | 'cookie' | 'initialSequence'> & Partial<Handshake>): Handshake {
  return { version: HANDSHAKE_V5, encryption: 0, extensionField: 0, mtu: MTU, flowWindow: 8192, extensions: [], ...fields };
}
