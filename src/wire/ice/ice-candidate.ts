/** Candidates as SDP writes them (RFC 8839 section 5.1, RFC 6544 section 4.5). */
import { createHash } from 'node:crypto';

/** A local candidate: a host candidate, the only kind of an ICE-lite side (RFC 8445 section 5.2). */
export interface IceCandidate {
  readonly protocol: 'UDP' | 'TCP';
  readonly address: string;
  readonly port: number;
}

/** All candidates are hosts of one component and equally good; TCP is for clients whose network blocks UDP. */
export const CANDIDATE_PRIORITY = { UDP: 50, TCP: 40 } as const;

/** A candidate of the peer; `address` may be an mDNS name that hides the address. */
export interface PeerCandidate {
  readonly protocol: 'udp' | 'tcp';
  readonly address: string;
  readonly port: number;
  /** `host`, `srflx`, `prflx` or `relay`. */
  readonly type: string;
}

/** Bounded everywhere, because the text is untrusted. */
const CANDIDATE = /\bcandidate:\S{1,32} 1 (udp|tcp) \d{1,10} ([\w.:%-]{1,64}) (\d{1,5}) typ (\w{1,8})/gi;
/** Browsers with many interfaces have about twenty. */
const MAX_CANDIDATES = 24;

/** The candidates for media in a session description or a part of it; other text is ignored. */
export function readCandidates(text: string): PeerCandidate[] {
  return [...text.matchAll(CANDIDATE)].slice(0, MAX_CANDIDATES).map(([, protocol = '', address = '', port = '', type = '']) => ({
    protocol: protocol.toLowerCase() === 'tcp' ? 'tcp' : 'udp',
    address,
    port: Number(port),
    type: type.toLowerCase(),
  }));
}

/** The candidate without `a=` in front. */
export function formatCandidate({ protocol, address, port }: IceCandidate): string {
  const tail = protocol === 'TCP' ? ' tcptype passive' : '';
  return `candidate:${foundation(protocol, address)} 1 ${protocol} ${CANDIDATE_PRIORITY[protocol]} ${address} ${port} typ host${tail}`;
}

/** Ten digits, the same for the same base address and protocol (RFC 8445 section 5.1.1.3). */
function foundation(protocol: string, address: string): string {
  const digest = createHash('sha256').update(`${protocol} ${address}`).digest();
  return `${1_000_000_000 + (digest.readUInt32BE(0) % 3_000_000_000)}`;
}
