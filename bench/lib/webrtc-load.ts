/** Child process of `webrtc-fanout`: viewers with real checks, handshakes and decryption, which count what arrives. */
import { WebrtcViewer } from '../../test/fakes/webrtc-viewer.ts';
import type { LoadAnswer, LoadOrder } from './webrtc-origin.ts';

const viewers: WebrtcViewer[] = [];

process.on('message', (order: LoadOrder) => {
  if (order.type === 'report') {
    const received = viewers.map(({ packets }) => packets.length);
    send({ type: 'received', total: received.reduce((sum, count) => sum + count, 0), least: Math.min(...received) });
    return;
  }
  const viewer = new WebrtcViewer();
  viewers.push(viewer);
  send({ type: 'answer', viewer: order.viewer, description: viewer.answer(order.offer) });
  void viewer.connect(order.offer, order.candidates);
});

function send(answer: LoadAnswer): void {
  process.send?.(answer);
}
