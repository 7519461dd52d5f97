/** WebRTC as a service: viewers and publishers on the ports of `Bind/Publishers/WebRTC` and `Bind/Providers/WebRTC`. */
import { type Running, stopAll } from '../../core/running.ts';
import type { Service, ServiceContext } from '../service.ts';

/** Opens the media ports and hands the signalling to the delivery. Rejects when they cannot be opened; nothing is open then. */
export async function startWebrtc({
  config,
  openings,
  orchestrator,
  finder,
  limits,
  egress,
  logger,
  patience,
}: ServiceContext): Promise<Service> {
  const { publishers, providers } = config.bind;
  if (publishers.webrtc === undefined && providers.webrtc === undefined) return {};
  // A hundred modules are loaded only where the ports are asked for.
  const { startPeers } = await import('./peers.ts');
  const running: Running[] = [];
  const neighbours = {
    ...{ gate: orchestrator, finder, limits, logger, patience },
    virtualHostFor: (host: string) => orchestrator.nameForHost(host),
    providerSettings: (vhost: string, app: string) => orchestrator.application(vhost, app)?.definition.config.providers?.webrtc ?? null,
  };
  const opening = openings.open('a port of Bind/Providers/WebRTC or Bind/Publishers/WebRTC', () => startPeers(config, neighbours, running));
  const peers = await opening.catch(async (error: unknown) => {
    await stopAll(running, logger);
    throw error;
  });
  if (peers !== null) egress.relaySignalling(peers.signallingPath);
  return {
    publishers: peers?.publisher == null ? [] : [peers.publisher],
    finish: () => stopAll(running, logger),
  };
}
