import { createHook } from 'node:async_hooks';
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { AllowedFolders, PathRefused } from './allowed-folders.ts';

let folder: string;
let allowed: AllowedFolders;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'millrace-allowed-')));
  mkdirSync(join(folder, 'in'));
  mkdirSync(join(folder, 'out'));
  allowed = new AllowedFolders([join(folder, 'in')], 'the setting');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('folders inside are made, however deep', async () => {
  await allowed.makeFolder(join(folder, 'in/a/b/c'));
  expect(existsSync(join(folder, 'in/a/b/c'))).toBe(true);
  await allowed.makeFolder(join(folder, 'in'));
});

test('an existing folder is checked in one step, because recordings wait for it', async () => {
  await allowed.makeFolder(join(folder, 'in/deep'));
  let requests = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'FSREQPROMISE') requests += 1;
    },
  }).enable();
  onTestFinished(() => void hook.disable());
  const made = allowed.makeFolder(join(folder, 'in/deep'));
  const atOnce = requests;
  expect(atOnce).toBe(3);
  await made;
  expect(requests).toBe(atOnce);
});

test.each(['out', 'in/../out', 'input', '.', 'in/a\0b', 'in/..'])('%j is refused and not created', async (path) => {
  await expect(allowed.makeFolder(`${folder}/${path}`)).rejects.toThrow(PathRefused);
  expect(existsSync(join(folder, 'input'))).toBe(false);
});

test('the refusal names the path and the setting', () => {
  expect(() => allowed.check('/etc/cron.d/x')).toThrow('"/etc/cron.d/x" is outside of the folders that the setting allows');
});

test('a symbolic link that leaves the folder is refused, one that stays inside is followed', async () => {
  symlinkSync(join(folder, 'out'), join(folder, 'in/escape'));
  symlinkSync('../out', join(folder, 'in/relative'));
  mkdirSync(join(folder, 'in/real'));
  symlinkSync('real', join(folder, 'in/fine'));
  for (const name of ['escape', 'relative']) {
    await expect(allowed.makeFolder(join(folder, 'in', name, 'deep'))).rejects.toThrow(/symbolic link/);
    expect(existsSync(join(folder, 'out/deep'))).toBe(false);
  }
  await allowed.makeFolder(join(folder, 'in/fine/deep'));
  expect(existsSync(join(folder, 'in/real/deep'))).toBe(true);
});

test('a dangling link is not followed', async () => {
  symlinkSync(join(folder, 'later'), join(folder, 'in/dangling'));
  await expect(allowed.makeFolder(join(folder, 'in/dangling/x'))).rejects.toThrow();
  expect(existsSync(join(folder, 'later'))).toBe(false);
});

test('a root that is a link means its target', async () => {
  symlinkSync(join(folder, 'out'), join(folder, 'linked'));
  await new AllowedFolders([join(folder, 'linked')], 's').makeFolder(join(folder, 'linked/x'));
  expect(existsSync(join(folder, 'out/x'))).toBe(true);
});

test('without roots every folder is allowed, but no path with ".."', async () => {
  const free = new AllowedFolders(null, 's');
  await free.makeFolder(join(folder, 'out/y'));
  await expect(free.makeFolder(`${folder}/out/../z`)).rejects.toThrow('contains ".."');
});

test('a narrower set of folders stays inside of a wider set', async () => {
  const narrow = new AllowedFolders([join(folder, 'in/a'), join(folder, 'out')], 'the inner setting', allowed);
  await narrow.makeFolder(join(folder, 'in/a/b'));
  await expect(narrow.makeFolder(join(folder, 'in/b'))).rejects.toThrow('the inner setting');
  await expect(narrow.makeFolder(join(folder, 'out/b'))).rejects.toThrow('the setting');
});

test('a file system without folders is reported at once', async () => {
  const free = new AllowedFolders(null, 's');
  await expect(free.makeFolder('/proc/nope/deep')).rejects.toThrow('does not take the folder /proc/nope');
});

test('a file in place of a folder is reported', async () => {
  writeFileSync(join(folder, 'in/file'), '');
  await expect(allowed.makeFolder(join(folder, 'in/file/x'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  await expect(allowed.makeFolder(join(folder, 'in/file'))).rejects.toMatchObject({ code: 'EEXIST' });
});
