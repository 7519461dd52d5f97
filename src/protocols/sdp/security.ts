/** How a peer proves who it is, by its session description (RFC 8122, RFC 5763 section 5). */
import { ProtocolError } from '../../util/protocol-error.ts';
import type { SessionDescription } from './session-description.ts';

export interface PeerSecurity {
  /** `sha-256 AA:BB:…`. */
  readonly fingerprint: string;
  /** Our part in the handshake. */
  readonly role: 'client' | 'server';
}

/** Throws `SDP_FINGERPRINT`. */
export function securityOf({ medias }: SessionDescription): PeerSecurity {
  const media = medias.find(({ rejected, fingerprint }) => !rejected && fingerprint !== '');
  if (media === undefined) throw new ProtocolError('SDP_FINGERPRINT', 'the session description has no a=fingerprint');
  if (!/^sha-256 ([0-9A-F]{2}:){31}[0-9A-F]{2}$/.test(media.fingerprint))
    throw new ProtocolError('SDP_FINGERPRINT', 'a=fingerprint is not a SHA-256 digest');
  // Who answers `passive` waits for us; everybody else begins.
  return { fingerprint: media.fingerprint, role: media.setup === 'passive' ? 'client' : 'server' };
}
