/**
 * OVT as a service, the relay between servers of OvenMediaEngine's kind: edges pull from the ports of `Bind/Publishers/OVT`, without and
 * with TLS, and this server pulls streams from other servers.
 *
 * `OvtPublisher` serializes each packet once for all edges; `OvtPullSource` opens an `OvtPullSession` for each attempt. The byte layout is
 * in `wire/ovt`.
 *
 * Threads: the main one.
 * Limits: 1000 edges, 16 MiB of unsent bytes per edge (then nothing until the next keyframes), 10 s without progress, 64 sessions per
 * connection, 10 s for a TLS handshake, 16 servers in a row (`relay-paths.ts`).
 * Specifications: none is published; the layout is that of OvenMediaEngine 0.20.
 */
import { readFileSync } from 'node:fs';
import { openWithCertificate } from '../../delivery/tls/open-listener.ts';
import { listenAddresses } from '../../util/listen-addresses.ts';
import type { Service, ServiceContext } from '../service.ts';
import { MAX_EDGES, OvtPublisher } from './ovt-publisher.ts';
import { OvtPullSource } from './ovt-pull-source.ts';
import { RelayPaths } from './relay-paths.ts';

/** Pulling does not need our own port. */
export function startOvt({
  config,
  orchestrator,
  openings,
  limits,
  certificates,
  conditions,
  finder,
  originMaps,
  clock,
  logger,
  timeoutScale,
}: ServiceContext): Service {
  const { ovt } = config.bind.publishers;
  const paths = new RelayPaths();
  const publisher = new OvtPublisher({
    logger: logger.child({ publisher: 'ovt' }),
    clock,
    finder,
    directory: originMaps,
    paths,
    passesMarks: ovt !== undefined,
    key: ovt?.secretKey,
  });
  const virtualHostFor = (name: string): string | null => orchestrator.nameForHost(name) ?? null;
  const hasApplication = (vhost: string, app: string): boolean => orchestrator.application(vhost, app) !== undefined;
  return {
    publishers: [publisher],
    pullSources: [new OvtPullSource(clock, paths, trustOf(config.bind.providers.ovt))],
    listen: async () => {
      if (ovt === undefined) return;
      for (const host of listenAddresses(config.ip)) {
        const limiter = limits.limiter('OVT edges', 'viewers', MAX_EDGES);
        const options = { host, virtualHostFor, hasApplication, limiter, timeoutScale };
        const { port, tlsPort } = ovt;
        if (port !== undefined)
          await openings.open(`OVT port ${port} (Bind/Publishers/OVT/Port)`, () => publisher.listen({ ...options, port }));
        if (tlsPort === undefined) continue;
        const open = async (): Promise<void> => {
          const listen = (): Promise<void> => publisher.listen({ ...options, port: tlsPort, tls: true });
          await openings.open(`OVT port ${tlsPort} (Bind/Publishers/OVT/TLSPort)`, listen);
          certificates.addFollower((all) => publisher.setCertificates(all));
        };
        await openWithCertificate(`OVT port ${tlsPort}`, open, { certificates, conditions, logger });
      }
    },
    close: () => publisher.stop(),
  };
}

/** Key and certificates for origins; with unreadable certificates no origin is trusted. */
function trustOf(provider: ServiceContext['config']['bind']['providers']['ovt']): { readonly key?: string; readonly ca?: string } {
  const { secretKey, caPath = '' } = provider ?? {};
  return { ...(secretKey !== undefined && { key: secretKey }), ...(caPath !== '' && { ca: readCertificates(caPath) }) };
}

/** `check` and the start report unreadable files. */
function readCertificates(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
