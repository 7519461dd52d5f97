/** The part of a feed in a delivery thread: it keeps a model of the stream and answers requests from it. */
import type { AccessProtocol } from '../../access/access-check.ts';
import type { PublisherKind } from '../../core/kinds.ts';
import type { Span } from './messages.ts';

/** Access control's verdict on a request. */
export interface ViewerAdmission {
  readonly protocol: AccessProtocol;
  /** End of the viewer's admission, wall clock ms; infinite: none. */
  readonly expiresAt: number;
  /** Redirected here by a control server: this server makes no further checks. */
  readonly sent: boolean;
  /** Name of the play token, if one was used. */
  readonly grant?: string | undefined;
  /** Prefix for the names of media playlists, where a playlist is served at the address of another stream; else ''. */
  readonly base: string;
  /** Reported with the session that it begins; undefined without a control server. */
  readonly ticket: number | undefined;
  /** A session has started with the admission, which therefore outlasts the request. */
  entered(): void;
  /** The request has ended; without a session the admission ends too. Idempotent. */
  leave(): void;
}

/** One HTTP request to answer, independent of the HTTP version. */
export interface DeliveryExchange {
  readonly method: 'GET' | 'HEAD';
  /** File part of `/<app>/<stream>/<file>`, percent-decoded. */
  readonly file: string;
  /** Raw query string without `?`; '' if there is none. */
  readonly query: string;
  /** First value of a query key, percent-decoded; undefined when absent. */
  queryValue(key: string): string | undefined;
  /** Request header by lower-case name. */
  header(name: string): string | undefined;
  readonly remoteAddress: string;
  /** Null without access control, and for requests with a session. */
  readonly admission: ViewerAdmission | null;
  /** Counts the bytes of the answer for this viewer too. */
  billTo(viewer: ByteSink): void;
  /** How long the request had waited before the view got it, ms. */
  readonly heldFor: number;
  /** The client has left, or an answer was sent. */
  readonly done: boolean;
  /** Called once if the client leaves before an answer was sent: the exchange must be forgotten. */
  onAbort(callback: () => void): void;
  /** Answers with bytes. `headers` are complete header lines without CORS, Date, Server and Content-Length, which are added. */
  respond(status: number, headers: readonly string[], body: readonly Uint8Array[]): void;
  /**
   * Answers with media bytes from shared memory, whose blocks stay until the last byte is written. Pass the same array for the same file:
   * a file with several viewers is recognised by its array.
   */
  respondSpans(status: number, headers: readonly string[], spans: readonly Span[]): void;
  /** Answers with the bytes of a file (DVR); 404 if it cannot be opened. */
  respondFile(status: number, headers: readonly string[], path: string): void;
  /**
   * Answers with `pieces` joined by `tail`, which is ASCII and specific to this viewer, gzip-encoded if the client accepts it. All viewers
   * must get the same array, and it must not change: then the text is compressed once for all of them.
   */
  respondTailored(status: number, headers: readonly string[], pieces: readonly string[], tail: string): void;
}

/** A counter of sent bytes. */
export interface ByteSink {
  /** The token in the viewer's URLs; absent where the bytes belong to no session. */
  readonly token?: string;
  countBytes(bytes: number): void;
}

/** A valid viewer session, proven by the `session` query. */
export interface ViewerSession {
  /** The whole value to put into child URIs. */
  readonly token: string;
}

/** Services of a delivery thread for its views. */
export interface ViewContext {
  /** The feed has access control: every file except the entry points needs a session. */
  readonly guarded: boolean;
  /**
   * Creates a session for an admitted client that requested a multivariant playlist, for the time of its admission; null if its address
   * has too many sessions, or if the feed is guarded and the client was not admitted.
   */
  createSession(exchange: DeliveryExchange): ViewerSession | null;
  /** Checks the `session` query; null if it is missing, forged, expired or revoked. Marks the session as active. */
  session(exchange: DeliveryExchange): ViewerSession | null;
  /**
   * Counts a viewer without a session in its URLs: one per address and player, until `ttlMs` pass without a request. Reported like
   * sessions. False: it was terminated and must be refused.
   */
  countViewer(exchange: DeliveryExchange, ttlMs: number): boolean;
  /** Records a reader that is neither a session nor a counted viewer: a draining server waits for it too. */
  noteReader(): void;
  /** Counts a request that was refused because too many waited. */
  noteOverload(): void;
  /** Runs `callback` after `ms`; returns a function that cancels it. */
  schedule(ms: number, callback: () => void): () => void;
  /** Monotonic clock, ms. */
  now(): number;
}

/** Created by a `ViewFactory` when its feed opens, closed by its registry. `payload` comes from the feed's packager, in order. */
export interface DeliveryView {
  update(payload: unknown): void;
  /** Answers `exchange`, now or later. Returns false if the view has no such file. */
  handle(exchange: DeliveryExchange): boolean;
  /** The feed has ended: answer everything that still waits. */
  close(): void;
}

/** Creates the view of a feed. `settings` is the packager's value for `openFeed`. */
export type ViewFactory = (settings: unknown, context: ViewContext) => DeliveryView;
/** By kind of feed; a kind without a factory is not served in this process. */
export type ViewFactories = Partial<Record<PublisherKind, ViewFactory>>;
