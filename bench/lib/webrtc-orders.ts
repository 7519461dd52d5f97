/** Messages between the processes of the WebRTC benches. */
import type { SendMode } from '../../src/services/webrtc/transport/fanout/native-fanout.ts';

/**
 * Viewers that decrypt their packets, to prove that the counted packets of the others are media: the first ones, which are not drained.
 */
export const DECRYPTING = 4;

/** How the sockets of viewers are emptied, as `rtp-drain.cc` says. */
export type DrainMode = 'clock' | 'wait' | 'threads';

/** Ways of the bare sender, as `bare-sender.cc` says. */
export type BareWay = 'gso' | 'mmsg' | 'sendto';

/** Commands to a program that empties the sockets from now on. */
export interface DrainOrder {
  readonly type: 'drain';
  /** Its path. */
  readonly program: string;
  readonly mode: DrainMode;
  /** Packets that were sent as one message are taken as one, too. */
  readonly whole: boolean;
}

/** Orders to the load client. */
export type LoadOrder =
  | { readonly type: 'watch'; readonly viewer: number; readonly offer: string; readonly candidates: readonly string[] }
  | DrainOrder
  | { readonly type: 'report' };

/** Counts since the previous report. */
export interface LoadReport {
  readonly type: 'report';
  /** Of each viewer, in their order. */
  readonly packets: readonly number[];
  /** Missing by sequence numbers, and datagrams that found a full socket since the beginning. */
  readonly lost: number;
  readonly overflows: number;
  /** Of some viewers: RTP timestamp of a frame, ns of the monotonic clock at which its last packet came. */
  readonly arrivals: readonly (readonly [number, number])[];
  /** CPU of the viewers so far, ms. */
  readonly cpuMs: number;
}

/** Answers of the load client. */
export type LoadAnswer =
  | { readonly type: 'answer'; readonly viewer: number; readonly description: string }
  /** Local ports of the drained viewers. */
  | { readonly type: 'draining'; readonly ports: readonly number[] }
  | LoadReport;

/** Order of one run. */
export interface FanoutOrder {
  readonly sendMode: SendMode;
  readonly viewers: number;
  readonly seconds: number;
  /** Path of the program that empties sockets. */
  readonly drain: string;
  readonly drainMode: DrainMode;
  readonly whole?: boolean;
  /** Default: loopback for both. */
  readonly host?: string;
  /** Command in front of the load client's, and its address. */
  readonly elsewhere?: { readonly prefix: readonly string[]; readonly host: string };
  /** Seconds in which code is compiled before anything counts; the history of packets is filled in as many. Default: 4 and 6. */
  readonly warmUp?: number;
  /** Packets of a keyframe, of other frames. Default: 9. */
  readonly keyframe?: number;
  readonly frame?: number;
  /** Path of the bare sender, and its ways that are measured behind the server. */
  readonly bare?: { readonly program: string; readonly ways: readonly BareWay[] };
  /** Ends receiving while the server's own share is measured: `NetworkPair.deafness`. */
  readonly deafness?: { readonly begin: readonly string[]; readonly end: readonly string[] };
  /** This many further viewers connect at this rate while the others are measured. */
  readonly crowd?: { readonly viewers: number; readonly perSecond: number };
}

/** Of many, ms. */
export interface Delay {
  readonly median: number;
  readonly p99: number;
}

/** Results of a span of media. */
export interface SpanResult {
  /** CPU for each packet that arrived, µs; of the sender, of the viewers. */
  readonly perPacket: number;
  readonly perPacketViewers: number;
  /** Packets that arrived. */
  readonly total: number;
  /** Media packets for each viewer: sent, received on average, and received by the worst one. */
  readonly expected: number;
  readonly received: number;
  readonly least: number;
  /** Packets missing by sequence numbers; datagrams that found a socket of a viewer full. */
  readonly lost: number;
  readonly overflows: number;
  /** Mbit/s of all viewers, without heads of IP. */
  readonly rate: number;
  /** Idle share of the machine's CPU time. */
  readonly idle: number;
}

/** Output of the child. */
export interface FanoutResult extends SpanResult {
  readonly kind: string;
  /** CPU of the process while media flows without viewers, milliseconds a second. */
  readonly unwatched: number;
  /** CPU milliseconds to connect a viewer. */
  readonly setup: number;
  /** Resident memory that a viewer adds while media flows, KiB; the history of packets, which all share, is full before and after. */
  readonly memory: number;
  /** From a frame of video to its last packet, at some viewers. */
  readonly delay: Delay;
  /** Of the server: datagrams that the system took no longer, and frames given up. */
  readonly congested: number;
  readonly droppedFrames: number;
  readonly bare: Readonly<Partial<Record<BareWay, SpanResult & { readonly delay: Delay }>>>;
  /** CPU for each packet that is not received, µs: of the server, and of the bare sender with `gso`. */
  readonly deaf: { readonly server: number; readonly bare: number } | null;
  readonly crowd: CrowdResult | null;
}

/** Results of many simultaneous connections. */
export interface CrowdResult {
  readonly connected: number;
  readonly failed: number;
  /** From the first of them to the last that was connected, s. */
  readonly seconds: number;
  /** From a request to its connection. */
  readonly wait: Delay;
  /** Of the others meanwhile. */
  readonly lost: number;
  readonly delay: Delay;
}
