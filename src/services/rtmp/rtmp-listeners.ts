/** Opens the ports of `Bind/Providers/RTMP`. */

import type { ServerConfig } from '../../config/index.ts';
import type { IngestGate } from '../../core/ingest.ts';
import type { PortOpenings } from '../../core/port-openings.ts';
import type { ServerLimits } from '../../delivery/server-limits.ts';
import type { CertificateStore } from '../../delivery/tls/certificate-store.ts';
import { openWithCertificate } from '../../delivery/tls/open-listener.ts';
import { systemClock } from '../../util/clock.ts';
import type { Conditions } from '../../util/conditions.ts';
import { listenAddresses } from '../../util/listen-addresses.ts';
import type { Logger } from '../../util/logger.ts';
import { type Patience, withPatience } from '../../util/patience.ts';
import { DEFAULT_RTMP_LIMITS, DEFAULT_RTMP_TIMEOUTS } from './rtmp-options.ts';
import { RtmpProvider } from './rtmp-provider.ts';

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
    const plain = new RtmpProvider({ ...common, port: rtmp.port, entry: limits.rtmpEntry(DEFAULT_RTMP_LIMITS.connections) });
    running.push(plain);
    await openings.open(`RTMP port ${rtmp.port} (Bind/Providers/RTMP/Port)`, () => plain.start());
    rtmpProviders.push(plain);
    if (rtmp.tlsPort === undefined) continue;
    const secure = new RtmpProvider({ ...common, port: rtmp.tlsPort, tls: [], entry: limits.rtmpEntry(DEFAULT_RTMP_LIMITS.connections) });
    running.push(secure);
    const open = async (): Promise<void> => {
      await openings.open(`RTMPS port ${rtmp.tlsPort} (Bind/Providers/RTMP/TLSPort)`, () => secure.start());
      certificates.tell((all) => secure.setCertificates(all));
    };
    await openWithCertificate(`RTMPS port ${rtmp.tlsPort}`, open, parts);
  }
}
