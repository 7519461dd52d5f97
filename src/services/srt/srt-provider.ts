/** The SRT listener for encoders: every accepted caller publishes one transport stream. */
import { type Gatekeeper, OPEN_GATE } from '../../access/access-check.ts';
import type { IngestGate, IngestStream } from '../../core/ingest.ts';
import type { StarterLimits } from '../../ingest/stream-starter.ts';
import type { AudioMapEntry } from '../../ingest/transport-track.ts';
import { LinkReporter, type LinkStatistics } from '../../transport/srt/link-reporter.ts';
import { SrtListener, type SrtListenerConfig } from '../../transport/srt/listener.ts';
import type { SrtUdpPort } from '../../transport/srt/udp-port.ts';
import { hostPort } from '../../util/client-address.ts';
import type { Clock } from '../../util/clock.ts';
import { guarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';
import { logRefused } from '../../util/refused.ts';
import type { DatagramPeer } from '../../wire/srt/link.ts';
import type { SrtCall, SrtSession } from '../../wire/srt/multiplexer.ts';
import { describeRejection, RejectionCode } from '../../wire/srt/rejection.ts';
import type { SrtTarget } from '../../wire/srt/stream-id.ts';
import { admitCaller, type LimitedSession } from './srt-admission.ts';
import { type CallerRefusal, DEFAULT_SRT_TIMEOUTS, SrtPublication, type SrtTimeouts } from './srt-publication.ts';

/** Interval of checking deadlines. */
const SWEEP_INTERVAL_MS = 100;
/** Default maximum of connected encoders of one port. */
export const MAX_SRT_ENCODERS = 2000;

/** The listening addresses, and the target of streams. Absent timeouts have their defaults. */
export interface SrtProviderOptions extends SrtListenerConfig {
  readonly gate: IngestGate;
  /** Decides who may publish; absent: every client. */
  readonly access?: Gatekeeper;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Labels for the audio tracks of an admitted stream (`AudioMap`). */
  readonly audioLabels?: (stream: IngestStream, target: SrtTarget) => readonly AudioMapEntry[];
  readonly timeouts?: Partial<SrtTimeouts>;
  readonly feedLimits?: Partial<StarterLimits>;
  /** Maximum of connections of one port. */
  readonly maxConnections?: number;
}

/** All ports of one address. */
export class SrtProvider {
  /** Callers refused because of their request. */
  refused = 0;
  readonly #options: SrtProviderOptions;
  readonly #logger: Logger;
  readonly #timeouts: SrtTimeouts;
  readonly #listener: SrtListener;
  readonly #publications = new Set<SrtPublication>();
  readonly #reporter: LinkReporter;
  #lastSession = 0;
  #sweep: NodeJS.Timeout | null = null;

  constructor(options: SrtProviderOptions) {
    this.#options = options;
    this.#logger = options.logger;
    this.#reporter = new LinkReporter(options);
    this.#timeouts = { ...DEFAULT_SRT_TIMEOUTS, ...options.timeouts };
    this.#listener = new SrtListener({
      ...options,
      mode: 'publish',
      maxConnections: options.maxConnections ?? MAX_SRT_ENCODERS,
      open: (call, target, port) => this.#open(call, target, port),
      onRefused: (peer, code, why) => {
        const detail = describeRejection(code);
        this.#refuse(peer, { kind: detail, reason: why ?? detail, detail: why === null ? detail : `${detail}: ${why}` });
      },
      onError: (error) => this.#logger.error({ err: error }, 'SRT listener failed'),
      onFault: (error) => this.#logger.limited.error({ err: error }, 'SRT connection failed inside the server'),
    });
  }

  /** The listening ports. */
  get ports(): readonly number[] {
    return this.#listener.ports.map(({ port }) => port);
  }

  /** Encoders connected now. */
  get connections(): number {
    return this.#publications.size;
  }

  /** Present figures of every encoder's connection, for metrics. */
  statistics(): LinkStatistics[] {
    return this.#reporter.statistics();
  }

  /** Listens. Rejects when a port cannot be bound. */
  async start(): Promise<void> {
    await this.#listener.start();
    const look = guarded(this.#logger, 'the watch over SRT connections', () => this.#checkDeadlines());
    this.#sweep = setInterval(() => setImmediate(look), SWEEP_INTERVAL_MS);
    this.#reporter.start();
    this.#logger.info({ host: this.#options.host, ports: this.ports }, 'SRT provider listening');
  }

  /** Stops listening and ends every publication. Idempotent. */
  async stop(): Promise<void> {
    if (this.#sweep === null) return;
    clearInterval(this.#sweep);
    this.#reporter.stop();
    this.#sweep = null;
    for (const publication of this.#publications) publication.close({ code: 'shutdown', detail: 'the SRT provider stops' });
    await this.#listener.stop('the SRT provider stops');
    this.#logger.info({}, 'SRT provider stopped');
  }

  #open(call: SrtCall, target: SrtTarget, port: SrtUdpPort): SrtSession | RejectionCode {
    const session = admitCaller(this.#options.access ?? OPEN_GATE, {
      ...{ direction: 'incoming', call, target, now: () => port.now() },
      open: (admitted) => this.#publish(call, admitted, port),
      onFault: (error) => this.#logger.limited.error({ err: error }, 'SRT connection failed inside the server'),
    });
    if (session === RejectionCode.UNAUTHORIZED) this.refused += 1;
    return session;
  }

  #publish(call: SrtCall, target: SrtTarget, port: SrtUdpPort): LimitedSession | RejectionCode {
    this.#lastSession += 1;
    const opened = SrtPublication.open({
      id: this.#lastSession,
      call,
      target,
      gate: this.#options.gate,
      logger: this.#logger,
      clock: this.#options.clock,
      now: () => port.now(),
      timeouts: this.#timeouts,
      feedLimits: this.#options.feedLimits ?? {},
      audioLabels: this.#options.audioLabels ?? (() => []),
      onClosed: (publication) => {
        this.#publications.delete(publication);
        this.#reporter.delete(publication);
      },
    });
    if (opened instanceof SrtPublication) {
      this.#publications.add(opened);
      this.#reporter.add(opened);
      return opened;
    }
    const { app, stream } = target;
    this.#refuse(call.peer, { ...opened, detail: `${opened.detail}: ${describeRejection(opened.code)}` }, { app, stream });
    return opened.code;
  }

  #refuse(peer: DatagramPeer, { kind, reason, detail }: Pick<CallerRefusal, 'kind' | 'reason' | 'detail'>, place: object = {}): void {
    this.refused += 1;
    logRefused(this.#logger, 'publisher', { code: kind, reason, peer: hostPort(peer.address, peer.port), ...place, detail });
  }

  #checkDeadlines(): void {
    for (const publication of this.#publications) publication.checkDeadlines();
  }
}
