/** The contract of a pull source: it opens a URL and delivers, until it is closed or ends by itself. */
import type { Logger } from '../util/logger.ts';
import { maskedUrl } from '../util/masked-url.ts';
import type { CloseReason, IngestStream } from './ingest.ts';
import type { ProviderKind, SourceType } from './kinds.ts';
import type { StreamAddress } from './stream-address.ts';

/** Takes what a source delivers. After `close`, and after the session was closed, everything else is ignored. */
export interface PullSink extends Pick<IngestStream, 'setTracks' | 'push' | 'pushEvent' | 'countBytes'> {
  /** Media has come; it may have to wait for more before it can be pushed. A source that is silent for long is left. */
  heard(): void;
  /** The source ended or failed. */
  close(reason: CloseReason): void;
}

/** One attempt at one URL; media, and the end of it, go to `sink`. */
export interface PullTarget {
  readonly url: string;
  /** Starts at once instead of waiting for the sender reports that bring audio and video together (RTSP). */
  readonly ignoreSenderReports: boolean;
  /** The provider's part of the application's configuration; its type is the provider's to know. */
  readonly settings: unknown;
  readonly sink: PullSink;
  /** Gives the opening up; of no effect once `open` has resolved. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** The stream's name here; absent: the source is only probed. */
  readonly stream?: StreamAddress;
  /** The stream is served as it is. */
  readonly relay?: boolean;
  /** Ids of the servers for which the stream is pulled, the first to ask first; absent: none. */
  readonly via?: readonly string[];
}

/** A source that delivers. */
export interface PullSession {
  /** Says goodbye to the server, if it still can, and ends. Idempotent. */
  close(): void;
  /** Reads no more until `resume`, so that the server waits; sources that cannot make it wait have none. */
  pause?(): void;
  resume?(): void;
}

/** A way to fetch streams. */
export interface PullSource {
  /** URL schemes, in lower case, without colon. */
  readonly schemes: readonly string[];
  readonly provider: ProviderKind;
  readonly sourceType: SourceType;
  /** Resolves when the server has agreed to send. Rejects with the reason, for the log, when it does not. */
  open(target: PullTarget): Promise<PullSession>;
}

/** How a pulled stream lives; times in milliseconds. */
export interface PullProperties {
  /** Kept until it is deleted: reconnects for ever, survives restarts. */
  readonly persistent: boolean;
  /** Silence of the source after which the next URL is tried. */
  readonly noInputFailoverTimeoutMs: number;
  /** Time without any viewer after which the stream is deleted. */
  readonly unusedStreamDeletionTimeoutMs: number;
  readonly ignoreRtcpSRTimestamp: boolean;
  /** All URLs are tried this many times more before the stream is given up. */
  readonly retryCount: number;
  /** Tracks pass as they are, whatever output profiles the application has. */
  readonly relay: boolean;
  /** How often the first URL is tried while another one delivers; absent: never. */
  readonly failbackMs?: number;
}

/** A stream to pull. */
export interface PullDefinition {
  readonly name: string;
  /** In the order of failover; all of one scheme. */
  readonly urls: readonly string[];
  readonly properties: PullProperties;
  /** The configuration of the application asks for it, or a viewer did: it ends with the application and is not kept on disk. */
  readonly configured?: boolean;
  /** The origin map named the source. */
  readonly fromOriginMap?: boolean;
  /** Ids of the servers that asked for it, the first to ask first. */
  readonly via?: readonly string[];
  /** Finds the stream's present server when its source was lost; null if none is known. Absent: only `urls` count. Never rejects. */
  readonly successor?: () => Promise<string | null>;
}

/** No URL could be pulled; `message` tells the last reason. */
export class PullFailed extends Error {
  override readonly name = 'PullFailed';
}

/** The scheme of a URL in lower case; empty when it has none. */
export function schemeOf(url: string): string {
  return /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1]?.toLowerCase() ?? '';
}

/** The URL without user and password. */
export function withoutCredentials(url: string): string {
  return url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#]*@/i, '$1');
}

/** The URL as logs and answers show it: without user and password, and without the values of a query that let somebody in. */
export function shownUrl(url: string): string {
  return maskedUrl(withoutCredentials(url));
}
