/** The WebRTC provider: opens sessions for publishers and keeps their time. */
import type { IngestGate } from '../../../core/ingest.ts';
import { type StreamAddress, streamKey } from '../../../core/stream-address.ts';
import type { Clock } from '../../../util/clock.ts';
import { forEachGuarded, guarded } from '../../../util/guarded.ts';
import type { Logger } from '../../../util/logger.ts';
import type { StreamTarget } from '../signalling/request-place.ts';
import type { PeerTransport } from '../transport/peer-transport.ts';
import type { PublisherTotals } from '../webrtc-metrics.ts';
import { IngestSession, type WebrtcIngestSettings } from './ingest-session.ts';

/** Interval of requests for lost packets and of feedback. */
const TICK_MS = 20;

/** Options; the server closes the transport after the provider. */
export interface WebrtcProviderOptions {
  readonly gate: IngestGate;
  readonly transport: PeerTransport;
  /** Settings of an application; null: there is none of that name, or it takes no WebRTC. */
  readonly settingsOf: (vhost: string, app: string) => WebrtcIngestSettings | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Settings for sessions that the core will refuse. */
const NO_SETTINGS: WebrtcIngestSettings = { timeout: 30_000, keyframeInterval: 0 };

/** Owns the sessions it opens; its timer runs only while publishers are connected. The server calls `stop`. */
export class WebrtcProvider {
  readonly #options: WebrtcProviderOptions;
  readonly #sessions = new Set<IngestSession>();
  /** Sessions whose publisher is connected: there is nothing to look at before. */
  readonly #connected = new Set<IngestSession>();
  #ticker: NodeJS.Timeout | null = null;

  constructor(options: WebrtcProviderOptions) {
    this.#options = options;
  }

  /** Publishers, including those in negotiation. */
  get sessions(): number {
    return this.#sessions.size;
  }

  /** A session for a publisher. Throws IngestRefused, and ProtocolError when there are too many sessions. */
  openSession(
    target: StreamTarget,
    { client, capabilities = '', onEnded }: { client: string; capabilities?: string; onEnded: (reason: string) => void },
  ): IngestSession {
    const { settingsOf, ...options } = this.#options;
    const session = new IngestSession({
      ...options,
      target,
      settings: settingsOf(target.vhost, target.app) ?? NO_SETTINGS,
      client,
      capabilities,
      onEnded,
      onConnected: (connected) => this.#watch(connected),
      onClosed: (closed) => this.#forget(closed),
    });
    this.#sessions.add(session);
    return session;
  }

  /** Figures by stream; the later of two publishers of one stream counts. */
  totals(): Iterable<readonly [StreamAddress, PublisherTotals]> {
    const byStream = new Map<string, readonly [StreamAddress, PublisherTotals]>();
    for (const { address, totals } of this.#sessions) if (totals !== null) byStream.set(streamKey(address), [address, totals]);
    return byStream.values();
  }

  /** Ends all publications. Idempotent. */
  stop(): void {
    for (const session of [...this.#sessions]) session.close('the server stops', 'shutdown');
  }

  #watch(session: IngestSession): void {
    this.#connected.add(session);
    this.#ticker ??= setInterval(
      guarded(this.#options.logger, 'the watch over WebRTC publications', () => this.#tick()),
      TICK_MS,
    );
  }

  #tick(): void {
    const failed = (session: IngestSession, error: unknown): void => {
      this.#options.logger.error({ err: error }, 'a WebRTC publication failed inside the server');
      session.close('internal error', 'peer-error');
    };
    forEachGuarded(this.#connected, (session) => session.tick(), failed);
  }

  #forget(session: IngestSession): void {
    this.#sessions.delete(session);
    this.#connected.delete(session);
    if (this.#connected.size > 0 || this.#ticker === null) return;
    clearInterval(this.#ticker);
    this.#ticker = null;
  }
}
