/** Messages between the delivery pool (main thread) and its threads. Main sends them in batches, in order. */
import type { ControlledHost } from '../access/access-controls.ts';
import type { ControlServerFigures } from '../access/control-server.ts';
import type { CrossDomainRules } from '../access/cross-domains.ts';
import type { RefusalCount } from '../access/refusal-counts.ts';
import type { WantedStream } from '../core/origins.ts';
import type { HostOrigins } from '../core/page-origins.ts';
import type { StreamPresence } from '../core/unknown-stream.ts';
import type { PageSettings } from '../pages/player-page.ts';
import type { TimeoutScale } from '../util/timeout-scale.ts';
import type { ThreadAdmission } from './admission.ts';
import type { FeedMessage } from './feed/messages.ts';
import type { HttpCounters } from './http-counters.ts';
import type { HttpLimits } from './http-limits.ts';
import type { Certificate } from './tls/certificate-index.ts';

/** A port of the delivery side. */
export interface ListenRequest {
  /** IP address; `*` is all of IPv4, `::` all of IPv6. */
  readonly host: string;
  /** 0: any free port, the same one in all threads. */
  readonly port: number;
  readonly tls: boolean;
}

/** Limits of one thread, besides those of HTTP. Times are milliseconds. */
export interface DeliveryLimits {
  readonly http: HttpLimits;
  /** Requests that wait for media; above this, requests are answered with 503. */
  readonly waiting: number;
  /** Bytes of files (DVR) in pending answers; above this, requests are answered with 503. */
  readonly fileBytes: number;
  /** Bytes of extra copies for files that several viewers request; above this, files are copied for each viewer. */
  readonly hotBytes: number;
  /** Live sessions; the oldest is dropped first. */
  readonly sessions: number;
  /** Time without a request after which a session ends. */
  readonly sessionIdle: number;
  /** Lifetime of a session token. */
  readonly sessionLifetime: number;
  /** Interval of the reports to the main thread. */
  readonly reportInterval: number;
  /** Time for answers in progress when the server stops. */
  readonly stopGrace: number;
  /** Scale of the time limits for relayed requests. */
  readonly timeoutScale: TimeoutScale;
}

/** Initial data of a thread. */
export interface ThreadSettings {
  /** Unique for every start of a thread while the server runs. */
  readonly incarnation: number;
  /** Signs session tokens; the same in all threads. */
  readonly secret: Uint8Array;
  readonly limits: DeliveryLimits;
  /** Limits of clients. */
  readonly admission: ThreadAdmission;
  /** HTTP/2 on TLS ports. */
  readonly http2: boolean;
  /** Unix socket of the main thread for requests that are not delivery; null: they are refused. */
  readonly foreign: string | null;
  /** Log each HTTP connection that opens and ends. */
  readonly logConnections: boolean;
  /** Pages for browsers; null: there are none. */
  readonly pages: PageSettings | null;
}

/** A viewer session as one thread sees it. */
export interface SessionSighting {
  readonly feed: number;
  /** Public part of the token. */
  readonly session: string;
  readonly remoteAddress: string;
}

/** A session began (`ended` null) or ended (why). */
export interface SessionEvent {
  readonly sighting: SessionSighting;
  readonly ended: string | null;
  /** For a session whose end a control server must get: the thread's number of the admission. */
  readonly ticket?: number;
  /** With a ticket: the text that reports the end if the thread has died. */
  readonly record?: AdmissionText | undefined;
}

/** An `AdmissionRecord` in JSON: a text passes between threads at less cost than an object, and is seldom read. */
export type AdmissionText = string;

/** A virtual host as threads need it. */
export interface ServedHost extends ControlledHost {
  /** Missing streams may be pulled from origins. */
  readonly hasOrigins?: boolean;
  /** CORS rules of its applications, also for missing streams. */
  readonly pageOrigins?: HostOrigins | undefined;
}

/** Bytes sent to viewers since the last report, indexed like the sightings. */
export interface SessionBytes {
  readonly sightings: readonly SessionSighting[];
  readonly bytes: readonly number[];
}

/** From the main thread. Each number refers to a listener, block or question announced before. */
export type ToThread =
  | FeedMessage
  | { readonly type: 'hosts'; readonly hosts: readonly ServedHost[] }
  /** The stream of a `demand` can be served now, or will not start. */
  | { readonly type: 'demand-answer'; readonly question: number; readonly found: StreamPresence }
  /** The sessions of these tickets (`SessionEvent`) have ended in all threads. */
  | { readonly type: 'admissions-over'; readonly tickets: readonly number[] }
  /** Whether new viewers are refused. */
  | { readonly type: 'draining'; readonly on: boolean }
  | { readonly type: 'default-cross-domains'; readonly rules: CrossDomainRules }
  /** Whether connections are logged when they open and end. */
  | { readonly type: 'log-connections'; readonly on: boolean }
  /** Answered with `applied`. */
  | { readonly type: 'certificates'; readonly certificates: readonly Certificate[]; readonly handover: number }
  | {
      readonly type: 'listen';
      readonly listener: number;
      readonly request: ListenRequest;
      /** This thread opens the port first: it fails if any other process has the port. */
      readonly first: boolean;
      /** The descriptor of a socket that already listens; it belongs to the main thread until `listening`. */
      readonly held?: number;
    }
  | { readonly type: 'unlisten'; readonly listener: number }
  | { readonly type: 'block-add'; readonly block: number; readonly buffer: SharedArrayBuffer }
  | { readonly type: 'block-retire'; readonly block: number }
  | { readonly type: 'revoke'; readonly sessions: readonly string[] }
  /** Answer to `catch-up`: all earlier updates have been sent. */
  | { readonly type: 'caught-up' }
  | { readonly type: 'stop' };

/** Figures of the memory files of a thread (`thread/hot-files.ts`). */
export interface HotFigures {
  /** Bytes in memory files. */
  readonly bytes: number;
  readonly memoryFiles: number;
  /** Memory files removed to make room, since the start. */
  readonly evicted: number;
  /** Files without a memory file because there was no room, since the start. */
  readonly refused: number;
}

/** Counters of a thread since it started, plus what changed since the last report. */
export interface ThreadReport {
  readonly type: 'report';
  readonly http: HttpCounters;
  readonly connections: number;
  readonly waiting: number;
  readonly sessions: number;
  /** Answers for several viewers that found no room to be kept. */
  readonly unkept: number;
  /** Requests that waited in the addon for the answer to another, and those for which it had no room. */
  readonly held: number;
  readonly crowded: number;
  /** Spans of shared blocks in answers that are not written completely. */
  readonly blocksInFlight: number;
  readonly hot: HotFigures;
  /** Bytes of answers sent since the last report: feed, bytes, feed, bytes, … */
  readonly bytes: readonly number[];
  /** Feeds with an answer to a reader without a session since the last report. */
  readonly readFeeds: readonly number[];
  readonly sessionBytes: SessionBytes;
  /** In the order they happened. */
  readonly sessionEvents: readonly SessionEvent[];
  /** Play tokens that admitted viewers since the last report, by their grants. */
  readonly keyUses: readonly string[];
  /** Refusals since the last report, by kind. */
  readonly refusals: readonly RefusalCount[];
  /** Control servers to which the thread sends requests. */
  readonly controlServers: readonly ControlServerFigures[];
  /** Retired blocks that have become idle since the last report: a message for each would wake the main thread. */
  readonly idleBlocks: readonly number[];
}

/** From a thread: `ready` when it serves, `stopped` as the answer to `stop`. */
export type FromThread =
  | ThreadReport
  | { readonly type: 'ready' }
  | { readonly type: 'listening'; readonly listener: number; readonly port: number }
  | { readonly type: 'listen-failed'; readonly listener: number; readonly message: string }
  /** The handover with this number has been applied, or cannot be. */
  | { readonly type: 'applied'; readonly handover: number }
  /** A viewer requests a missing stream; `question` is the thread's number of the request. */
  | { readonly type: 'demand'; readonly question: number; readonly wanted: WantedStream }
  /** `wanted`: the thread has viewers and needs every update at once; otherwise batches suffice. */
  | { readonly type: 'catch-up'; readonly wanted: boolean }
  /** Whether the feed has viewers in this thread. A thread that rests has none of any feed. */
  | { readonly type: 'feed-watched'; readonly feed: number; readonly wanted: boolean }
  | { readonly type: 'log'; readonly level: 'debug' | 'info' | 'warn' | 'error'; readonly fields: object; readonly message: string }
  | { readonly type: 'stopped' };
