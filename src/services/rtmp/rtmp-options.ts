/** Options of the RTMP provider and their defaults. */

import type { Gatekeeper } from '../../access/access-check.ts';
import type { IngestGate } from '../../core/ingest.ts';
import type { Certificate } from '../../delivery/tls/certificate-index.ts';
import type { ConnectionGate } from '../../transport/proxy/connection-gate.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import type { Turns } from '../../util/newcomer-turns.ts';
import { type AmfLimits, DEFAULT_AMF_LIMITS } from '../../wire/rtmp/amf.ts';
import { MAX_MESSAGE_LENGTH } from '../../wire/rtmp/message.ts';

/** All in milliseconds. */
export interface RtmpTimeouts {
  /** From accepting the connection to the end of the RTMP (and TLS) handshake. */
  readonly handshake: number;
  /** Silence of a connection that does not publish. */
  readonly unpublishedSilence: number;
  /** From accepting the connection, or from the end of the last publication, to `publish`. */
  readonly publish: number;
  /** From `publish` to the first usable track. */
  readonly firstTrack: number;
  /** Silence of a published stream, counted in media messages; 0 means for ever. */
  readonly packetSilence: number;
  /** From the first usable track until the stream starts without the missing tracks. */
  readonly trackWait: number;
  /** For a last answer to reach the peer before the connection is cut. */
  readonly linger: number;
  /** For an encoder that is refused for lack of room. */
  readonly refusal: number;
}
/** The default timeouts. */
export const DEFAULT_RTMP_TIMEOUTS: RtmpTimeouts = {
  handshake: 10_000,
  unpublishedSilence: 3000,
  publish: 15_000,
  firstTrack: 15_000,
  packetSilence: 0,
  trackWait: 1500,
  linger: 1000,
  refusal: 1000,
};

/** Limits of one peer, and of all peers. */
export interface RtmpLimits {
  /** Connections at once; more are closed as they come. */
  readonly connections: number;
  /** Largest audio, video or aggregate message, bytes. */
  readonly mediaBytes: number;
  /** Largest other message, and largest message of any kind before `publish`, bytes. */
  readonly controlBytes: number;
  /** Announced bytes of unfinished messages of one connection. */
  readonly pendingBytes: number;
  /** Chunk streams of one connection. */
  readonly chunkStreams: number;
  /** For this many bytes of a publisher's message, memory is allocated before they arrive; for more bytes as they arrive. */
  readonly trustedBytes: number;
  /** Messages a second that a peer may begin and not finish; more end its connection. */
  readonly discardsPerSecond: number;
  /** Limit of unreadable messages a second; a publisher that exceeds it for seconds is disconnected. */
  readonly malformedPerSecond: number;
  /** Bytes waiting for a peer that does not read. */
  readonly writeBacklogBytes: number;
  /** Packets of one track held back until the stream starts. */
  readonly heldPackets: number;
  /** Bytes of all packets held back until the stream starts. */
  readonly heldBytes: number;
  /** Tracks of one stream. */
  readonly tracks: number;
  readonly amf: AmfLimits;
}
/** The default limits. */
export const DEFAULT_RTMP_LIMITS: RtmpLimits = {
  connections: 2000,
  mediaBytes: MAX_MESSAGE_LENGTH,
  controlBytes: 65_536,
  pendingBytes: 2 * MAX_MESSAGE_LENGTH,
  chunkStreams: 64,
  trustedBytes: 65_536,
  discardsPerSecond: 16,
  malformedPerSecond: 100,
  writeBacklogBytes: 262_144,
  heldPackets: 500,
  heldBytes: 33_554_432,
  tracks: 16,
  amf: DEFAULT_AMF_LIMITS,
};

/** Dependencies of a provider. */
export interface RtmpProviderOptions {
  readonly gate: IngestGate;
  /** Decides who may publish; absent: every client. */
  readonly access?: Gatekeeper;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Address to bind. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** If present, the listener speaks RTMPS only; without a certificate every handshake fails. */
  readonly tls?: readonly Certificate[];
  /**
   * A client has connected, which may want the name of a stream of another listener: all listeners, this one included, must read their
   * resting sockets.
   */
  readonly onArrival?: () => void;
  /** Limits connections and finds clients behind proxies; absent: no limits and no proxies. */
  readonly entry?: ConnectionGate;
  /** Connections, and their messages before they publish, wait for their turns; absent: they are processed at once. */
  readonly turns?: Turns;
  /** False: tags of Enhanced RTMP are left out. Default: true. */
  readonly enhanced?: boolean;
  readonly timeouts?: Partial<RtmpTimeouts>;
  readonly limits?: Partial<RtmpLimits>;
}
