/** Where a signalling request came from, as a delivery thread tells it. */
import type { ForeignPeer } from '../../src/delivery/thread/foreign-relay.ts';

export function foreignPeer(address = '192.0.2.1', port = 3333): ForeignPeer {
  return { address, port, asked: { secure: false, port }, end: { address, port: 40_000 }, realIp: address };
}
