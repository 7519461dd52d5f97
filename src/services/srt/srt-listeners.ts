/** Opens the ports of `Bind/Providers/SRT` and `Bind/Publishers/SRT`. */
import type { ServerConfig } from '../../config/index.ts';
import { portsOf } from '../../config/server-config.ts';
import type { Orchestrator } from '../../core/orchestrator.ts';
import type { PortOpenings } from '../../core/port-openings.ts';
import type { ServerLimits } from '../../delivery/server-limits.ts';
import type { SrtListenerConfig } from '../../transport/srt/listener.ts';
import type { SrtLinks } from '../../transport/srt/srt-metrics.ts';
import type { Clock } from '../../util/clock.ts';
import { listenAddresses } from '../../util/listen-addresses.ts';
import type { Logger } from '../../util/logger.ts';
import { type Patience, withPatience } from '../../util/patience.ts';
import { readListenerOptions } from '../../wire/srt/socket-options.ts';
import { MAX_SRT_ENCODERS, SrtProvider } from './srt-provider.ts';
import { DEFAULT_SRT_TIMEOUTS } from './srt-publication.ts';
import { MAX_SRT_VIEWERS, type SrtPublisher } from './srt-publisher.ts';

type SrtBind = NonNullable<ServerConfig['bind']['providers']['srt']>;

/** Starts what is configured on every address of the server; what was started is added to `running`. */
export async function startSrt(
  config: ServerConfig,
  parts: {
    readonly orchestrator: Orchestrator;
    readonly openings: PortOpenings;
    readonly publisher: SrtPublisher;
    /** Takes those that have connections. */
    readonly links: SrtLinks[];
    readonly limits: ServerLimits;
    readonly logger: Logger;
    readonly clock: Clock;
    readonly patience: Patience;
  },
  running: { stop(): Promise<void> }[],
): Promise<void> {
  const { orchestrator, openings, publisher, links, limits, logger, clock, patience } = parts;
  const { refusals } = limits;
  const maxWrongKeysPerSecond = config.limits.perAddress.keyTrials;
  const { srt: ingest } = config.bind.providers;
  const { srt: egress } = config.bind.publishers;
  const virtualHostFor = (nameOrHost: string): string | null => orchestrator.virtualHostFor(nameOrHost)?.name ?? null;
  if (egress !== undefined) running.push(publisher);
  for (const host of listenAddresses(config.ip)) {
    if (ingest !== undefined) {
      const provider = new SrtProvider({
        ...listenerConfig(host, ingest, logger),
        ...{ virtualHostFor, refusals, maxWrongKeysPerSecond, shares: limits.shares('publishers', MAX_SRT_ENCODERS) },
        gate: orchestrator,
        logger,
        clock,
        timeouts: withPatience(DEFAULT_SRT_TIMEOUTS, patience),
        audioLabels: ({ vhost }, { app }) => orchestrator.application(vhost, app)?.definition.config.providers?.srt?.audioMap?.item ?? [],
      });
      running.push(provider);
      links.push({ direction: 'ingest', statistics: () => provider.statistics() });
      await openings.open('a port of Bind/Providers/SRT/Port', () => provider.start());
    }
    if (egress !== undefined) {
      const shares = limits.shares('viewers', MAX_SRT_VIEWERS);
      const options = { ...listenerConfig(host, egress, logger), virtualHostFor, refusals, maxWrongKeysPerSecond, shares };
      await openings.open('a port of Bind/Publishers/SRT/Port', () => publisher.listen(options));
    }
  }
}

function listenerConfig(
  host: string,
  { port, options, streamMap, streamPassphrases }: SrtBind,
  logger: Logger,
): Omit<SrtListenerConfig, 'virtualHostFor'> {
  const settings = readListenerOptions(options);
  if (settings.ignored.length > 0) {
    logger.warn({ options: settings.ignored }, `SRT options without effect in this server: ${settings.ignored.join(', ')}`);
  }
  return { host, ports: portsOf(port), settings, streamMap, streamPassphrases };
}
