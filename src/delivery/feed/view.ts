/** The part of a feed in a delivery thread: it keeps a model of the stream and answers requests from it. */
import type { AccessProtocol } from '../../access/access-check.ts';
import type { Span } from './messages.ts';

/** Access control's verdict on a request. */
export interface ViewerAdmission {
  readonly protocol: AccessProtocol;
  /** When its viewer has to go, wall clock ms; infinite: never. */
  readonly expiresAt: number;
  /** A control server has sent it here: this place demands nothing of it. */
  readonly sent: boolean;
  /** Names the play token that let it in, where one did. */
  readonly grant?: string | undefined;
  /** Prefix for the names of media playlists, where a playlist is served at the address of another stream; else ''. */
  readonly base: string;
  /** Reported with the session that it begins; undefined without a control server. */
  readonly ticket: number | undefined;
  /** A session has begun with it, so that it outlasts the request. */
  entered(): void;
  /** The request is over: without a session so is the admission. Idempotent. */
  leave(): void;
}

/** One HTTP request to answer, independent of the HTTP version. */
export interface DeliveryExchange {
  readonly method: 'GET' | 'HEAD';
  /** File part of `/<app>/<stream>/<file>`, percent-decoded. */
  readonly file: string;
  /** Raw query string without `?`; '' when there is none. */
  readonly query: string;
  /** First value of a query key, percent-decoded; undefined when absent. */
  queryValue(key: string): string | undefined;
  /** Request header by lower-case name. */
  header(name: string): string | undefined;
  readonly remoteAddress: string;
  /** Null without access control, and for requests with a session. */
  readonly admission: ViewerAdmission | null;
  /** The bytes of the answer count for this viewer too. */
  billTo(viewer: ByteSink): void;
  /** The client went away or an answer was sent. */
  readonly done: boolean;
  /** Called once when the client goes away before an answer was sent: forget this exchange. */
  onAbort(callback: () => void): void;
  /** Answers with bytes. `headers` are complete header lines without CORS, Date, Server and Content-Length, which are added. */
  respond(status: number, headers: readonly string[], body: readonly Uint8Array[]): void;
  /**
   * Answers with media bytes from shared memory, whose blocks stay until the last byte is written. Pass the same array for the same file:
   * files with several viewers are recognised by it.
   */
  respondSpans(status: number, headers: readonly string[], spans: readonly Span[]): void;
  /** Answers with the bytes of a file (DVR); 404 if it cannot be opened. */
  respondFile(status: number, headers: readonly string[], path: string): void;
  /**
   * Answers with `pieces` joined by `tail`, which is ASCII and this viewer's own, gzip-encoded when the client accepts it. All viewers
   * must be given the same array, and it must not change: then the text is compressed once for all of them.
   */
  respondTailored(status: number, headers: readonly string[], pieces: readonly string[], tail: string): void;
}

/** Where bytes are counted. */
export interface ByteSink {
  /** Of a session: what stands in the URLs of its viewer. */
  readonly token?: string;
  countBytes(bytes: number): void;
}

/** A valid viewer session, proven by the `session` query. */
export interface ViewerSession {
  /** The whole value to put into child URIs. */
  readonly token: string;
}

/** Services a delivery thread gives its views. */
export interface ViewContext {
  /** The feed has access control: every file except the entry points needs a session. */
  readonly guarded: boolean;
  /**
   * Makes a session for an admitted client that requested a multivariant playlist, as long as its admission lasts; null if its address has
   * too many sessions, or if the feed is guarded and the client was not admitted.
   */
  createSession(exchange: DeliveryExchange): ViewerSession | null;
  /** Checks the `session` query; null when it is missing, forged, expired or revoked. Marks the session as alive. */
  session(exchange: DeliveryExchange): ViewerSession | null;
  /**
   * Counts a viewer without a session in its URLs: one per address and player, gone after `ttlMs` without a request. Reported like
   * sessions. False: it was terminated and must be refused.
   */
  countViewer(exchange: DeliveryExchange, ttlMs: number): boolean;
  /** Notes a reader that is neither a session nor a counted viewer, for which a draining server waits, too. */
  noteReader(): void;
  /** Runs `callback` after `ms`; returns a function that cancels it. */
  schedule(ms: number, callback: () => void): () => void;
  /** Monotonic clock, ms. */
  now(): number;
}

/** Made by a `ViewFactory` when its feed opens, closed by its registry. `payload` comes from the feed's packager, in order. */
export interface DeliveryView {
  update(payload: unknown): void;
  /** Answers `exchange`, now or later. Returns false if the view has no such file. */
  handle(exchange: DeliveryExchange): boolean;
  /** The feed is gone: answer everything that still waits. */
  close(): void;
}
