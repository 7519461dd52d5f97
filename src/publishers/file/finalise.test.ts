import { closeSync, copyFileSync, mkdtempSync, openSync, readFileSync, rmSync, writevSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { constantFrames, videoPackets, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { finalise } from './finalise.ts';
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

test('a file finished in a thread of its own is the same', async () => {
  const [here, there] = [join(folder, 'here'), join(folder, 'there')];
  for (const path of [here, there]) copyFileSync(recorded, path);
  expect(await finalise(there, 0)).toEqual(await finalise(here));
  expect(readFileSync(there)).toEqual(readFileSync(here));
  expect(await finalise(there, 0)).toMatchObject({ outcome: 'already' });
});

test('what is no recording is told from the thread too', async () => {
  await expect(finalise(new URL(import.meta.url).pathname, 0)).rejects.toMatchObject({ message: expect.stringContaining('ftyp') });
});

test('what the disk refuses is told from the thread with its code', async () => {
  await expect(finalise(folder, 0)).rejects.toMatchObject({ code: 'EISDIR', errno: expect.any(Number) });
});
