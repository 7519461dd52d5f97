/** A player with a WebRTC stack that is neither ours nor a browser's (libdatachannel); passes its video to a decoder. */
import { PeerConnection, type Track, Video } from 'node-datachannel';
import { until } from './poll.ts';
import type { RtpDecoder } from './rtp-decoder.ts';

const CONNECT_DEADLINE_MS = 15_000;
const MIN_RTCP = 192;
const MAX_RTCP = 223;

/** The caller of `open` closes it. */
export class WhepReceiver {
  readonly #peer: PeerConnection;
  /** Kept here, because a garbage-collected track ends. */
  readonly #track: Track;

  private constructor(peer: PeerConnection, track: Track) {
    this.#peer = peer;
    this.#track = track;
  }

  /** Plays H.265, under `payloadType`. */
  static async open(url: string, payloadType: number, decoder: RtpDecoder): Promise<WhepReceiver> {
    const peer = new PeerConnection('player', { iceServers: [] });
    const video = new Video('0', 'RecvOnly');
    video.addH265Codec(payloadType);
    const track = peer.addTrack(video);
    const receiver = new WhepReceiver(peer, track);
    track.onMessage((packet) => {
      const type = packet[1] ?? 0;
      if (type < MIN_RTCP || type > MAX_RTCP) decoder.push(packet);
    });
    try {
      peer.setLocalDescription();
      await until('candidates', () => peer.gatheringState() === 'complete', { deadlineMs: CONNECT_DEADLINE_MS });
      const answer = async (): Promise<string | null> => {
        const response = await fetch(url, { method: 'POST', body: peer.localDescription()?.sdp ?? '' });
        const text = await response.text();
        return response.status === 201 ? text : null;
      };
      const description = await until('the stream can be played', answer, { deadlineMs: CONNECT_DEADLINE_MS, everyMs: 500 });
      peer.setRemoteDescription(description, 'answer');
      return receiver;
    } catch (error) {
      receiver.close();
      throw error;
    }
  }

  close(): void {
    this.#track.close();
    this.#peer.close();
  }
}
