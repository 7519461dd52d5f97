/**
 * SRT as a service: publishers on the ports of `Bind/Providers/SRT`, viewers on those of `Bind/Publishers/SRT`.
 *
 * `SrtProvider` makes an `SrtPublication` of each connection that publishes, whose transport stream `TransportFeed` reads; `SrtPublisher`
 * muxes one transport stream for each outbound stream and playlist and sends it to all viewers of it. The port with its connections is
 * `transport/srt`, the state machine `wire/srt`, the socket `native/udp`; pushes by SRT are in `services/push`.
 *
 * Threads: the main one.
 * Limits: 2000 publishers and 5000 viewers a port, wrong keys by address (`Limits/PerAddress/KeyTrials`); a publication without tracks ends
 * after 15 s, or after 3 s of silence.
 * Specifications: draft-sharabayko-srt-01, the access control of SRT's stream ids, ISO/IEC 13818-1.
 */
import type { ServerConfig } from '../../config/index.ts';
import { portsOf } from '../../config/server-config.ts';
import type { SrtListenerConfig } from '../../transport/srt/listener.ts';
import { readListenerOptions } from '../../transport/srt/socket-options.ts';
import { srtMetrics } from '../../transport/srt/srt-metrics.ts';
import { listenAddresses } from '../../util/listen-addresses.ts';
import { scaleTimeouts } from '../../util/timeout-scale.ts';
import type { Service, ServiceContext } from '../service.ts';
import { MAX_SRT_ENCODERS, SrtProvider } from './srt-provider.ts';
import { DEFAULT_SRT_TIMEOUTS } from './srt-publication.ts';
import { MAX_SRT_VIEWERS, SrtPublisher } from './srt-publisher.ts';

type SrtBind = NonNullable<ServerConfig['bind']['providers']['srt']>;

/** The providers and the publisher of SRT. */
export function startSrt(context: ServiceContext): Service {
  const { config, orchestrator, access, openings, limits, finder, clock, timeoutScale } = context;
  const { refusals } = limits;
  const maxWrongKeysPerSecond = config.limits.perAddress.keyTrials;
  const { srt: ingest } = config.bind.providers;
  const { srt: egress } = config.bind.publishers;
  const logger = context.logger.child({ provider: 'srt' });
  const virtualHostFor = (nameOrHost: string): string | null => orchestrator.virtualHostFor(nameOrHost)?.name ?? null;
  const publisher = new SrtPublisher({ logger: context.logger.child({ publisher: 'srt' }), clock, finder, access });
  const providers: SrtProvider[] = [];
  return {
    publishers: [publisher],
    metrics: [
      srtMetrics([
        { direction: 'playback', statistics: () => publisher.statistics() },
        { direction: 'ingest', statistics: () => providers.flatMap((provider) => provider.statistics()) },
      ]),
    ],
    listen: async () => {
      for (const host of listenAddresses(config.ip)) {
        if (ingest !== undefined) {
          const provider = new SrtProvider({
            ...listenerConfig(host, ingest),
            ...{ virtualHostFor, refusals, maxWrongKeysPerSecond, shares: limits.shares('publishers', MAX_SRT_ENCODERS) },
            ...{ gate: orchestrator, access, logger, clock, timeouts: scaleTimeouts(DEFAULT_SRT_TIMEOUTS, timeoutScale) },
            audioLabels: ({ vhost }, { app }) =>
              orchestrator.application(vhost, app)?.definition.config.providers?.srt?.audioMap?.item ?? [],
          });
          providers.push(provider);
          await openings.open('a port of Bind/Providers/SRT/Port', () => provider.start());
        }
        if (egress !== undefined) {
          const shares = limits.shares('viewers', MAX_SRT_VIEWERS);
          const options = { ...listenerConfig(host, egress), virtualHostFor, refusals, maxWrongKeysPerSecond, shares };
          await openings.open('a port of Bind/Publishers/SRT/Port', () => publisher.listen(options));
        }
      }
    },
    close: async () => {
      await Promise.all([publisher, ...providers].map((part) => part.stop()));
    },
  };
}

function listenerConfig(host: string, { port, options, streamMap, streamPassphrases }: SrtBind): Omit<SrtListenerConfig, 'virtualHostFor'> {
  const settings = readListenerOptions(options);
  return { host, ports: portsOf(port), settings, streamMap, streamPassphrases };
}
