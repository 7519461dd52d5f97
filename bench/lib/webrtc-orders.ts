/** Messages between the processes of the WebRTC benches. */
import type { SendMode } from '../../src/services/webrtc/transport/fanout/native-fanout.ts';

/** Number of viewers that decrypt their packets, to prove that the counted packets are media. They come first, and are not drained. */
export const DECRYPTING = 4;

/** How viewers' sockets are emptied: see `rtp-drain.cc`. */
export type DrainMode = 'clock' | 'wait' | 'threads';

/** Ways of the bare sender: see `bare-sender.cc`. */
export type BareWay = 'gso' | 'mmsg' | 'sendto';

/** Order to start a program that empties the sockets. */
export interface DrainOrder {
  readonly type: 'drain';
  /** Path of the program. */
  readonly program: string;
  readonly mode: DrainMode;
  /** Packets sent as one message are received as one message, too. */
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
  /** Packets of each viewer, in order of the viewers. */
  readonly packets: readonly number[];
  /** Packets missing by sequence numbers, and datagrams dropped at full sockets since the beginning. */
  readonly lost: number;
  readonly overflows: number;
  /** At some viewers: RTP timestamp of a frame, and arrival of its last packet, ns of the monotonic clock. */
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
  /** Default: loopback. */
  readonly host?: string;
  /** Prefix of the load client's command, and its address. */
  readonly elsewhere?: { readonly prefix: readonly string[]; readonly host: string };
  /** Seconds in which code is compiled before the measurement, and in which the history of packets is filled. Default: 4 and 6. */
  readonly warmUp?: number;
  /** Packets of a keyframe, and of other frames. Default: 9. */
  readonly keyframe?: number;
  readonly frame?: number;
  /** Path of the bare sender, and the ways to measure after the server. */
  readonly bare?: { readonly program: string; readonly ways: readonly BareWay[] };
  /** Commands that stop receiving while the server's own share is measured: `NetworkPair.deafness`. */
  readonly deafness?: { readonly begin: readonly string[]; readonly end: readonly string[] };
  /** Further viewers that connect at this rate while the others are measured. */
  readonly crowd?: { readonly viewers: number; readonly perSecond: number };
}

/** Statistics of many delays, ms. */
export interface Delay {
  readonly median: number;
  readonly p99: number;
}

/** Results of a span of media. */
export interface SpanResult {
  /** CPU per packet that arrived, µs; of the sender, and of the viewers. */
  readonly perPacket: number;
  readonly perPacketViewers: number;
  /** Packets that arrived. */
  readonly total: number;
  /** Media packets per viewer: sent, received on average, and received by the worst viewer. */
  readonly expected: number;
  readonly received: number;
  readonly least: number;
  /** Packets missing by sequence numbers; datagrams dropped at full sockets of viewers. */
  readonly lost: number;
  readonly overflows: number;
  /** Mbit/s of all viewers, without IP headers. */
  readonly rate: number;
  /** Idle share of the machine's CPU time. */
  readonly idle: number;
}

/** Output of the child. */
export interface FanoutResult extends SpanResult {
  readonly kind: string;
  /** CPU of the process with media but without viewers, ms per second. */
  readonly unwatched: number;
  /** CPU milliseconds to connect a viewer. */
  readonly setup: number;
  /** Resident memory added by a viewer while media flows, KiB; the history of packets, shared by all viewers, is full before and after. */
  readonly memory: number;
  /** Delay from a frame of video to its last packet, at some viewers. */
  readonly delay: Delay;
  /** Server: datagrams that the system did not take, and frames given up. */
  readonly congested: number;
  readonly droppedFrames: number;
  readonly bare: Readonly<Partial<Record<BareWay, SpanResult & { readonly delay: Delay }>>>;
  /** CPU per packet that is not received, µs: of the server, and of the bare sender with `gso`. */
  readonly deaf: { readonly server: number; readonly bare: number } | null;
  readonly crowd: CrowdResult | null;
}

/** Results of many simultaneous connections. */
export interface CrowdResult {
  readonly connected: number;
  readonly failed: number;
  /** From the first request to the last connection, s. */
  readonly seconds: number;
  /** Time from a request to its connection. */
  readonly wait: Delay;
  /** Packets that the other viewers lost meanwhile. */
  readonly lost: number;
  readonly delay: Delay;
}
