/** A WebRTC publisher without a browser, with synthetic VP8. */
import type { Fanout, SlotPlan } from '../../src/services/webrtc/transport/fanout/fanout.ts';
import { PEER_CREDENTIALS, WebrtcPeer } from './webrtc-peer.ts';

const SSRC = 4711;
/** A keyframe of 320x180 after the payload descriptor that begins a frame. */
const KEYFRAME = Buffer.from(`10${'1000009d012a4001b400aabbccdd'}`, 'hex');
const NO_EXTENSION = { bytes: new Uint8Array(0), sendTimeAt: 0, transportSequenceAt: 0 };

/** Sends VP8, keyframes only. */
export class FakeWebrtcPublisher extends WebrtcPeer {
  /** Received compound RTCP packets. */
  readonly heard: Buffer[] = [];
  #payloadType = 96;
  #source = 0;
  #fanout: Fanout | null = null;
  #sent = 0;

  /** An offer of one VP8 stream. `setup`: its role in the handshake. */
  offer(setup = 'actpass'): string {
    return this.describe(setup, ['a=group:BUNDLE 0', ...this.#media('96', '0')]);
  }

  /** The answer to a server's offer: VP8 only. */
  answer(offer: string): string {
    const [, ...medias] = offer.split(/(?=^m=)/m);
    const lines: string[] = [];
    for (const media of medias) {
      const mid = /^a=mid:(\w+)/m.exec(media)?.[1] ?? '';
      const type = /^a=rtpmap:(\d+) VP8/m.exec(media)?.[1];
      if (type !== undefined) this.#payloadType = Number(type);
      lines.push(...(type === undefined ? ['m=audio 0 UDP/TLS/RTP/SAVPF 102', `a=mid:${mid}`] : this.#media(type, mid)));
    }
    return this.describe('active', lines);
  }

  /** Sends one keyframe. */
  send(): void {
    const sizes = Uint32Array.of(KEYFRAME.length);
    this.#fanout?.push(this.#source, { timestamp: this.#sent * 3600, keyframe: true, marker: true, payloads: KEYFRAME, sizes });
    this.#sent += 1;
  }

  protected override slots(): readonly SlotPlan[] {
    return [{ ssrc: SSRC, payloadType: this.#payloadType, rtx: null, extension: NO_EXTENSION }];
  }

  protected override onConnected(fanout: Fanout, viewer: number): void {
    this.#fanout = fanout;
    this.#source = fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
    fanout.play(viewer, 0, this.#source);
  }

  protected override onRtcp(packet: Buffer): void {
    this.heard.push(packet);
  }

  #media(type: string, mid: string): string[] {
    return [
      `m=video 9 UDP/TLS/RTP/SAVPF ${type}`,
      'a=sendonly',
      `a=mid:${mid}`,
      ...PEER_CREDENTIALS,
      `a=rtpmap:${type} VP8/90000`,
      `a=rtcp-fb:${type} nack pli`,
      `a=rtcp-fb:${type} nack`,
    ];
  }
}
