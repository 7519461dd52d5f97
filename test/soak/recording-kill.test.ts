/** `kill -9` at random moments, again and again: every file plays, and no more than the last fragment is gone. */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../e2e/support/poll.ts';
import { publish } from '../e2e/support/publisher.ts';
import { decodedFrames, packetsOf } from '../e2e/support/recorded-file.ts';
import { media, type RecordTask, record, startRecorder, tasks, unfinished } from '../e2e/support/recordings.ts';

const KILLS = 20;
const FPS = 30;
/** A fragment is a second; the rest is what the API told and the socket had not brought yet. */
const MOST_LOST_MS = 1200;
/** Media recorded before the kill, ms: at random up to this much. */
const LONGEST_MS = 5000;
const KILL_DEADLINE_MS = 60_000;

/** Media of finished files by the ids of their tasks, ms, as the information file tells it. */
function finishedMedia(root: string): Map<string, number> {
  const sums = new Map<string, number>();
  const info = path.join(root, 'info.xml');
  if (!existsSync(info)) return sums;
  for (const [, id = '', time] of readFileSync(info, 'utf8').matchAll(/<id>(\w+)<\/id>[\s\S]*?<recordTime>(\d+)</g)) {
    sums.set(id, (sums.get(id) ?? 0) + Number(time));
  }
  return sums;
}

/** Media of this round by the ids of tasks, ms. */
function recordedSince(before: ReadonlyMap<string, number>, now: readonly RecordTask[]): Map<string, number> {
  return new Map(now.map(({ id, totalRecordTime = 0 }) => [id, totalRecordTime - (before.get(id) ?? 0)]));
}

test(`${KILLS} kills at random moments cost a fragment each`, { timeout: KILLS * KILL_DEADLINE_MS }, async () => {
  const { server, root } = await startRecorder();
  await record(server, 'mp4', '/mp4_${Sequence}.mp4');
  await record(server, 'ts', '/ts_${Sequence}.ts');
  // Files end and are finished all the time, so that kills hit that too.
  await record(server, 'parts', '/parts_${Sequence}.mp4', { interval: 1000 });
  for (let round = 1; round <= KILLS; round += 1) {
    const encoder = publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 });
    const before = new Set(media(root));
    const counted = finishedMedia(root);
    const wait = Math.round(100 + Math.random() * LONGEST_MS);
    const told = await until(`round ${round}: ${wait} ms are recorded`, async () => {
      const recorded = recordedSince(counted, await tasks(server));
      return recorded.size === 3 && [...recorded.values()].every((time) => time >= wait) ? recorded : null;
    });
    await server.kill();
    await encoder.kill();
    await server.restart();
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
      expect((sum * 1000) / FPS, `round ${round}, kill after ${wait} ms: ${time} ms in ${files.join(', ')}`).toBeGreaterThan(
        time - MOST_LOST_MS,
      );
      // No number is given twice, so no file had to be called otherwise.
      expect(
        files.every((name) => /^[a-z0-9]+_\d+\.\w+$/.test(name)),
        files.join(', '),
      ).toBe(true);
    }
  }
});
