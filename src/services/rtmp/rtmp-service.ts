/**
 * RTMP as a service: publishers on the ports of `Bind/Providers/RTMP`, in the clear and by TLS.
 *
 * An `RtmpProvider` for each port accepts an `RtmpConnection` for each socket; `RtmpSession` answers its commands, `PublishFeed` makes
 * tracks and packets of its messages and starts the stream (`ingest/stream-starter.ts`). The bytes are in `wire/rtmp`, and pushes by RTMP
 * in `services/push`.
 *
 * Threads: the main one. A connection whose packets can wait rests between reads (`core/urgency.ts`).
 * Limits: `rtmp-options.ts` (2000 connections a port, 10 s for the handshake, 15 s to `publish`, memory for bytes that have come rather
 * than for announced ones, 16 unfinished messages a second), turns of newcomers (`util/newcomer-turns.ts`), shares of addresses
 * (`ServerLimits`).
 * Specifications: Adobe's RTMP 1.0, AMF 0 and 3, FLV 10.1 annex E, Enhanced RTMP 2 (codecs and multitrack).
 */
import { openWithCertificate } from '../../delivery/tls/open-listener.ts';
import { listenAddresses } from '../../util/listen-addresses.ts';
import { scaleTimeouts } from '../../util/timeout-scale.ts';
import type { Service, ServiceContext } from '../service.ts';
import { DEFAULT_RTMP_LIMITS, DEFAULT_RTMP_TIMEOUTS } from './rtmp-options.ts';
import { RtmpProvider } from './rtmp-provider.ts';

/** Each port on every address of the server has one provider. */
export function startRtmp(context: ServiceContext): Service {
  const { config, orchestrator, access, openings, limits, certificates, restingSources, clock, timeoutScale } = context;
  const { rtmp } = config.bind.providers;
  if (rtmp === undefined) return {};
  const logger = context.logger.child({ provider: 'rtmp' });
  const providers: RtmpProvider[] = [];
  const options = {
    ...{ gate: orchestrator, access, logger, clock, turns: limits.newcomers, timeouts: scaleTimeouts(DEFAULT_RTMP_TIMEOUTS, timeoutScale) },
    enhanced: config.modules.ertmp.enable,
    onArrival: () => restingSources.readNow(),
  };
  const provide = (place: { readonly host: string; readonly port: number; readonly tls?: [] }): RtmpProvider => {
    const provider = new RtmpProvider({ ...options, ...place, entry: limits.rtmpEntry(DEFAULT_RTMP_LIMITS.connections) });
    providers.push(provider);
    return provider;
  };
  return {
    listen: async () => {
      for (const host of listenAddresses(config.ip)) {
        const plain = provide({ host, port: rtmp.port });
        await openings.open(`RTMP port ${rtmp.port} (Bind/Providers/RTMP/Port)`, () => plain.start());
        restingSources.add(plain);
        if (rtmp.tlsPort === undefined) continue;
        const secure = provide({ host, port: rtmp.tlsPort, tls: [] });
        const open = async (): Promise<void> => {
          await openings.open(`RTMPS port ${rtmp.tlsPort} (Bind/Providers/RTMP/TLSPort)`, () => secure.start());
          certificates.addFollower((all) => secure.setCertificates(all));
        };
        await openWithCertificate(`RTMPS port ${rtmp.tlsPort}`, open, { ...context, logger });
      }
    },
    close: async () => {
      await Promise.all(providers.map((provider) => provider.stop()));
    },
  };
}
