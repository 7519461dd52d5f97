/** `kill -9` at random moments, again and again: every file plays, and no more than the last fragment is gone. */
import path from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../e2e/support/poll.ts';
import { publish } from '../e2e/support/publisher.ts';
import { decodedFrames, packetsOf } from '../e2e/support/recorded-file.ts';
import { media, type RecordTask, record, startRecorder, tasks, unfinished } from '../e2e/support/recordings.ts';

const KILLS = 20;
const FPS = 30;
/** Keyframes come as often. */
const INTERVAL_MS = 1000;
/** A fragment, and what the API tells before a busy machine has written it. */
const MOST_LOST_MS = 1200;
/** Media recorded before the kill, ms: at random up to this much. */
const LONGEST_MS = 5000;
const TASKS = 3;
const KILL_DEADLINE_MS = 60_000;

/** What the tasks say that they have recorded since the encoder came, by their ids. */
class Progress {
  /** Number of the first file that was seen of each. */
  readonly #first = new Map<string, number>();

  /** ms: files that are full, and the current one. */
  of(now: readonly RecordTask[]): ReadonlyMap<string, number> {
    const running = now.filter(({ state }) => state === 'recording');
    return new Map(
      running.map(({ id, sequence = 0, recordTime = 0 }) => {
        const first = this.#first.get(id) ?? sequence;
        this.#first.set(id, first);
        return [id, (sequence - first) * INTERVAL_MS + recordTime];
      }),
    );
  }
}

test(`${KILLS} kills at random moments cost a fragment each`, { timeout: KILLS * KILL_DEADLINE_MS }, async () => {
  const { server, root } = await startRecorder();
  await record(server, 'mp4', '/mp4_${Sequence}.mp4');
  await record(server, 'ts', '/ts_${Sequence}.ts');
  // Files end and are finished all the time, so that kills hit that too.
  await record(server, 'parts', '/parts_${Sequence}.mp4', { interval: INTERVAL_MS });
  for (let round = 1; round <= KILLS; round += 1) {
    const encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 });
    const before = new Set(media(root));
    const wait = Math.round(100 + Math.random() * LONGEST_MS);
    const progress = new Progress();
    const told = await until(
      `round ${round}: ${wait} ms are recorded`,
      async () => {
        const times = progress.of(await tasks(server));
        return times.size === TASKS && [...times.values()].every((time) => time >= wait) ? times : null;
      },
      { deadlineMs: KILL_DEADLINE_MS },
    );
    await server.kill();
    const { log } = server;
    await encoder.kill();
    await server.respawn();
    await until('the server is back', () => tasks(server), { deadlineMs: KILL_DEADLINE_MS });
    await until('what the kill left is finished', () => unfinished(root).length === 0);
    const made = media(root).filter((name) => !before.has(name));
    for (const [id, time] of told) {
      const files = made.filter((name) => name.startsWith(`${id}_`));
      const frames = files.map((name) => {
        const { video } = packetsOf(path.join(root, name));
        expect(decodedFrames(path.join(root, name)), name).toBe(video.length);
        return video.length;
      });
      const sum = frames.reduce((total, count) => total + count, 0);
      expect(
        (sum * 1000) / FPS,
        `round ${round}, kill after ${wait} ms: ${time} ms in ${files.join(', ')}\n${log}\n--\n${server.log}`,
        // A kill may hit the file before too, while its end is on its way to the disk.
      ).toBeGreaterThan(time - MOST_LOST_MS - (id === 'parts' ? INTERVAL_MS : 0));
      // No number is given twice, so no file had to be called otherwise.
      expect(
        files.every((name) => /^[a-z0-9]+_\d+\.\w+$/.test(name)),
        files.join(', '),
      ).toBe(true);
    }
  }
});
