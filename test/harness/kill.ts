/** Kills a server that records, and examines its files. */
import { appendFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { FlvTag } from '../support/flv.ts';
import { AcknowledgedPublisher, type FrameCounts } from './acknowledged-publisher.ts';
import { until } from './poll.ts';
import { decodedFrames, packetsOf } from './recorded-file.ts';
import { media, tasks, unfinished } from './recordings.ts';
import type { TestServer } from './server.ts';

const DEADLINE_MS = 60_000;
/** Time for which neither side must be late before a kill, ms. */
const STEADY_MS = 60;
/** Limit of that wait, ms: on a machine that never keeps up, the kill comes anyway. */
const MAX_UNSTEADY_MS = 3000;

/** One kill. */
export interface KillRound {
  readonly server: TestServer;
  /** Folder of the recordings; file names begin with the id of the task and `_`. */
  readonly root: string;
  readonly ids: readonly string[];
  /** Published as the stream `live`. */
  readonly tags: readonly FlvTag[];
  /** ms after the first received frame; the kill then waits until neither side is late and the disk keeps up. */
  readonly killAfter: number;
  /** The encoder requests no acknowledgements, so that its socket rests; all frames sent before the kill count as received. */
  readonly rests?: boolean;
}

/** Loss of one task: frames that the server had received but that are in no file. */
export interface KillLoss {
  readonly id: string;
  readonly files: readonly string[];
  readonly received: FrameCounts;
  readonly lost: FrameCounts;
  /** The server's log before it died. */
  readonly log: string;
}

/** Publishes, kills, restarts, and waits until all files are finished. Each must play to its end. */
export async function killOnce({ server, root, ids, tags, killAfter, rests = false }: KillRound): Promise<KillLoss[]> {
  const before = new Set(media(root));
  const encoder = await AcknowledgedPublisher.start(server.ports.rtmp, 'live', tags, !rests);
  await until('the server receives', () => encoder.received.video > 0, { deadlineMs: DEADLINE_MS, everyMs: 5 });
  await delay(killAfter);
  await steady(encoder, server.folder);
  const sent = encoder.received;
  await server.kill();
  const { log } = server;
  await encoder.gone;
  const received = rests ? sent : encoder.received;
  await encoder.stop();
  await server.restart();
  await until('the server is back', () => tasks(server), { deadlineMs: DEADLINE_MS });
  await until('no unfinished recording', () => unfinished(root).length === 0, { deadlineMs: DEADLINE_MS });
  const made = media(root).filter((name) => !before.has(name));
  return ids.map((id) => {
    const files = made.filter((name) => name.startsWith(`${id}_`));
    const kept = { video: 0, audio: 0 };
    for (const name of files) {
      const { video, audio } = packetsOf(path.join(root, name));
      expect(decodedFrames(path.join(root, name)), name).toBe(video.length);
      kept.video += video.length;
      kept.audio += audio.length;
    }
    return { id, files, received, log, lost: { video: received.video - kept.video, audio: received.audio - kept.audio } };
  });
}

/**
 * Waits until neither side is late and the disk keeps up. A process that was held up sends, and reads, several frames at once; if this
 * process was, the kill is sent with them. The file cannot contain data of the last millisecond, or data that the disk does not take.
 */
async function steady(encoder: AcknowledgedPublisher, folder: string): Promise<void> {
  const begin = performance.now();
  for (let since = begin, last = begin, now = begin; now - since < STEADY_MS && now - begin < MAX_UNSTEADY_MS; last = now) {
    await delay(5);
    await appendFile(path.join(folder, 'disk-probe'), '.');
    now = performance.now();
    if (!encoder.keepsPace || now - last > STEADY_MS / 3) since = now;
  }
}
