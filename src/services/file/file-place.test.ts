import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { filePathOf } from './file-place.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-place-'));
  mkdirSync(join(folder, 'media/films'), { recursive: true });
  symlinkSync('/etc', join(folder, 'media/etc'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const anything = new AllowedFolders(null, 'Server/Storage/AllowedRoots');
const settings = () => ({ rootPath: join(folder, 'media') });

it.each([
  ['file:///films/a.mp4', 'films/a.mp4'],
  ['file://films/a.mp4', 'films/a.mp4'],
  ['FILE://films/a%20b.mp4?token=1', 'films/a b.mp4'],
  ['file:///100%.ts', '100%.ts'],
])('%s is below the root path', async (url, expected) => {
  expect(await filePathOf(url, settings(), anything)).toBe(join(folder, 'media', expected));
});

it.each(['file://../secret', 'file:///films/%2e%2e/%2e%2e/secret', 'file:///a%00b', 'file:///etc/passwd/'])(
  '%s is refused',
  async (url) => {
    await expect(filePathOf(url, settings(), anything)).rejects.toThrow(expect.objectContaining({ name: 'PathRefused' }));
  },
);

it('a file outside of the allowed roots is refused with any root path', async () => {
  const allowed = new AllowedFolders([join(folder, 'media/films')], 'Server/Storage/AllowedRoots');
  expect(await filePathOf('file:///films/a.mp4', settings(), allowed)).toBe(join(folder, 'media/films/a.mp4'));
  await expect(filePathOf('file:///b.mp4', settings(), allowed)).rejects.toThrow('AllowedRoots');
  expect(await filePathOf(`file://${folder}/media/films/a.mp4`, {}, allowed)).toBe(join(folder, 'media/films/a.mp4'));
  await expect(filePathOf('file:///etc/passwd', {}, allowed)).rejects.toThrow('AllowedRoots');
});

it('no file is read without a root path', async () => {
  await expect(filePathOf('file:///etc/passwd', {}, anything)).rejects.toThrow('RootPath');
});
