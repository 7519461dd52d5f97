/** A WebRTC viewer without a browser that counts media packets. */
import { rtpHeaderLength } from '../../src/wire/srtp/packet-head.ts';
import { PEER_CREDENTIALS, WebrtcPeer } from './webrtc-peer.ts';

export interface ReceivedPacket {
  readonly ssrc: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly marker: boolean;
  readonly payload: Buffer;
}

export interface WebrtcViewerOptions {
  /** Counts packets without decrypting or keeping them, so that hundreds of viewers fit on a core. */
  readonly counting?: boolean;
  /** Accepts the retransmission format if it is offered; never sends NACKs. */
  readonly retransmission?: boolean;
  /** Called for each media packet on arrival. */
  readonly onPacket?: (packet: ReceivedPacket) => void;
}

export class WebrtcViewer extends WebrtcPeer {
  /** Every media packet, in order of arrival; empty when they are only counted. */
  readonly packets: ReceivedPacket[] = [];
  readonly #options: WebrtcViewerOptions;

  constructor(options: WebrtcViewerOptions = {}) {
    super();
    this.#options = options;
  }

  /** Media packets that arrived. */
  get received(): number {
    // Without keys the fan-out counts all packets as unknown.
    return this.#options.counting === true ? this.strangers : this.packets.length;
  }

  /** The answer to our offer: the first codec of each m-line. */
  answer(offer: string): string {
    const [, ...medias] = offer.split(/(?=^m=)/m);
    const lines: string[] = [];
    for (const media of medias) {
      const [, kind = '', first = ''] = /^m=(\w+) \d+ \S+ (\d+)/.exec(media) ?? [];
      const map = new RegExp(`^a=rtpmap:${first} .*$`, 'm').exec(media)?.[0].trimEnd() ?? '';
      const mid = /^a=mid:(\w+)/m.exec(media)?.[1] ?? '';
      const repeats =
        this.#options.retransmission === true ? new RegExp(`^a=fmtp:(\\d+) apt=${first}\\r?$`, 'm').exec(media)?.[1] : undefined;
      const formats = repeats === undefined ? first : `${first} ${repeats}`;
      lines.push(`m=${kind} 9 UDP/TLS/RTP/SAVPF ${formats}`, 'a=recvonly', `a=mid:${mid}`, ...PEER_CREDENTIALS, map);
      if (repeats !== undefined) lines.push(`a=rtcp-fb:${first} nack`, `a=rtpmap:${repeats} rtx/90000`, `a=fmtp:${repeats} apt=${first}`);
    }
    return this.describe('active', lines);
  }

  protected override slots(): [] | null {
    return this.#options.counting === true ? null : [];
  }

  protected override onRtp(packet: Buffer): void {
    const header = rtpHeaderLength(packet);
    const received: ReceivedPacket = {
      ssrc: packet.readUInt32BE(8),
      sequence: packet.readUInt16BE(2),
      timestamp: packet.readUInt32BE(4),
      marker: (packet.readUInt8(1) & 0x80) !== 0,
      payload: packet.subarray(header),
    };
    this.packets.push(received);
    this.#options.onPacket?.(received);
  }
}
