/** `kill -9` at random moments, repeatedly: every file plays, and at most the last fragment is lost. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type KillLoss, killOnce } from '../harness/kill.ts';
import { encodeSource, MAX_LOST, MAX_LOST_AT_REST } from '../harness/recorded-file.ts';
import { record, startRecorder } from '../harness/recordings.ts';
import { readFlv } from '../support/flv.ts';

const KILLS = 20;
/** Interval of keyframes, and length of the files of task `parts`, ms. */
const INTERVAL_MS = 1000;
const MAX_MS = 5000;
const IDS = ['mp4', 'ts', 'parts'];
const KILL_DEADLINE_MS = 60_000;

test(`${KILLS} kills at random times cost a fragment each`, { timeout: KILLS * KILL_DEADLINE_MS }, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-source-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  encodeSource(path.join(folder, 'source.flv'), MAX_MS / 1000 + 3);
  const tags = readFlv(path.join(folder, 'source.flv'));
  const { server, root } = await startRecorder();
  await record(server, 'mp4', '/mp4_${Sequence}.mp4');
  await record(server, 'ts', '/ts_${Sequence}.ts');
  // Files end and are finished continuously, so that kills hit that, too.
  await record(server, 'parts', '/parts_${Sequence}.mp4', { interval: INTERVAL_MS });
  const losses: (KillLoss & { readonly killAfter: number; readonly rests: boolean })[] = [];
  for (let round = 1; round <= KILLS; round += 1) {
    const killAfter = Math.round(Math.random() * MAX_MS);
    const rests = round % 2 === 0;
    for (const loss of await killOnce({ server, root, ids: IDS, tags, killAfter, rests })) losses.push({ ...loss, killAfter, rests });
  }
  const lines = losses.map(
    ({ id, killAfter, rests, received, lost, files }) =>
      `${id}${rests ? ', resting,' : ''} after ${killAfter} ms: ${lost.video} of ${received.video} frames and ${lost.audio} of ${received.audio} of audio lost; ${files.join(', ')}`,
  );
  console.log(lines.join('\n'));
  for (const [index, { lost, rests, files, log }] of losses.entries()) {
    const most = rests ? MAX_LOST_AT_REST : MAX_LOST;
    expect(lost.video, `${lines[index]}\n${log}`).toBeLessThanOrEqual(most.video);
    expect(lost.audio, `${lines[index]}\n${log}`).toBeLessThanOrEqual(most.audio);
    // Numbers are unique, so no file needed another name.
    expect(
      files.every((name) => /^[a-z0-9]+_\d+\.\w+$/.test(name)),
      lines[index],
    ).toBe(true);
  }
});
