/** What libdatachannel, a WebRTC stack that is neither ours nor a browser's, offers to receive. */
import { PeerConnection, Video } from 'node-datachannel';
import { until } from './poll.ts';

const H264 = 98;

/** An offer with its candidates, for H.264 alone. Whoever asked for it closes it. */
export async function whepOffer(): Promise<{ readonly sdp: string; readonly close: () => void }> {
  const peer = new PeerConnection('player', { iceServers: [] });
  const video = new Video('0', 'RecvOnly');
  video.addH264Codec(H264);
  const track = peer.addTrack(video);
  peer.setLocalDescription();
  await until('candidates', () => peer.gatheringState() === 'complete');
  return {
    sdp: peer.localDescription()?.sdp ?? '',
    close: () => {
      // It ends when nobody holds it.
      track.close();
      peer.close();
    },
  };
}
