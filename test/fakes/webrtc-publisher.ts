/** A WebRTC publisher without browser: made-up VP8. */
import type { Fanout } from '../../src/protocols/fanout/fanout.ts';
import { PEER_CREDENTIALS, WebrtcPeer } from './webrtc-peer.ts';

const SSRC = 4711;
/** A keyframe of 320x180 behind the descriptor that begins a frame. */
const KEYFRAME = Buffer.from(`10${'1000009d012a4001b400aabbccdd'}`, 'hex');
const NO_EXTENSION = { bytes: new Uint8Array(0), sendTimeAt: 0, transportSequenceAt: 0 };

/** Sends VP8, keyframes only. */
export class FakeWebrtcPublisher {
  /** Compound RTCP packets that came. */
  readonly heard: Buffer[] = [];
  readonly #peer = new WebrtcPeer({
    slots: () => [{ ssrc: SSRC, payloadType: this.#payloadType, rtx: null, extension: NO_EXTENSION }],
    onConnected: (fanout, viewer) => this.#begin(fanout, viewer),
    onRtcp: (packet) => this.heard.push(packet),
  });
  #payloadType = 96;
  #source = 0;
  #fanout: Fanout | null = null;
  #sent = 0;

  get connected(): boolean {
    return this.#peer.connected;
  }

  /** Why the connection ended; empty while it lasts. */
  get ended(): string {
    return this.#peer.ended;
  }

  /** An offer of one VP8 stream. `setup`: its part in the handshake. */
  offer(setup = 'actpass'): string {
    return [
      'v=0',
      'o=- 1 2 IN IP4 127.0.0.1',
      's=-',
      't=0 0',
      'a=group:BUNDLE 0',
      `a=fingerprint:sha-256 ${this.#peer.certificate.fingerprint}`,
      `a=setup:${setup}`,
      ...this.#media('96', '0'),
    ].join('\r\n');
  }

  /** The answer to a server's offer: VP8 only. */
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
      const mid = /^a=mid:(\w+)/m.exec(media)?.[1] ?? '';
      const type = /^a=rtpmap:(\d+) VP8/m.exec(media)?.[1];
      if (type !== undefined) this.#payloadType = Number(type);
      lines.push(...(type === undefined ? ['m=audio 0 UDP/TLS/RTP/SAVPF 102', `a=mid:${mid}`] : this.#media(type, mid)));
    }
    return `${lines.join('\r\n')}\r\n`;
  }

  /** Connects to who described itself so. */
  async connect(description: string, candidates?: readonly string[]): Promise<void> {
    await this.#peer.connect(description, candidates);
  }

  /** Sends one keyframe. */
  send(): void {
    const sizes = Uint32Array.of(KEYFRAME.length);
    this.#fanout?.push(this.#source, { timestamp: this.#sent * 3600, keyframe: true, marker: true, payloads: KEYFRAME, sizes });
    this.#sent += 1;
  }

  /** Leaves: with a word to the server, or (`silently`) without. */
  close(silently = false): void {
    this.#peer.close(silently);
  }

  #begin(fanout: Fanout, viewer: number): void {
    this.#fanout = fanout;
    this.#source = fanout.openSource({ clockRate: 90_000, epochMs: Date.now() });
    fanout.play(viewer, 0, this.#source);
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
