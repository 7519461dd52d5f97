/** A WebRTC viewer without browser: it counts what arrives. */
import { rtpHeaderLength } from '../../src/protocols/srtp/packet-head.ts';
import { PEER_CREDENTIALS, WebrtcPeer } from './webrtc-peer.ts';

export interface ReceivedPacket {
  readonly ssrc: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly payload: Buffer;
}

export class WebrtcViewer {
  /** Every media packet, in order of arrival. */
  readonly packets: ReceivedPacket[] = [];
  readonly #peer = new WebrtcPeer({ slots: () => [], onRtp: (packet) => this.#rtp(packet) });

  get connected(): boolean {
    return this.#peer.connected;
  }

  /** Why the connection ended; empty while it lasts. */
  get ended(): string {
    return this.#peer.ended;
  }

  /** The answer to an offer of ours: the first codec of each m-line. */
  answer(offer: string): string {
    const [, ...medias] = offer.split(/(?=^m=)/m);
    const lines = [
      'v=0',
      'o=- 1 2 IN IP4 127.0.0.1',
      's=-',
      't=0 0',
      `a=fingerprint:sha-256 ${this.#peer.certificate.fingerprint}`,
      'a=setup:active',
    ];
    for (const media of medias) {
      const [, kind = '', first = ''] = /^m=(\w+) \d+ \S+ (\d+)/.exec(media) ?? [];
      const map = new RegExp(`^a=rtpmap:${first} .*$`, 'm').exec(media)?.[0].trimEnd() ?? '';
      const mid = /^a=mid:(\w+)/m.exec(media)?.[1] ?? '';
      lines.push(`m=${kind} 9 UDP/TLS/RTP/SAVPF ${first}`, 'a=recvonly', `a=mid:${mid}`, ...PEER_CREDENTIALS, map);
    }
    return `${lines.join('\r\n')}\r\n`;
  }

  /** Connects to who made `offer`, at its first UDP candidate. */
  async connect(offer: string, candidates: readonly string[]): Promise<void> {
    await this.#peer.connect(offer, candidates);
  }

  /** Leaves: with a word to the server, or (`silently`) without. */
  close(silently = false): void {
    this.#peer.close(silently);
  }

  #rtp(packet: Buffer): void {
    const header = rtpHeaderLength(packet);
    this.packets.push({
      ssrc: packet.readUInt32BE(8),
      sequence: packet.readUInt16BE(2),
      timestamp: packet.readUInt32BE(4),
      payload: packet.subarray(header),
    });
  }
}
