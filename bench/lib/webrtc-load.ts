/** Child process of `webrtc-fanout`: viewers with real checks and handshakes, which count what arrives. */
import { WebrtcViewer } from '../../test/fakes/webrtc-viewer.ts';
import type { LoadAnswer, LoadOrder } from './webrtc-origin.ts';

/** This many decrypt what they get, so that what is counted at the others is media indeed. */
const DECRYPTING = 4;

const viewers: WebrtcViewer[] = [];

process.on('message', (order: LoadOrder) => {
  if (order.type === 'report') {
    send({ type: 'received', packets: viewers.map((viewer) => viewer.received) });
    return;
  }
  const viewer = new WebrtcViewer({ counting: viewers.length >= DECRYPTING, retransmission: true });
  viewers.push(viewer);
  send({ type: 'answer', viewer: order.viewer, description: viewer.answer(order.offer) });
  void viewer.connect(order.offer, order.candidates);
});

function send(answer: LoadAnswer): void {
  process.send?.(answer);
}
