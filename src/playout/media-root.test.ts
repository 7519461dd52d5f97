import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { AllowedFolders, PathRefused } from '../util/allowed-folders.ts';
import { OpenFile } from './file-bytes.ts';
import { MediaRoot } from './media-root.ts';

let folder: string;
let root: MediaRoot;
const none = new AllowedFolders(null, '');
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-root-'));
  mkdirSync(join(folder, 'media/day 1'), { recursive: true });
  writeFileSync(join(folder, 'secret'), 'secret');
  for (const name of ['media/a.mp4', 'media/day 1/b%.mp4']) writeFileSync(join(folder, name), name);
  symlinkSync('../secret', join(folder, 'media/link'));
  symlinkSync('..', join(folder, 'media/up'));
  symlinkSync('a.mp4', join(folder, 'media/other'));
  root = new MediaRoot(join(folder, 'media'), none);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each(['file://a.mp4', 'file:///a.mp4', 'file://day%201/b%25.mp4', 'file://day 1/b%.mp4', 'file://other'])(
  '%s is a file of it',
  async (url) => {
    const file = await root.open(url);
    expect(Buffer.from(await file.read(0, 6)).toString()).toBe('media/');
    await file.close();
  },
);

it.each(['file://../secret', 'file://%2e%2e/secret', 'file://day 1/../../secret', 'file://link', 'file://up/secret', 'file://a%00b'])(
  '%s is refused',
  async (url) => {
    await expect(root.open(url)).rejects.toThrow(PathRefused);
    await expect(root.pathOf(url)).rejects.toThrow(PathRefused);
  },
);

it('contains files only, and accepts no other scheme', async () => {
  await expect(root.open('file://nothing.mp4')).rejects.toThrow(/ENOENT/);
  await expect(root.open('file://day 1')).rejects.toThrow(/is not a file/);
  await expect(root.open('http://a.mp4')).rejects.toThrow(/is not a file:\/\/ URL/);
});

it('is asked again when a file is open, because links may have been turned meanwhile', async () => {
  const inside = new AllowedFolders([join(folder, 'media')], 'MediaRootDir');
  await expect(OpenFile.open(join(folder, 'media/link'), inside)).rejects.toThrow(PathRefused);
  await expect(OpenFile.open(join(folder, 'secret'), inside)).rejects.toThrow(PathRefused);
});

it('refuses a link that was replaced after the check', async () => {
  const turned = new MediaRoot(join(folder, 'media'), none);
  // The examined file was one of it.
  turned.pathOf = async () => join(folder, 'media/link');
  await expect(turned.open('file://a.mp4')).rejects.toThrow(PathRefused);
});

it('must lie in the allowed folders', async () => {
  const elsewhere = new MediaRoot(join(folder, 'media'), new AllowedFolders([join(folder, 'media/day 1')], 'AllowedRoots'));
  await expect(elsewhere.open('file://a.mp4')).rejects.toThrow(/AllowedRoots/);
});
