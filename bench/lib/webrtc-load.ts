/** Child process of the WebRTC benches: viewers with real checks and handshakes, whose packets a small program then counts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { createInterface, type Interface } from 'node:readline';
import { WebrtcViewer } from '../../test/fakes/webrtc-viewer.ts';
import { until } from '../../test/harness/poll.ts';
import { DECRYPTING, type DrainOrder, type LoadAnswer, type LoadOrder, type LoadReport } from './webrtc-orders.ts';

/** Lower descriptors of the drain are its standard streams. */
const FIRST_DESCRIPTOR = 3;
/** Number of sockets that report the arrival of frames. */
const TELLING = 20;
/** Viewers yield to the measured server on the same machine. */
const NICE = 10;

/** Answers of the drain. */
interface DrainReport {
  readonly packets: readonly number[];
  readonly lost: number;
  readonly arrivals: LoadReport['arrivals'];
  readonly cpuMs: number;
}

// Threads and programs that it starts inherit the priority.
setPriority(NICE);
const viewers: WebrtcViewer[] = [];
let drain: ChildProcess | null = null;
let answers: Interface | null = null;
/** Number of drained viewers: they follow the decrypting viewers. */
let drained = 0;
/** Counts of the other viewers at the previous report. */
let reported: number[] = [];

process.on('message', (order: LoadOrder) => {
  if (order.type === 'watch') {
    const viewer = new WebrtcViewer({ counting: viewers.length >= DECRYPTING, retransmission: true });
    viewers.push(viewer);
    send({ type: 'answer', viewer: order.viewer, description: viewer.answer(order.offer) });
    void viewer.connect(order.offer, order.candidates);
  } else if (order.type === 'drain') {
    void startDrain(order);
  } else {
    void report();
  }
});

/** Passes the sockets of all counting viewers to the program; their own threads end. */
async function startDrain({ program, mode, whole }: DrainOrder): Promise<void> {
  await until('all are connected', () => viewers.every((viewer) => viewer.connected), { deadlineMs: 60_000, everyMs: 20 });
  const counting = viewers.slice(DECRYPTING);
  const descriptors = udpDescriptors();
  const sockets = counting.map(({ port }) => descriptors.get(port) ?? -1);
  const args = [String(FIRST_DESCRIPTOR), String(sockets.length), mode, whole ? 'gro' : 'plain', String(TELLING)];
  drain = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit', ...sockets] });
  await once(drain, 'spawn');
  answers = drain.stdout === null ? null : createInterface(drain.stdout);
  drained = counting.length;
  for (const viewer of counting) viewer.close(true);
  send({ type: 'draining', ports: counting.map(({ port }) => port) });
}

/** Counts since the previous report. */
async function report(): Promise<void> {
  const watching = [...viewers.slice(0, DECRYPTING), ...viewers.slice(DECRYPTING + drained)];
  const now = watching.map((viewer) => viewer.received);
  const packets = now.map((count, n) => count - (reported[n] ?? 0));
  reported = now;
  let arrivals: LoadReport['arrivals'] = [];
  let [lost, cpuMs] = [0, 0];
  if (drain !== null && answers !== null) {
    const answered = once(answers, 'line');
    drain.stdin?.write('\n');
    const [line] = await answered;
    const counts = JSON.parse(String(line)) as DrainReport;
    packets.splice(Math.min(DECRYPTING, packets.length), 0, ...counts.packets);
    ({ lost, arrivals, cpuMs } = counts);
  }
  const own = process.cpuUsage();
  send({ type: 'report', packets, lost, arrivals, cpuMs: cpuMs + (own.user + own.system) / 1000, overflows: overflows() });
}

/** Number of datagrams dropped at full sockets in this network namespace. */
function overflows(): number {
  const rows = readFileSync('/proc/net/snmp', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('Udp:'));
  const [names = [], values = []] = rows.map((row) => row.split(' '));
  return Number(values[names.indexOf('RcvbufErrors')] ?? 0);
}

/** Descriptors of this process's UDP sockets by local port. */
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

/** Empty for a descriptor that has been closed, such as that of the folder itself. */
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
