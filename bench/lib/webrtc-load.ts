/** Child process of `webrtc-fanout`: viewers with real checks and handshakes, whose packets a small program then counts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { WebrtcViewer } from '../../test/fakes/webrtc-viewer.ts';
import { until } from '../../test/harness/poll.ts';
import type { LoadAnswer, LoadOrder } from './webrtc-origin.ts';

/** This many decrypt what they get, so that what is counted at the others is media indeed. */
const DECRYPTING = 4;
/** Descriptors of the drain below are its standard streams. */
const FIRST_DESCRIPTOR = 3;

const viewers: WebrtcViewer[] = [];
let drain: ChildProcess | null = null;
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

/** Hands the sockets of all viewers that only count to `program`; their own threads end. */
async function startDrain(program: string): Promise<void> {
  await until('all are connected', () => viewers.every((viewer) => viewer.connected), { deadlineMs: 60_000, everyMs: 20 });
  const counting = viewers.slice(DECRYPTING);
  const descriptors = udpDescriptors();
  const sockets = counting.map(({ port }) => descriptors.get(port) ?? -1);
  drain = spawn(program, [String(FIRST_DESCRIPTOR), String(sockets.length)], { stdio: ['pipe', 'pipe', 'inherit', ...sockets] });
  await once(drain, 'spawn');
  before = counting.map((viewer) => viewer.received);
  for (const viewer of counting) viewer.close(true);
  send({ type: 'draining' });
}

/** Ends the drain, if there is one. */
async function report(): Promise<void> {
  const watching = drain === null ? viewers : viewers.slice(0, DECRYPTING);
  const packets = watching.map((viewer) => viewer.received);
  if (drain !== null) {
    drain.stdin?.end();
    const lines = drain.stdout === null ? '' : await text(drain.stdout);
    packets.push(...before.map((count, n) => count + Number(lines.split('\n')[n])));
  }
  send({ type: 'received', packets });
}

/** Local port of each UDP socket of this process → its descriptor. */
function udpDescriptors(): Map<number, number> {
  const ports = new Map<string, number>();
  for (const line of readFileSync('/proc/self/net/udp', 'utf8').trim().split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/);
    ports.set(fields[9] ?? '', Number.parseInt(fields[1]?.split(':')[1] ?? '', 16));
  }
  const found = new Map<number, number>();
  for (const name of readdirSync('/proc/self/fd')) {
    const inode = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/self/fd/${name}`))?.[1];
    const port = inode === undefined ? undefined : ports.get(inode);
    if (port !== undefined) found.set(port, Number(name));
  }
  return found;
}

/** Empty for a descriptor that is closed by now, as the folder's own. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function send(answer: LoadAnswer): void {
  process.send?.(answer);
}
