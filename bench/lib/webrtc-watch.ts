/** A player with OvenPlayer's signalling, for benches of a viewer's reception. */
import { once } from 'node:events';
import WebSocket from 'ws';
import type { WebrtcViewer } from '../../test/fakes/webrtc-viewer.ts';

interface Offer {
  readonly id: number;
  readonly sdp: { readonly sdp: string };
  readonly candidates: readonly { readonly candidate: string }[];
}

/** Connects `viewer` through the signalling at `url`; returns the SSRC of the video, and the socket, whose end ends the session. */
export async function watch(url: string, viewer: WebrtcViewer): Promise<{ ssrc: number; socket: WebSocket }> {
  const socket = new WebSocket(url);
  await once(socket, 'open');
  const offered = once(socket, 'message');
  socket.send(JSON.stringify({ command: 'request_offer' }));
  const [text] = await offered;
  const { id, sdp, candidates } = JSON.parse(String(text)) as Offer;
  const answer = { command: 'answer', id, peer_id: 0, sdp: { type: 'answer', sdp: viewer.answer(sdp.sdp) } };
  socket.send(JSON.stringify(answer));
  await viewer.connect(
    sdp.sdp,
    candidates.map(({ candidate }) => candidate),
  );
  const video = sdp.sdp.slice(sdp.sdp.indexOf('m=video'));
  return { ssrc: Number(/^a=ssrc:(\d+)/m.exec(video)?.[1]), socket };
}
