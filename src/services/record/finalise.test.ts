import { execFileSync } from 'node:child_process';
import { closeSync, copyFileSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writevSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { constantFrames, videoPackets, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { finalise, finaliserThread } from './finalise.ts';
import { Mp4Container } from './mp4-container.ts';

let folder: string;
let recorded: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-finalise-'));
  recorded = join(folder, 'recorded');
  const track = videoTrack();
  const packets = videoPackets(track, constantFrames({ rate: 30, gop: 30, seconds: 5 }));
  const [first] = packets;
  if (first === undefined) throw new Error('no packets');
  const file = openSync(recorded, 'w');
  const container = new Mp4Container({ tracks: [track], first, startAt: 0, write: (chunks) => writevSync(file, [...chunks]) });
  for (const packet of packets) container.push(packet);
  container.flush();
  closeSync(file);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a file finalised in the thread equals one finalised in place', async () => {
  const [here, there] = [join(folder, 'here'), join(folder, 'there')];
  for (const path of [here, there]) copyFileSync(recorded, path);
  expect(await finalise(there, 0)).toEqual(await finalise(here));
  expect(readFileSync(there)).toEqual(readFileSync(here));
  expect(await finalise(there, 0)).toMatchObject({ outcome: 'already' });
});

test('a file that is no recording is rejected with a reason from the thread', async () => {
  await expect(finalise(new URL(import.meta.url).pathname, 0)).rejects.toMatchObject({ message: expect.stringContaining('ftyp') });
});

test('an error of the disk is rejected with its code from the thread', async () => {
  await expect(finalise(folder, 0)).rejects.toMatchObject({ code: 'EISDIR', errno: expect.any(Number) });
});

test('one thread serves all files, and a new thread starts after its end', async () => {
  const entry = new URL('./mp4-finaliser-worker.ts', import.meta.url);
  const made: Worker[] = [];
  const thread = finaliserThread(() => {
    const worker = made.length === 0 ? new Worker('process.exit(3)', { eval: true }) : new Worker(entry);
    made.push(worker);
    return worker;
  });
  const path = join(folder, 'many');
  copyFileSync(recorded, path);
  await expect(Promise.all([thread.run(path), thread.run(path)])).rejects.toThrow('ended: exit code 3');
  const outcomes = [await thread.run(path), ...(await Promise.all([1, 2, 3].map(() => thread.run(path))))].map(({ outcome }) => outcome);
  expect(outcomes).toEqual(['finalised', 'already', 'already', 'already']);
  await expect(thread.run(join(folder, 'none'))).rejects.toMatchObject({ code: 'ENOENT' });
  expect(made).toHaveLength(2);
  await made[1]?.terminate();
});

test('the thread keeps no process alive', () => {
  const path = join(folder, 'last');
  copyFileSync(recorded, path);
  const file = JSON.stringify(new URL('./finalise.ts', import.meta.url));
  const script = `const { finalise } = await import(${file});
    const held = setTimeout(() => {}, 60_000);
    const { outcome } = await finalise(process.argv[2], 0);
    clearTimeout(held);
    console.log(outcome);`;
  writeFileSync(join(folder, 'script.mjs'), script);
  expect(execFileSync(process.execPath, [join(folder, 'script.mjs'), path], { encoding: 'utf8', timeout: 30_000 })).toBe('finalised\n');
});
