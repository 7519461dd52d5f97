/**
 * Media to many peers over UDP with DTLS-SRTP: one packetised frame goes in, every viewer gets its own packets. Two implementations: the
 * addon's threads, and JavaScript if the addon cannot be built, which omits features that viewers can do without.
 */
import type { SrtpKeys } from '../../../../wire/srtp/profile.ts';

/** An IP address, IPv6 without brackets, and a port. */
export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

/** Receives datagrams. The callbacks must not throw. The listener owns the bytes. */
export interface FanoutListener {
  /** A datagram that looks like STUN came to the UDP port `socket`. */
  stun(socket: number, from: PeerAddress, datagram: Buffer): void;
  /** A datagram that looks like DTLS came. */
  dtls(socket: number, from: PeerAddress, datagram: Buffer): void;
  /** An authentic compound packet, decrypted. Generic NACKs have been served already. */
  rtcp(viewer: number, packet: Buffer): void;
  /** An authentic RTP packet, decrypted. `at`: arrival, ms of a monotonic clock of the fanout. */
  rtp(viewer: number, packet: Buffer, at: number): void;
  /** Frames after RFC 4571 to write to a viewer that is reached over TCP. */
  tcp(viewer: number, frames: Buffer): void;
}

/** One frame, packetised once for all viewers. */
export interface PacketizedFrame {
  /** RTP timestamp, 32 bits. */
  readonly timestamp: number;
  /** A viewer can begin here. */
  readonly keyframe: boolean;
  /** The last packet gets the marker bit. */
  readonly marker: boolean;
  /** Payloads of all packets back to back; copied before `push` returns. */
  readonly payloads: Uint8Array;
  /** Bytes of each payload, 1 to 1400. Equal sizes leave with one system call. */
  readonly sizes: Uint32Array;
}

/** Header extension of every packet of a slot (RFC 8285, one-byte form). */
export interface ExtensionPlan {
  /** With its 4-byte head, a multiple of 4; empty when there is none. */
  readonly bytes: Uint8Array;
  /** Offsets of 3 bytes of abs-send-time and of 2 bytes of the transport-wide sequence number (the addon only); 0 if absent. */
  readonly sendTimeAt: number;
  readonly transportSequenceAt: number;
}

/** A stream of frames. */
export interface SourcePlan {
  readonly clockRate: number;
  /** Wall clock at RTP timestamp 0, for sender reports. */
  readonly epochMs: number;
  /** With parities for viewers that take them (RFC 5109): one for every frame and ten packets. The addon only. */
  readonly fec?: boolean;
}

/** One RTP stream to one viewer. */
export interface SlotPlan {
  readonly ssrc: number;
  readonly payloadType: number;
  /** Retransmission format (RFC 4588); null when the peer takes none: then losses stay lost. */
  readonly rtx: { readonly ssrc: number; readonly payloadType: number } | null;
  /**
   * Error correction: all packets are wrapped into RED (RFC 2198), parities under `payloadType` (RFC 5109); `rtx` repeats the wrapped
   * packets. Without `rtx` parities are sent twice. Absent: no correction, even if the source has it. The addon only.
   */
  readonly fec?: { readonly redPayloadType: number; readonly payloadType: number } | undefined;
  readonly extension: ExtensionPlan;
}

/** Media for one viewer, fixed when it is opened. */
export interface ViewerPlan {
  /** CNAME of the source description. */
  readonly cname: string;
  /** At most four. */
  readonly slots: readonly SlotPlan[];
}

/** Counts since the viewer was opened. */
export interface ViewerCounters {
  readonly packets: number;
  readonly bytes: number;
  /** Packets reported lost, and packets sent again. */
  readonly nacked: number;
  readonly resent: number;
  readonly sendErrors: number;
  readonly received: number;
  /** Received packets that were forged, replayed or malformed. */
  readonly refused: number;
}

/** Counts since the fanout was opened. */
export interface FanoutCounters {
  readonly viewers: number;
  readonly datagramsSent: number;
  readonly sendCalls: number;
  readonly sendErrors: number;
  /** Datagrams given up because the socket stayed full. */
  readonly congested: number;
  /** Frames given up because a sender fell behind. */
  readonly droppedFrames: number;
  readonly resent: number;
  /** Losses reported for packets that are no longer in the history. */
  readonly lostTooOld: number;
  /** Reports of losses left out because a sender fell behind. */
  readonly ignoredNacks: number;
  readonly datagramsReceived: number;
  /** Datagrams of no known peer or protocol. */
  readonly strangers: number;
  readonly nacks: number;
  /** Events dropped because the main thread fell behind. */
  readonly droppedEvents: number;
  /** Datagrams from addresses without a connected peer, dropped for the same reason. */
  readonly droppedStrangers: number;
  /** Packets over TCP given up because a receiver fell behind. */
  readonly droppedInjected: number;
}

/** One end of a DTLS handshake. Its creator closes it. */
export interface DtlsEndpoint {
  /** Takes one datagram of the peer. */
  receive(datagram: Uint8Array): void;
  /** Sends lost flights again: call it a few times a second until it is connected. */
  tick(): void;
  /** Notifies the peer. Idempotent; the listener is not called. */
  close(): void;
}

/** Follows the handshake of one endpoint; `closed` is the last call. */
export interface DtlsListener {
  send(datagram: Uint8Array): void;
  /** `fingerprint`: SHA-256 of the peer's certificate, which the caller compares with the signalled one. `keys` are the listener's to wipe. */
  connected(keys: SrtpKeys, fingerprint: Uint8Array): void;
  /** The peer closed, or the handshake failed: `reason` for the log. */
  closed(reason: string): void;
}

/** Sends media to viewers; its numbers of sockets, sources and viewers are its own. The transport that opened it closes it. */
export interface Fanout {
  readonly kind: 'native' | 'script';
  /** Opens a UDP port (0: any). Rejects when it cannot be bound. */
  bind(host: string, port: number): Promise<{ readonly socket: number; readonly port: number }>;
  /** Sends a datagram of this server; false if the socket does not take it. */
  send(socket: number, to: PeerAddress, datagram: Uint8Array): boolean;
  openSource(plan: SourcePlan): number;
  /** Sends a frame to all viewers of the source; false if the frame is not usable. */
  push(source: number, frame: PacketizedFrame): boolean;
  closeSource(source: number): void;
  openViewer(plan: ViewerPlan): number;
  /** Keeps no reference to `keys`; derived keys are wiped when the viewer is closed. */
  setKeys(viewer: number, keys: SrtpKeys): void;
  /** The address for sending to the viewer and for its packets; may change while it plays. */
  connect(viewer: number, socket: number, to: PeerAddress): void;
  /** Packets from this address are the viewer's too: peers choose their sending path. At most `MAX_PLACES`; the oldest are dropped. */
  hear(viewer: number, socket: number, from: PeerAddress): void;
  /** The viewer is reached over TCP: its packets go to the listener. */
  connectTcp(viewer: number): void;
  /** The slot gets `source` from its next keyframe on; null: nothing, at once. Call it after `setKeys`. */
  play(viewer: number, slot: number, source: number | null): void;
  /** An SRTP or SRTCP packet that came over TCP. */
  inject(viewer: number, packet: Uint8Array): void;
  /** Sends a compound RTCP packet. */
  sendRtcp(viewer: number, packet: Uint8Array): void;
  closeViewer(viewer: number): void;
  viewerCounters(viewer: number): ViewerCounters | null;
  /**
   * When and how large the packets with the transport-wide numbers `first` and following were sent: pairs of µs (32 bits of
   * a clock of its own) and bytes; 0 bytes: not known, or too long ago (`MAX_SENDS_KEPT`). The addon only: else none is known.
   */
  readSends(viewer: number, first: number, into: Uint32Array): void;
  openDtls(role: 'client' | 'server', listener: DtlsListener): DtlsEndpoint;
  counters(): FanoutCounters;
  /** Closes ports and threads. Idempotent. */
  close(): void;
}

/** Sequence numbers begin below this, so that a receiver that misses the first packets cannot miss a roll-over. */
export const MAX_FIRST_SEQUENCE = 0x8000;
/** Bytes of one RTP payload: with all headers and the tag it stays below the usual MTU. */
export const MAX_RTP_PAYLOAD = 1400;

/** Maximum of source addresses of one viewer. */
export const MAX_PLACES = 16;

/** Packets of a viewer whose sending is remembered, where they carry transport-wide numbers. */
export const MAX_SENDS_KEPT = 1024;

/** Packets of a source that the addon can send again, by default: 1.5 s of a large stream. */
export const DEFAULT_HISTORY = 1500;

/** Buffer requested from the system for each media port and direction, bytes: `kSocketBuffer` of the addon. */
export const MEDIA_SOCKET_BUFFER = 8 * 1024 * 1024;
