import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SharedFiles } from './shared-files.ts';

describe('shared files', () => {
  let folder: string;
  const file = (name: string): string => path.join(folder, name);

  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'shared-files-'));
    writeFileSync(file('a'), 'a'.repeat(600));
    writeFileSync(file('b'), 'b'.repeat(600));
    writeFileSync(file('empty'), '');
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test('readers of the same file share one copy until the last releases it', async () => {
    const blobs = new SharedFiles(1000);
    const leases = await Promise.all([blobs.borrow(file('a')), blobs.borrow(file('a'))]);
    const third = await blobs.borrow(file('a'));
    expect(third?.bytes).toBe(leases[0]?.bytes);
    expect(Buffer.from(third?.bytes ?? []).toString()).toBe('a'.repeat(600));
    expect(blobs.bytes).toBe(600);
    for (const lease of leases) lease?.release();
    third?.release();
    third?.release();
    expect(blobs.bytes).toBe(0);
    writeFileSync(file('a'), 'new');
    expect((await blobs.borrow(file('a')))?.bytes.length).toBe(3);
  });

  test('refuses files beyond its limit, until one is released', async () => {
    const blobs = new SharedFiles(1000);
    const first = await blobs.borrow(file('a'));
    expect(await blobs.borrow(file('b'))).toBeNull();
    first?.release();
    expect((await blobs.borrow(file('b')))?.bytes.length).toBe(600);
  });

  test('a missing file and a folder are errors, and take no memory', async () => {
    const blobs = new SharedFiles(1_000_000);
    await expect(blobs.borrow(file('none'))).rejects.toThrow('ENOENT');
    await expect(blobs.borrow(folder)).rejects.toThrow();
    expect(blobs.bytes).toBe(0);
  });

  test('an empty file is empty', async () => {
    const blobs = new SharedFiles(10);
    const lease = await blobs.borrow(file('empty'));
    expect(lease?.bytes.length).toBe(0);
    lease?.release();
    expect(blobs.bytes).toBe(0);
  });
});
