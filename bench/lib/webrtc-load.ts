/** Child process of `webrtc-fanout`: viewers with real checks and handshakes, whose packets a small program then counts. */
import { WebrtcViewer } from '../../test/fakes/webrtc-viewer.ts';
import { until } from '../../test/harness/poll.ts';
import { SocketDrain } from './socket-drain.ts';
import type { LoadAnswer, LoadOrder } from './webrtc-origin.ts';

/** This many decrypt what they get, so that what is counted at the others is media indeed. */
const DECRYPTING = 4;

const viewers: WebrtcViewer[] = [];
let drain: SocketDrain | null = null;
/** What the drained ones had received until then. */
let before: readonly number[] = [];

process.on('message', (order: LoadOrder) => {
  if (order.type === 'watch') {
    const viewer = new WebrtcViewer({ counting: viewers.length >= DECRYPTING, retransmission: true });
    viewers.push(viewer);
    send({ type: 'answer', viewer: order.viewer, description: viewer.answer(order.offer) });
    void viewer.connect(order.offer, order.candidates);
  } else if (order.type === 'drain') {
    void startDrain(order.program);
  } else {
    void report();
  }
});

async function startDrain(program: string): Promise<void> {
  await until('all are connected', () => viewers.every((viewer) => viewer.connected), { deadlineMs: 60_000, everyMs: 20 });
  const counting = viewers.slice(DECRYPTING);
  before = counting.map((viewer) => viewer.received);
  drain = await SocketDrain.open(program, counting);
  send({ type: 'draining' });
}

/** Ends the drain, if there is one. */
async function report(): Promise<void> {
  const watching = drain === null ? viewers : viewers.slice(0, DECRYPTING);
  const packets = watching.map((viewer) => viewer.received);
  if (drain !== null) packets.push(...(await drain.stop()).map((count, n) => count + (before[n] ?? 0)));
  send({ type: 'received', packets });
}

function send(answer: LoadAnswer): void {
  process.send?.(answer);
}
