/** Opens the port of `Bind/Publishers/OVT`. */
import type { ServerConfig } from '../../config/index.ts';
import type { Orchestrator } from '../../core/orchestrator.ts';
import type { PortOpenings } from '../../core/port-openings.ts';
import type { ServerLimits } from '../../delivery/server-limits.ts';
import { listenAddresses } from '../../util/listen-addresses.ts';
import type { Patience } from '../../util/patience.ts';
import { MAX_EDGES, type OvtPublisher } from './ovt-publisher.ts';

/** Listens on every address of the server, if the configuration wants it; the publisher is then added to `running`. */
export async function startOvt(
  config: ServerConfig,
  parts: {
    readonly orchestrator: Orchestrator;
    readonly openings: PortOpenings;
    readonly publisher: OvtPublisher;
    readonly limits: ServerLimits;
    readonly patience: Patience;
  },
  running: { stop(): Promise<void> }[],
): Promise<void> {
  const { ovt } = config.bind.publishers;
  if (ovt === undefined) return;
  const { orchestrator, openings, publisher, limits, patience } = parts;
  running.push(publisher);
  for (const host of listenAddresses(config.ip)) {
    const virtualHostFor = (name: string): string | null => orchestrator.nameForHost(name) ?? null;
    const hasApplication = (vhost: string, app: string): boolean => orchestrator.application(vhost, app) !== undefined;
    const door = limits.door('OVT edges', 'viewers', MAX_EDGES);
    const options = { host, port: ovt.port, virtualHostFor, hasApplication, door, patience };
    await openings.open(`OVT port ${ovt.port} (Bind/Publishers/OVT/Port)`, () => publisher.listen(options));
  }
}
