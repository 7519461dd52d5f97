/** One player: an SRT connection that gets the payloads of a playlist. */

import type { LinkLabels, WatchedLink } from '../../transport/srt/link-reporter.ts';
import type { Logger } from '../../util/logger.ts';
import type { SrtCloseReason, SrtConnection } from '../../wire/srt/connection.ts';
import type { SrtCall } from '../../wire/srt/multiplexer.ts';
import type { SrtStatistics } from '../../wire/srt/statistics.ts';
import type { LimitedSession } from './srt-admission.ts';

/** Options of a viewer, made within the handshake. */
export interface SrtViewerOptions {
  readonly call: SrtCall;
  readonly labels: LinkLabels;
  readonly logger: Logger;
  /** Time of the connection, µs. */
  readonly now: () => number;
  readonly onJoined: (viewer: SrtViewer) => void;
  /** The connection is gone. Called once, only after `onJoined`. */
  readonly onLeft: (viewer: SrtViewer, reason: string) => void;
}

/**
 * Begins at the next entry point. A viewer whose send buffer is full gets nothing more until the next entry point after
 * that: half a frame is of no use.
 */
export class SrtViewer implements LimitedSession, WatchedLink {
  /** Payloads left out because the viewer did not keep up. */
  dropped = 0;
  #unbilled = 0;
  readonly #options: SrtViewerOptions;
  readonly #openedAt: number;
  #connection: SrtConnection | null = null;
  #state: 'joining' | 'playing' | 'skipping' = 'joining';

  constructor(options: SrtViewerOptions) {
    this.#options = options;
    this.#openedAt = options.now();
  }

  /** Payloads that follow begin with tables and a keyframe. */
  enter(): void {
    this.#state = 'playing';
  }

  get labels(): LinkLabels {
    return this.#options.labels;
  }

  get logger(): Logger {
    return this.#options.logger;
  }

  /** Present figures of the connection; null while there is none. */
  get statistics(): SrtStatistics | null {
    return this.#connection?.statistics ?? null;
  }

  /** Sends a payload; returns the bytes that went into the send buffer. */
  send(payload: Uint8Array): number {
    if (this.#connection === null || this.#state === 'joining') return 0;
    if (this.#state === 'playing' && this.#connection.send(payload, this.#options.now())) {
      this.#unbilled += payload.length;
      return payload.length;
    }
    this.#state = 'skipping';
    this.dropped += 1;
    return 0;
  }

  /** Bytes that went into the send buffer since the last call. */
  takeBytes(): number {
    const bytes = this.#unbilled;
    this.#unbilled = 0;
    return bytes;
  }

  /** Ends the connection. Idempotent. */
  close(detail: string): void {
    this.#connection?.close(detail, this.#options.now());
  }

  expire(reason: string): void {
    this.close(reason);
  }

  onOpen(connection: SrtConnection): void {
    this.#connection = connection;
    const { peerLatency } = connection.terms;
    this.#options.logger.info({ latencyMs: peerLatency / 1000, encrypted: connection.encrypted }, 'SRT viewer connected');
    this.#options.onJoined(this);
  }

  /** Viewers send no data. */
  onData(_payload: Uint8Array): void {}

  onClosed({ code, detail }: SrtCloseReason): void {
    const { statistics } = this;
    this.#options.logger.info(
      {
        code,
        detail,
        durationMs: Math.round((this.#options.now() - this.#openedAt) / 1000),
        dropped: this.dropped,
        ...(statistics === null ? {} : { rttMs: Math.round(statistics.rtt * 10) / 10, ...statistics.sender }),
      },
      'SRT viewer left',
    );
    this.#options.onLeft(this, detail === '' ? code : detail);
  }
}
