/**
 * WebRTC as a service: viewers and publishers on the ports of `Bind/Publishers/WebRTC` and `Bind/Providers/WebRTC`, by WHEP, WHIP and the
 * signalling of OvenPlayer and OvenLiveKit.
 *
 * Both directions share `transport/`: media ports, sessions, paths, the relay for TCP, and the interface to the addon (`fanout/`; without
 * the addon `script-fanout/` serves a handful of viewers, and can be deleted in one go). `signalling/` answers HTTP and WebSockets, `play/`
 * serves streams, `ingest/` makes streams of publishers' packets. `peers.ts` puts the parts together.
 *
 * Threads: sender and receiver threads of the addon do SRTP, sends and retransmission; the main thread does signalling, DTLS, bandwidth
 * estimation, and the packets of publishers.
 * Limits: 20,000 sessions, sessions of an address and sessions that are not connected yet (`transport/session-quota.ts`), 64 KiB a body,
 * 10 s to send it; a path carries nothing before it has answered one of our checks.
 * Specifications: RFC 8825 and those it names (8445, 8489, 6544, 5764, 3711, 7714, 8834, 4585, 4588), RFC 9725 (WHIP),
 * draft-ietf-wish-whep, RFC 8656 (TURN over TCP), draft-holmer-rmcat-transport-wide-cc-extensions.
 */
import type { Service, ServiceContext } from '../service.ts';

/** Opens the media ports and hands the signalling to the delivery. Rejects when they cannot be opened; nothing is open then. */
export async function startWebrtc(context: ServiceContext): Promise<Service> {
  const { config, openings, delivery } = context;
  const { publishers, providers } = config.bind;
  if (publishers.webrtc === undefined && providers.webrtc === undefined) return {};
  // The hundred modules are loaded only if the ports are configured.
  const { startPeers } = await import('./peers.ts');
  const peers = await openings.open('a port of Bind/Providers/WebRTC or Bind/Publishers/WebRTC', () => startPeers(context));
  if (peers === null) return {};
  delivery.relaySignalling(peers.signallingPath);
  return {
    publishers: peers.publisher === null ? [] : [peers.publisher],
    metrics: [peers.metrics],
    finish: () => peers.stop(),
  };
}
