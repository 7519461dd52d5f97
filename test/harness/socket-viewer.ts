/** A viewer without a browser that uses the WebSocket protocol, and can request keyframes of H.264. */
import type { Fanout } from '../../src/services/webrtc/transport/fanout/fanout.ts';
import { buildPli } from '../../src/wire/rtp/receiver-feedback.ts';
import { rtpHeaderLength } from '../../src/wire/srtp/packet-head.ts';
import { WebrtcViewer } from '../fakes/webrtc-viewer.ts';
import { until } from './poll.ts';

const H264 = 98;
const STAP_A = 24;
const SEQUENCE_PARAMETERS = 7;

interface Offer {
  readonly id: number;
  readonly sdp: { readonly sdp: string };
  readonly candidates: readonly { readonly candidate: string }[];
}

/** Null if the stream does not exist yet. */
function askForOffer(url: string): Promise<{ socket: WebSocket; offer: Offer } | null> {
  const { promise, resolve, reject } = Promise.withResolvers<{ socket: WebSocket; offer: Offer } | null>();
  const socket = new WebSocket(url);
  socket.onopen = () => socket.send(JSON.stringify({ command: 'request_offer' }));
  socket.onerror = () => reject(new Error(`no connection to ${url}`));
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(`${data}`) as { command?: string } & Offer;
    resolve(message.command === 'offer' ? { socket, offer: message } : null);
  };
  return promise;
}

/** Its creator closes it. */
export class SocketViewer extends WebrtcViewer {
  /** RTP timestamps of received keyframes: those with parameter sets. */
  readonly keyframes: number[] = [];
  #socket: WebSocket | null = null;
  #ask: (() => void) | null = null;

  /** Plays `url` as soon as the stream exists. */
  async play(url: string): Promise<void> {
    const wait = { deadlineMs: 20_000, everyMs: 500 };
    const { socket, offer } = await until('the stream can be played', () => askForOffer(url), wait);
    this.#socket = socket;
    const { id, sdp, candidates } = offer;
    socket.send(JSON.stringify({ command: 'answer', id, peer_id: 0, sdp: { type: 'answer', sdp: this.answer(sdp.sdp) } }));
    await this.connect(
      sdp.sdp,
      candidates.map(({ candidate }) => candidate),
    );
  }

  /** Reports a loss of frames (PLI). */
  askForKeyframe(): void {
    if (this.#ask === null) throw new Error('the viewer is not connected');
    this.#ask();
  }

  override close(): void {
    super.close();
    this.#socket?.close();
  }

  protected override onConnected(fanout: Fanout, viewer: number): void {
    this.#ask = () => fanout.sendRtcp(viewer, buildPli(1, 2));
  }

  protected override onRtp(packet: Buffer): void {
    super.onRtp(packet);
    const at = rtpHeaderLength(packet);
    if ((packet.readUInt8(1) & 0x7f) !== H264 || (packet.readUInt8(at) & 0x1f) !== STAP_A) return;
    if ((packet.readUInt8(at + 3) & 0x1f) === SEQUENCE_PARAMETERS) this.keyframes.push(packet.readUInt32BE(4));
  }
}
