/**
 * The contract between packagers (main thread) and delivery threads. Packagers describe the served stream in small messages; delivery
 * threads build their view from them and answer HTTP. Media bytes never travel in messages: they lie in shared blocks, and messages refer
 * to spans of them.
 */
import type { CrossDomainRules } from '../../access/cross-domains.ts';
import type { PublisherKind } from '../../core/kinds.ts';
import type { SessionHandle, SessionRequest } from '../../core/publishing.ts';
import type { StreamAddress } from '../../core/stream-address.ts';

export type { CrossDomainRules } from '../../access/cross-domains.ts';

/** A range of bytes inside a shared block. */
export interface Span {
  readonly block: number;
  readonly offset: number;
  readonly length: number;
}

/**
 * A feed is one stream of one publisher as delivery threads see it. `payload` types belong to the
 * publisher: its packager writes them and its view (running in the delivery thread) reads them.
 */
export type FeedMessage =
  | {
      readonly type: 'feed-open';
      readonly feed: number;
      readonly kind: PublisherKind;
      /** The served stream; delivery threads route `/<app>/<stream>/…` by it. */
      readonly address: StreamAddress;
      readonly crossDomains: CrossDomainRules | null;
      readonly settings: unknown;
    }
  | { readonly type: 'feed-update'; readonly feed: number; readonly payload: unknown }
  | { readonly type: 'feed-close'; readonly feed: number };

/** Main-thread side of one feed. */
export interface DeliveryFeed {
  readonly id: number;
  /** Whether the feed has viewers, who may wait for updates. */
  readonly watched: boolean;
  /** Sends `payload` to every delivery thread, in order. It must be structured-clonable and small. */
  update(payload: unknown): void;
  /** Copies `chunks` back to back into shared memory and returns their location (one span unless a block boundary is crossed). */
  store(chunks: readonly Uint8Array[]): readonly Span[];
  /** Views of stored bytes, in order; valid until they are released. */
  read(spans: readonly Span[]): readonly Uint8Array[];
  /** Frees bytes that are no longer listed: their memory is reused when no pending response needs it. */
  release(spans: readonly Span[]): void;
  /** Ends the feed: open responses end, and all stored bytes are released. Idempotent. */
  close(): void;
}

/** The delivery pool as packagers see it. */
export interface FeedOpener {
  openFeed(request: {
    readonly kind: PublisherKind;
    /** The served stream; delivery threads route `/<app>/<stream>/…` by it. */
    readonly address: StreamAddress;
    readonly crossDomains: CrossDomainRules | null;
    /** Passed to the view's constructor in every delivery thread. */
    readonly settings: unknown;
    /** Expected bytes per second, to choose a block size; 0 when unknown. */
    readonly bytesPerSecond: number;
    /** The state for a thread that starts or restarts, as update payloads in order. */
    readonly snapshot: () => readonly unknown[];
    /** Called for each viewer reported by the threads; null if requests do not count as viewers. */
    readonly openSession: ((request: Omit<SessionRequest, 'kind'>) => SessionHandle) | null;
    /** Called when the first viewer arrives. */
    readonly onWatched?: () => void;
    /** Called with the bytes of all answers, as reported by the threads. */
    readonly onBytesSent: (bytes: number) => void;
  }): DeliveryFeed;
}
