/** RTMP as a service: publishers on the ports of `Bind/Providers/RTMP`. */
import { openWithCertificate } from '../../delivery/tls/open-listener.ts';
import { listenAddresses } from '../../util/listen-addresses.ts';
import { withPatience } from '../../util/patience.ts';
import type { Service, ServiceContext } from '../service.ts';
import { DEFAULT_RTMP_LIMITS, DEFAULT_RTMP_TIMEOUTS } from './rtmp-options.ts';
import { RtmpProvider } from './rtmp-provider.ts';

/** One provider for each port on every address of the server. */
export function startRtmp(context: ServiceContext): Service {
  const { config, orchestrator, openings, limits, certificates, restingSources, clock, patience } = context;
  const { rtmp } = config.bind.providers;
  if (rtmp === undefined) return {};
  const logger = context.logger.child({ provider: 'rtmp' });
  const providers: RtmpProvider[] = [];
  const options = {
    ...{ gate: orchestrator, logger, clock, turns: limits.newcomers, timeouts: withPatience(DEFAULT_RTMP_TIMEOUTS, patience) },
    onArrival: () => restingSources.rouse(),
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
          certificates.tell((all) => secure.setCertificates(all));
        };
        await openWithCertificate(`RTMPS port ${rtmp.tlsPort}`, open, { ...context, logger });
      }
    },
    close: async () => {
      await Promise.all(providers.map((provider) => provider.stop()));
    },
  };
}
