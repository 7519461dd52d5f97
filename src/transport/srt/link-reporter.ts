/** Logs the state of a listener's connections regularly, and provides their figures. */

import type { StreamAddress } from '../../core/stream-address.ts';
import type { Clock } from '../../util/clock.ts';
import { forEachGuarded, guarded } from '../../util/guarded.ts';
import type { Logger } from '../../util/logger.ts';
import type { SrtStatistics } from '../../wire/srt/statistics.ts';

const INTERVAL_MS = 60_000;
/** Limit of log lines at level info or above in each round; the rest is counted. */
const MAX_LINES = 100;
/** A round trip that grew by half and by this much, ms, is worth a line. */
const GROWN_BY = 10;

/** The user of a connection. */
export interface LinkLabels extends StreamAddress {
  readonly session: string;
  readonly peer: string;
}

/** The figures of a connection as they are now; counters count from its start. */
export interface LinkStatistics extends LinkLabels, SrtStatistics {}

/** A connection and who uses it. */
export interface WatchedLink {
  readonly labels: LinkLabels;
  /** Names the connection in every line. */
  readonly logger: Logger;
  /** Null before the connection is there. */
  readonly statistics: SrtStatistics | null;
}

/** Figures between two rounds. */
interface Round {
  readonly at: number;
  readonly statistics: SrtStatistics;
  /** Packets lost in the round, including repaired losses. */
  readonly lost: number;
}

/** One for each publisher or provider; `add` and `delete` frame the life of a connection. Runs a timer from `start` to `stop`. */
export class LinkReporter {
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** With the round before; null when there was none. */
  readonly #links = new Map<WatchedLink, Round | null>();
  #timer: NodeJS.Timeout | null = null;

  constructor(options: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = options.clock;
    this.#logger = options.logger;
  }

  /** Present figures of every connection. Asking costs nothing: they are counted anyway. */
  statistics(): LinkStatistics[] {
    return Array.from(this.#links.keys()).flatMap(({ labels, statistics }) => (statistics === null ? [] : { ...labels, ...statistics }));
  }

  add(link: WatchedLink): void {
    this.#links.set(link, null);
  }

  /** Idempotent. */
  delete(link: WatchedLink): void {
    this.#links.delete(link);
  }

  /** Reports once a minute from now on. Idempotent. */
  start(): void {
    this.#timer ??= setInterval(
      guarded(this.#logger, 'the report on SRT connections', () => this.#report()),
      INTERVAL_MS,
    ).unref();
  }

  /** Idempotent. */
  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** One round: a line for each connection, at a visible level if the connection became worse. */
  #report(): void {
    let lines = 0;
    const failed = ([{ logger }]: [WatchedLink, unknown], error: unknown): void =>
      logger.limited.error({ err: error }, 'the report on an SRT connection failed');
    forEachGuarded(
      this.#links,
      ([link, before]) => {
        if (this.#tell(link, before, lines)) lines += 1;
      },
      failed,
    );
    if (lines > MAX_LINES) this.#logger.info({ connections: lines - MAX_LINES }, 'further SRT connections have degraded');
  }

  /** Reports one connection after `lines` lines about others. True if the connection became worse. */
  #tell(link: WatchedLink, before: Round | null, lines: number): boolean {
    const { statistics } = link;
    if (statistics === null) return false;
    const at = this.#clock.monotonic();
    const { sender, receiver } = statistics;
    const [oldSender, oldReceiver] = [before?.statistics.sender, before?.statistics.receiver];
    const lost =
      receiver.packetsLost - (oldReceiver?.packetsLost ?? 0) + sender.packetsReportedLost - (oldSender?.packetsReportedLost ?? 0);
    const damage = damageOf(statistics) - (before === null ? 0 : damageOf(before.statistics));
    this.#links.set(link, { at, statistics, lost });
    // The first round has no earlier round to compare with.
    const fields = { ...figures(statistics), ...(before === null ? {} : rates(statistics, before, at)), lost, damage };
    const grown = before !== null && statistics.rtt > before.statistics.rtt * 1.5 + GROWN_BY;
    const worse = damage > 0 || lost > (before?.lost ?? 0) || grown;
    if (worse && lines < MAX_LINES) link.logger.info(fields, 'SRT connection has degraded');
    else link.logger.debug(fields, 'SRT connection');
    return worse;
  }
}

/** Packets whose loss a viewer sees. */
function damageOf({ sender, receiver }: SrtStatistics): number {
  const received = receiver.packetsDroppedLate + receiver.packetsUndecryptable + receiver.packetsTooFar + receiver.packetsOversized;
  return received + sender.packetsDroppedLate + sender.packetsRefused;
}

/** Sums since the start. */
function figures({ rtt, sender, receiver }: SrtStatistics): object {
  return {
    rttMs: Math.round(rtt * 10) / 10,
    retransmitted: sender.packetsRetransmitted + receiver.packetsRetransmitted,
    tooLate: sender.packetsDroppedLate + receiver.packetsDroppedLate,
  };
}

function rates({ sender, receiver }: SrtStatistics, before: Round, at: number): object {
  // Bits in a millisecond are kilobits in a second.
  const kbps = (bytes: number): number => Math.round((bytes * 8) / Math.max(1, at - before.at));
  return {
    kbpsIn: kbps(receiver.bytesDelivered - before.statistics.receiver.bytesDelivered),
    kbpsOut: kbps(sender.bytesSent - before.statistics.sender.bytesSent),
  };
}
