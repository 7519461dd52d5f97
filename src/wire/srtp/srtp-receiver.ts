/** Removes the protection of all packets of one peer: infers roll-overs, refuses replays. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { rtpHeaderLength } from './packet-head.ts';
import type { SrtpProfile } from './profile.ts';
import { ReplayWindow } from './replay-window.ts';
import { SrtpCipher } from './srtp-cipher.ts';

/** SSRCs of one peer; a new SSRC replaces a silent one, else its RTP is refused. */
const MAX_SOURCES = 16;
/**
 * A source ends after this many packets of other sources, some seconds. Afterwards an attacker on the path could replay its old packets,
 * which gains the attacker nothing.
 */
const SILENCE = 2048;

interface Source {
  readonly window: ReplayWindow;
  /** Number of the peer's packets when its last one came. */
  heard: number;
}

/** Each peer has its own. The number of sources is bounded: a silent source makes room for a new one. */
export class SrtpReceiver {
  readonly #rtp: SrtpCipher;
  readonly #rtcp: SrtpCipher;
  readonly #rtcpWindow = new ReplayWindow();
  readonly #sources = new Map<number, Source>();
  #packets = 0;

  constructor(profile: SrtpProfile, key: Uint8Array, salt: Uint8Array) {
    this.#rtp = new SrtpCipher(profile, key, salt, 'rtp');
    this.#rtcp = new SrtpCipher(profile, key, salt, 'rtcp');
  }

  /** Erases the keys. Idempotent. */
  close(): void {
    this.#rtp.close();
    this.#rtcp.close();
  }

  /** The plain packet. Throws ProtocolError: malformed, forged, replayed, or one source too many. */
  rtp(packet: Uint8Array): Buffer {
    if (rtpHeaderLength(packet) === 0) throw new ProtocolError('SRTP_SHORT', 'the SRTP packet is not complete', 0);
    const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
    const ssrc = view.getUint32(8);
    const known = this.#sources.get(ssrc);
    const over = known === undefined && this.#sources.size >= MAX_SOURCES ? this.#silentSource() : null;
    const index = known === undefined ? view.getUint16(2) : guessIndex(view.getUint16(2), known.window.newest);
    if (index < 0 || known?.window.fresh(index) === false) throw new ProtocolError('SRTP_REPLAYED', 'the packet was received before');
    const plain = this.#rtp.unprotectRtp(packet, index);
    // Only an authentic packet makes a source known.
    this.#packets += 1;
    const source = known ?? { window: new ReplayWindow(), heard: 0 };
    source.heard = this.#packets;
    if (known === undefined) this.#sources.set(ssrc, source);
    if (over !== null) this.#sources.delete(over);
    source.window.mark(index);
    return plain;
  }

  /** The silent SSRC that makes room for another. Throws ProtocolError if all are in use. */
  #silentSource(): number {
    const [oldest] = [...this.#sources].sort(([, a], [, b]) => a.heard - b.heard);
    if (oldest !== undefined && this.#packets - oldest[1].heard >= SILENCE) return oldest[0];
    throw new ProtocolError('SRTP_SOURCES', `more than ${MAX_SOURCES} sources from one peer`);
  }

  /** The plain compound packet. Throws ProtocolError: malformed, forged or replayed. */
  rtcp(packet: Uint8Array): Buffer {
    const { packet: plain, index } = this.#rtcp.unprotectRtcp(packet);
    if (!this.#rtcpWindow.fresh(index)) throw new ProtocolError('SRTP_REPLAYED', 'the packet was received before');
    this.#rtcpWindow.mark(index);
    return plain;
  }
}

/** The index closest to `newest` that ends with `sequence` (RFC 3711 appendix A). */
function guessIndex(sequence: number, newest: number): number {
  const distance = ((sequence - (newest % 0x1_0000)) << 16) >> 16;
  return newest + distance;
}
