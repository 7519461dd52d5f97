/** Takes off the protection of everything one peer sends: guesses roll-overs, refuses replays. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { rtpHeaderLength } from './packet-head.ts';
import type { SrtpProfile } from './profile.ts';
import { ReplayWindow } from './replay-window.ts';
import { SrtpCipher } from './srtp-cipher.ts';

/** SSRCs of one peer; RTP of a further one is refused. */
const SOURCE_LIMIT = 16;

export class SrtpReceiver {
  readonly #rtp: SrtpCipher;
  readonly #rtcp: SrtpCipher;
  readonly #rtcpWindow = new ReplayWindow();
  readonly #windows = new Map<number, ReplayWindow>();

  constructor(profile: SrtpProfile, key: Uint8Array, salt: Uint8Array) {
    this.#rtp = new SrtpCipher(profile, key, salt, 'rtp');
    this.#rtcp = new SrtpCipher(profile, key, salt, 'rtcp');
  }

  /** The plain packet. Throws ProtocolError: malformed, forged, replayed, or one source too many. */
  rtp(packet: Uint8Array): Buffer {
    if (rtpHeaderLength(packet) === 0) throw new ProtocolError('SRTP_SHORT', 'the SRTP packet is not complete', 0);
    const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
    const ssrc = view.getUint32(8);
    const known = this.#windows.get(ssrc);
    if (known === undefined && this.#windows.size >= SOURCE_LIMIT) {
      throw new ProtocolError('SRTP_SOURCES', `more than ${SOURCE_LIMIT} sources from one peer`);
    }
    const index = known === undefined ? view.getUint16(2) : guessIndex(view.getUint16(2), known.newest);
    if (index < 0 || known?.fresh(index) === false) throw new ProtocolError('SRTP_REPLAYED', 'the packet was received before');
    const plain = this.#rtp.unprotectRtp(packet, index);
    // Only an authentic packet makes a source known.
    const window = known ?? new ReplayWindow();
    if (known === undefined) this.#windows.set(ssrc, window);
    window.mark(index);
    return plain;
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
