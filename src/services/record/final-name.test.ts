import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { link } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { fitName, giveName } from './final-name.ts';

vi.mock('node:fs/promises', async (importOriginal) => {
  const original = await importOriginal<typeof import('node:fs/promises')>();
  return { ...original, link: vi.fn(original.link) };
});

const anywhere = new AllowedFolders(null, 'nothing');
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-names-'));
});
afterEach(() => {
  vi.mocked(link).mockReset();
  rmSync(folder, { recursive: true, force: true });
});

function make(name: string): string {
  writeFileSync(join(folder, name), name);
  return join(folder, name);
}

/** Turns the file system into one without hard links. */
function withoutLinks(code: string): void {
  vi.mocked(link).mockImplementation(() => Promise.reject(Object.assign(new Error(code), { code })));
}

describe('fitName', () => {
  it.each([
    ['/a/b.mp4', '', 0, 'b.mp4'],
    ['/a/b.mp4', '_7', 0, 'b_7.mp4'],
    [`/a/${'x'.repeat(251)}.mp4`, '', 0, `${'x'.repeat(251)}.mp4`],
    [`/a/${'x'.repeat(252)}.mp4`, '', 0, `${'x'.repeat(251)}.mp4`],
    [`/a/${'x'.repeat(252)}.mp4`, '_10', 0, `${'x'.repeat(248)}_10.mp4`],
    [`/a/${'x'.repeat(252)}.xml`, '', 21, `${'x'.repeat(230)}.xml`],
    [`/a/${'ü'.repeat(200)}.ts`, '', 0, `${'ü'.repeat(126)}.ts`],
    [`/a/a${'😀'.repeat(70)}.ts`, '', 0, `a${'😀'.repeat(62)}.ts`],
    [`/a/.${'x'.repeat(300)}`, '', 0, `.${'x'.repeat(254)}`],
    [`/a/b.${'x'.repeat(300)}`, '_1', 0, `b.${'x'.repeat(251)}_1`],
  ])('%s with %j and %i bytes spare', (path, suffix, spare, name) => {
    expect(fitName(path, suffix, spare)).toBe(`/a/${name}`);
    expect(Buffer.byteLength(name) + spare).toBeLessThanOrEqual(255);
  });
});

it('numbers go before the extension', () => {
  expect(fitName('/a.b/c.ts', '_2')).toBe('/a.b/c_2.ts');
  expect(fitName('/a.b/c', '_2')).toBe('/a.b/c_2');
});

describe('giveName', () => {
  it('shortens names that are too long for the file system, and numbers them too', async () => {
    const target = join(folder, 'deep', `${'ж'.repeat(200)}.mp4`);
    const paths = [await giveName(make('one'), target, anywhere), await giveName(make('two'), target, anywhere)];
    expect(paths.map((path) => basename(path))).toEqual([`${'ж'.repeat(125)}.mp4`, `${'ж'.repeat(124)}_1.mp4`]);
    expect(paths.map((path) => readFileSync(path, 'utf8'))).toEqual(['one', 'two']);
    expect(readdirSync(folder)).toEqual(['deep']);
  });

  it('uses another name beside a dangling link', async () => {
    symlinkSync(join(folder, 'nowhere'), join(folder, 'x.ts'));
    expect(await giveName(make('one'), join(folder, 'x.ts'), anywhere)).toBe(join(folder, 'x_1.ts'));
  });

  it.each(['EPERM', 'ENOTSUP', 'ENOSYS', 'EMLINK'])('replaces no file without hard links (%s)', async (code) => {
    withoutLinks(code);
    const target = join(folder, 'x.ts');
    const paths = await Promise.all(['one', 'two', 'three'].map((name) => giveName(make(name), target, anywhere)));
    expect(paths.map((path) => readFileSync(path, 'utf8'))).toEqual(['one', 'two', 'three']);
    expect(readdirSync(folder).sort()).toEqual(['x.ts', 'x_1.ts', 'x_2.ts']);
  });

  it('removes its empty file when the move fails', async () => {
    withoutLinks('EPERM');
    mkdirSync(join(folder, 'out'));
    await expect(giveName(join(folder, 'missing'), join(folder, 'out/x.ts'), anywhere)).rejects.toMatchObject({ code: 'ENOENT' });
    expect(existsSync(join(folder, 'out/x.ts'))).toBe(false);
  });
});
