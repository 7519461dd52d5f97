import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { busIds } from './bus-ids.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-bus-'));
});
afterEach(() => rmSync(root, { recursive: true }));

/** A graphics card as Linux shows it. */
function card(node: string, id: string, vendor: string | null): void {
  const device = join(root, 'sys/devices', id);
  mkdirSync(device, { recursive: true });
  if (vendor !== null) writeFileSync(join(device, 'vendor'), `${vendor}\n`);
  const place = join(root, 'sys/class/drm', node);
  mkdirSync(place, { recursive: true });
  symlinkSync(device, join(place, 'device'));
}

test('a machine without devices has no bus ids', async () => {
  expect([...(await busIds(root))]).toEqual([]);
});

test('devices are identified by their vendors', async () => {
  card('card0', '0000:00:01.0', '0x8086');
  card('renderD128', '0000:00:02.0', '0x8086');
  card('renderD129', '0000:01:00.0', '0x10de');
  card('renderD130', 'vgem', null);
  mkdirSync(join(root, 'proc/driver/nvidia/gpus/0000:01:00.0'), { recursive: true });
  expect([...(await busIds(root))]).toEqual([
    ['nv', '0000:01:00.0'],
    ['qsv', '0000:00:02.0'],
    ['vaapi', '0000:00:02.0'],
  ]);
});

test('several devices of one vendor have no bus id, because the one in use is unknown', async () => {
  card('renderD128', '0000:00:02.0', '0x8086');
  card('renderD129', '0000:03:00.0', '0x1002');
  for (const id of ['0000:01:00.0', '0000:02:00.0']) mkdirSync(join(root, 'proc/driver/nvidia/gpus', id), { recursive: true });
  expect([...(await busIds(root))]).toEqual([
    ['qsv', '0000:00:02.0'],
    ['amf', '0000:03:00.0'],
  ]);
});
