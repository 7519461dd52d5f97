/** How a peer authenticates itself, by its session description (RFC 8122, RFC 5763 section 5, RFC 8839 section 5.4). */

import { ProtocolError } from '../../util/protocol-error.ts';
import type { IceCredentials } from '../ice/ice-credentials.ts';
import type { SessionDescription } from './session-description.ts';

/** Expectations for the DTLS handshake with the peer. */
export interface PeerSecurity {
  /** `sha-256 AA:BB:…`. */
  readonly fingerprint: string;
  /** Our role in the handshake. */
  readonly role: 'client' | 'server';
  /** The credentials for this server's connectivity checks. */
  readonly remote: IceCredentials;
}

/** The lengths of RFC 8839 section 5.4, with more characters: peers are not that strict. */
const UFRAG = /^[!-~]{4,256}$/;
const PASSWORD = /^[!-~]{22,256}$/;

/** Throws `SDP_FINGERPRINT` and `SDP_ICE`. */
export function securityOf({ medias }: SessionDescription): PeerSecurity {
  const media = medias.find(({ rejected, fingerprint }) => !rejected && fingerprint !== '');
  if (media === undefined) throw new ProtocolError('SDP_FINGERPRINT', 'the session description has no a=fingerprint');
  if (!/^sha-256 ([0-9A-F]{2}:){31}[0-9A-F]{2}$/.test(media.fingerprint))
    throw new ProtocolError('SDP_FINGERPRINT', 'a=fingerprint is not a SHA-256 digest');
  const { ufrag, password } = media;
  if (!UFRAG.test(ufrag) || !PASSWORD.test(password))
    throw new ProtocolError('SDP_ICE', 'the session description has no a=ice-ufrag and a=ice-pwd as RFC 8839 has them');
  // A peer that answers `passive` waits for us; all others start the handshake.
  return { fingerprint: media.fingerprint, role: media.setup === 'passive' ? 'client' : 'server', remote: { ufrag, password } };
}
