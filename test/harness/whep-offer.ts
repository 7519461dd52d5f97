/** A receiving offer of libdatachannel, a WebRTC stack that is neither ours nor a browser's. */
import { PeerConnection, Video } from 'node-datachannel';
import { until } from './poll.ts';

const H264 = 98;

/** Packets are counted once the answer has been accepted. */
export interface WhepOffer {
  readonly sdp: string;
  readonly received: () => number;
  readonly accept: (answer: string) => void;
  readonly close: () => void;
}

/** An offer with its candidates, only for H.264. The caller closes it. */
export async function whepOffer(): Promise<WhepOffer> {
  let received = 0;
  const peer = new PeerConnection('player', { iceServers: [] });
  const video = new Video('0', 'RecvOnly');
  video.addH264Codec(H264);
  const track = peer.addTrack(video);
  track.onMessage(() => {
    received += 1;
  });
  peer.setLocalDescription();
  await until('candidates', () => peer.gatheringState() === 'complete');
  return {
    sdp: peer.localDescription()?.sdp ?? '',
    received: () => received,
    accept: (answer) => peer.setRemoteDescription(answer, 'answer'),
    close: () => {
      // Keeps a reference: a garbage-collected track ends.
      track.close();
      peer.close();
    },
  };
}
