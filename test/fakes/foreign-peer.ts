/** The origin of a signalling request, as a delivery thread reports it. */
import type { RelayedPeer } from '../../src/delivery/relayed-peer.ts';

export function foreignPeer(address = '192.0.2.1', port = 3333): RelayedPeer {
  return { address, port, asked: { secure: false, port }, end: { address, port: 40_000 }, realIp: address };
}
