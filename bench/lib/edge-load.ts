/** Child process of `cluster`: viewers of edges over one protocol, with a lower priority than the servers. */
import { constants, setPriority } from 'node:os';
import type WebSocket from 'ws';
import { WebrtcViewer } from '../../test/fakes/webrtc-viewer.ts';
import { until } from '../../test/harness/poll.ts';
import { LlhlsCrowd } from './llhls-crowd.ts';
import { SocketDrain } from './socket-drain.ts';
import { watch } from './webrtc-watch.ts';

/** Orders to the process. */
export type EdgeLoadOrder =
  | { readonly type: 'llhls'; readonly ports: readonly number[]; readonly viewers: number; readonly stream: string }
  /** `drain`: path of the program that empties the sockets. */
  | {
      readonly type: 'webrtc';
      readonly ports: readonly number[];
      readonly viewers: number;
      readonly stream: string;
      readonly drain: string;
    }
  | { readonly type: 'count' };

/** Its answers: all viewers are connected, and the counts since then. */
export type EdgeLoadAnswer =
  | { readonly type: 'ready' }
  | {
      readonly type: 'counted';
      readonly seconds: number;
      /** Parts, or packets, per viewer; the lowest of all viewers if known. */
      readonly each: number;
      readonly least: number;
      /** Bytes of bodies; null if they are not counted. */
      readonly bytes: number | null;
      readonly failed: number;
    };

/** Handshakes in progress at once. */
const MAX_AT_ONCE = 20;
/** The parent process may have ended silently. */
const MAX_MS = 120_000;

type Counted = Omit<Extract<EdgeLoadAnswer, { type: 'counted' }>, 'type' | 'seconds'>;

let startedAt = 0;
let count: () => Promise<Counted> = () => Promise.reject(new Error('nobody watches'));
/** Kept open as long as their viewers stay. */
const sockets: WebSocket[] = [];

setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
process.once('disconnect', () => process.exit());
setTimeout(() => process.exit(1), MAX_MS).unref();
process.on('message', (order: EdgeLoadOrder) => {
  if (order.type === 'llhls') void watchLlhls(order);
  else if (order.type === 'webrtc') void watchWebrtc(order);
  else void tell();
});

async function watchLlhls({ ports, viewers, stream }: Extract<EdgeLoadOrder, { type: 'llhls' }>): Promise<void> {
  const crowd = await LlhlsCrowd.open(ports, viewers, stream);
  const before = { ...crowd.counts };
  count = () => {
    const each = (crowd.counts.parts - before.parts) / (ports.length * viewers);
    return Promise.resolve({ each, least: each, bytes: crowd.counts.bytes - before.bytes, failed: crowd.counts.failed });
  };
  begin();
}

async function watchWebrtc({ ports, viewers, stream, drain: program }: Extract<EdgeLoadOrder, { type: 'webrtc' }>): Promise<void> {
  const all: WebrtcViewer[] = [];
  const connect = async (port: number): Promise<void> => {
    const viewer = new WebrtcViewer({ counting: true, retransmission: true });
    all.push(viewer);
    sockets.push((await watch(`ws://127.0.0.1:${port}/app/${stream}`, viewer)).socket);
  };
  for (const port of ports) {
    for (let left = viewers; left > 0; left -= MAX_AT_ONCE) {
      await Promise.all(Array.from({ length: Math.min(left, MAX_AT_ONCE) }, async () => await connect(port)));
    }
  }
  await until('all are connected', () => all.every((viewer) => viewer.connected && viewer.received > 0), {
    deadlineMs: 30_000,
    everyMs: 20,
  });
  const drain = await SocketDrain.open(program, all);
  count = async () => {
    const packets = await drain.stop();
    const each = packets.reduce((sum, one) => sum + one, 0) / packets.length;
    return { each, least: Math.min(...packets), bytes: null, failed: 0 };
  };
  begin();
}

function begin(): void {
  startedAt = performance.now();
  send({ type: 'ready' });
}

async function tell(): Promise<void> {
  const seconds = (performance.now() - startedAt) / 1000;
  send({ type: 'counted', seconds, ...(await count()) });
}

function send(answer: EdgeLoadAnswer): void {
  process.send?.(answer);
}
