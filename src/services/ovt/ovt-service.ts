/**
 * OVT as a service, the relay between servers of OvenMediaEngine's kind: edges pull from the port of `Bind/Publishers/OVT`, and streams are pulled
 * from other servers.
 *
 * `OvtPublisher` lays each packet out once, whoever gets it; `OvtPullSource` opens an `OvtPullSession` for each attempt. The byte layout is in
 * `wire/ovt`.
 *
 * Threads: the main one.
 * Limits: 1000 edges, 16 MiB that an edge has not taken (then nothing until the next keyframes), 10 s without progress, 64 sessions a connection.
 * Specification: none is published; the layout is that of servers of version 0.20.
 */
import { listenAddresses } from '../../util/listen-addresses.ts';
import type { Service, ServiceContext } from '../service.ts';
import { MAX_EDGES, OvtPublisher } from './ovt-publisher.ts';
import { OvtPullSource } from './ovt-pull-source.ts';
import { RelayPaths } from './relay-paths.ts';

/** Pulls work without a port of our own. */
export function startOvt({
  config,
  orchestrator,
  openings,
  limits,
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
    pullSources: [new OvtPullSource(clock, paths, config.bind.providers.ovt?.secretKey)],
    listen: async () => {
      if (ovt === undefined) return;
      for (const host of listenAddresses(config.ip)) {
        const limiter = limits.limiter('OVT edges', 'viewers', MAX_EDGES);
        const options = { host, port: ovt.port, virtualHostFor, hasApplication, limiter, timeoutScale };
        await openings.open(`OVT port ${ovt.port} (Bind/Publishers/OVT/Port)`, () => publisher.listen(options));
      }
    },
    close: () => publisher.stop(),
  };
}
