/**
 * MPEG-TS as a service: streams that come to the ports of `Bind/Providers/MPEGTS` over UDP (also multicast) or TCP, each for the
 * application whose stream map names the port.
 *
 * An `MpegtsProvider` for each address of the server has a `PortSource` for each port, which hears one sender at a time; `TransportFeed`
 * reads the sender's transport stream.
 *
 * Threads: the main one.
 * Limits: `port-source.ts`. After 1 s of silence a sender gives way to another sender of its address, after 5 s to any sender; without
 * tracks, its stream ends after 3 s of silence or 15 s in all. Over TCP a port takes one connection, which counts in the shares of
 * addresses (`ServerLimits`).
 * Specifications: ISO/IEC 13818-1, RFC 2250 (transport streams in RTP over UDP).
 */
import { sharedMpegtsPort } from '../../config/index.ts';
import { includesPort, portsOf } from '../../config/server-config.ts';
import type { Application } from '../../core/application.ts';
import type { Orchestrator } from '../../core/orchestrator.ts';
import { AddressSet } from '../../util/address-set.ts';
import { listenAddresses } from '../../util/listen-addresses.ts';
import type { Logger } from '../../util/logger.ts';
import { scaleTimeouts } from '../../util/timeout-scale.ts';
import type { Service, ServiceContext } from '../service.ts';
import { MpegtsProvider } from './mpegts-provider.ts';
import { DEFAULT_MPEGTS_TIMEOUTS, type MpegtsRoute } from './port-source.ts';

const PORT_MACRO = '${Port}';
/** Sets of `Source`, by their list. */
const SETS = new WeakMap<readonly string[], AddressSet>();

/** Each address of the server has one provider. */
export function startMpegts(context: ServiceContext): Service {
  const { config, orchestrator, openings, limits, clock, timeoutScale } = context;
  const { mpegts } = config.bind.providers;
  const logger = context.logger.child({ provider: 'mpegts' });
  const providers: MpegtsProvider[] = [];
  return {
    applicationStarted: (application) => warnOfSharedPorts(orchestrator, application, context.logger),
    listen: async () => {
      if (mpegts === undefined) return;
      for (const [index, host] of listenAddresses(config.ip).entries()) {
        const provider = new MpegtsProvider({
          ...{ logger, clock, host, ports: portsOf(mpegts.port), timeouts: scaleTimeouts(DEFAULT_MPEGTS_TIMEOUTS, timeoutScale) },
          protocol: mpegts.port.protocol === 'tcp' ? 'tcp' : 'udp',
          // A group has its own address, so that it can be joined once only.
          multicast: index === 0 ? mpegts.multicast : [],
          refusals: limits.refusals,
          limiter: limits.limiter('MPEG-TS connections', 'publishers', Number.POSITIVE_INFINITY),
          route: (port) => mpegtsRoute(applicationsOf(orchestrator), port),
        });
        providers.push(provider);
        await openings.open('a port of Bind/Providers/MPEGTS/Port', () => provider.start());
      }
    },
    close: async () => {
      await Promise.all(providers.map((provider) => provider.stop()));
    },
  };
}

/** The first application whose stream map names the port; null if there is none. Called for every datagram of an unaccepted sender. */
export function mpegtsRoute(applications: Iterable<Application>, port: number): MpegtsRoute | null {
  for (const application of applications) {
    const mpegts = application.definition.config.providers?.mpegts;
    const entry = mpegts?.streams.find((stream) => includesPort(stream.port, port));
    if (mpegts === undefined || entry === undefined) continue;
    return {
      streamName: entry.name.replaceAll(PORT_MACRO, String(port)),
      audioLabels: mpegts.audioMap?.item ?? [],
      ...(entry.program !== undefined && { program: entry.program }),
      ...(entry.source !== undefined && { sources: sourcesOf(entry.source) }),
      open: (request) => application.openIngest(request),
    };
  }
  return null;
}

function sourcesOf(entries: readonly string[]): AddressSet {
  const known = SETS.get(entries) ?? new AddressSet(entries);
  SETS.set(entries, known);
  return known;
}

/** Warns when an application made through the API shares a port with another one: the earlier application gets it. */
function warnOfSharedPorts(orchestrator: Orchestrator, { vhost, name, definition }: Application, logger: Logger): void {
  if ((definition.config.providers?.mpegts?.streams ?? []).length === 0) return;
  const users = Array.from(applicationsOf(orchestrator), (application) => ({
    vhost: application.vhost,
    config: application.definition.config,
  }));
  const shared = sharedMpegtsPort(users);
  if (shared !== null) logger.warn({ vhost, app: name }, shared.message);
}

function* applicationsOf(orchestrator: Orchestrator): Generator<Application> {
  for (const { applications } of orchestrator.virtualHosts) yield* applications.values();
}
