/** Opens the ports of `Bind/Providers/RTMP`. */
import type { CertificateStore } from './certificate-store.ts';
import type { ServerConfig } from './config/index.ts';
import type { IngestGate } from './core/ingest.ts';
import { openWithCertificate } from './open-listener.ts';
import type { PortOpenings } from './port-openings.ts';
import { DEFAULT_RTMP_TIMEOUTS } from './providers/rtmp/rtmp-options.ts';
import { RtmpProvider } from './providers/rtmp/rtmp-provider.ts';
import type { ServerLimits } from './server-limits.ts';
import { systemClock } from './util/clock.ts';
import type { Conditions } from './util/conditions.ts';
import { listenAddresses } from './util/listen-addresses.ts';
import type { Logger } from './util/logger.ts';
import { type Patience, withPatience } from './util/patience.ts';

/** Starts what is configured on every address of the server; what was started is added to `running`. */
export async function startRtmp(
  config: ServerConfig,
  parts: {
    readonly orchestrator: IngestGate;
    readonly openings: PortOpenings;
    readonly limits: ServerLimits;
    readonly certificates: CertificateStore;
    readonly conditions: Conditions;
    /** Takes those whose connections may rest. */
    readonly rtmpProviders: RtmpProvider[];
    readonly rousePublishers: () => void;
    readonly logger: Logger;
    readonly patience: Patience;
  },
  running: { stop(): Promise<void> }[],
): Promise<void> {
  const { rtmp } = config.bind.providers;
  if (rtmp === undefined) return;
  const { orchestrator, openings, limits, certificates, rtmpProviders, rousePublishers, logger, patience } = parts;
  for (const host of listenAddresses(config.ip)) {
    const common = {
      ...{ gate: orchestrator, logger, clock: systemClock },
      ...{ host, onArrival: rousePublishers, timeouts: withPatience(DEFAULT_RTMP_TIMEOUTS, patience) },
    };
    const plain = new RtmpProvider({ ...common, port: rtmp.port, entry: limits.rtmpEntry() });
    running.push(plain);
    await openings.open(`RTMP port ${rtmp.port} (Bind/Providers/RTMP/Port)`, () => plain.start());
    rtmpProviders.push(plain);
    if (rtmp.tlsPort === undefined) continue;
    const secure = new RtmpProvider({ ...common, port: rtmp.tlsPort, tls: [], entry: limits.rtmpEntry() });
    running.push(secure);
    const open = async (): Promise<void> => {
      await openings.open(`RTMPS port ${rtmp.tlsPort} (Bind/Providers/RTMP/TLSPort)`, () => secure.start());
      certificates.tell((all) => secure.setCertificates(all));
    };
    await openWithCertificate(`RTMPS port ${rtmp.tlsPort}`, open, parts);
  }
}
