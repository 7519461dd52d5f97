import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileShelf } from './file-shelf.ts';

describe('file shelf', () => {
  let folder: string;
  const file = (name: string): string => path.join(folder, name);

  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'file-shelf-'));
    writeFileSync(file('a'), 'a'.repeat(600));
    writeFileSync(file('b'), 'b'.repeat(600));
    writeFileSync(file('empty'), '');
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test('those who read the same file share one copy until the last gives it back', async () => {
    const shelf = new FileShelf(1000);
    const leases = await Promise.all([shelf.borrow(file('a')), shelf.borrow(file('a'))]);
    const third = await shelf.borrow(file('a'));
    expect(third?.bytes).toBe(leases[0]?.bytes);
    expect(Buffer.from(third?.bytes ?? []).toString()).toBe('a'.repeat(600));
    expect(shelf.bytes).toBe(600);
    for (const lease of leases) lease?.release();
    third?.release();
    third?.release();
    expect(shelf.bytes).toBe(0);
    writeFileSync(file('a'), 'new');
    expect((await shelf.borrow(file('a')))?.bytes.length).toBe(3);
  });

  test('more than the limit is not lent, until something is given back', async () => {
    const shelf = new FileShelf(1000);
    const first = await shelf.borrow(file('a'));
    expect(await shelf.borrow(file('b'))).toBeNull();
    first?.release();
    expect((await shelf.borrow(file('b')))?.bytes.length).toBe(600);
  });

  test('a file that is missing or a folder is an error and leaves nothing behind', async () => {
    const shelf = new FileShelf(1_000_000);
    await expect(shelf.borrow(file('none'))).rejects.toThrow('ENOENT');
    await expect(shelf.borrow(folder)).rejects.toThrow();
    expect(shelf.bytes).toBe(0);
  });

  test('an empty file is empty', async () => {
    const shelf = new FileShelf(10);
    const lease = await shelf.borrow(file('empty'));
    expect(lease?.bytes.length).toBe(0);
    lease?.release();
    expect(shelf.bytes).toBe(0);
  });
});
