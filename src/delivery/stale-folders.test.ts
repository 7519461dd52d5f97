import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { removeStaleFolders } from './stale-folders.ts';

const LATER_MS = 120_000;

let place: string;
beforeEach(() => {
  place = mkdtempSync(path.join(tmpdir(), 'millrace-stale-'));
  onTestFinished(() => rmSync(place, { recursive: true }));
});

/** A folder with the socket of a process that was killed. */
async function left(name: string): Promise<string> {
  const folder = path.join(place, name);
  mkdirSync(folder);
  const program = `require('net').createServer().listen(${JSON.stringify(path.join(folder, 'signalling'))}, () => console.log('listens'))`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await exited;
  return folder;
}

test('only folders of killed servers are removed', async () => {
  const dead = await left('millrace-abcDE1');
  const filled = await left('millrace-abcDE2');
  writeFileSync(path.join(filled, 'other'), '');
  const foreign = await left('millrace-foreign-1');
  const alive = path.join(place, 'millrace-abcDE3');
  mkdirSync(alive);
  const server = createServer().listen(path.join(alive, 'signalling'));
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
  });
  const file = path.join(place, 'millrace-abcDE4');
  mkdirSync(file);
  writeFileSync(path.join(file, 'signalling'), 'no socket');
  const aside = await left('aside');
  symlinkSync(aside, path.join(place, 'millrace-abcDE5'));

  expect(await removeStaleFolders(place), 'a minute is not over').toBe(0);
  expect(await removeStaleFolders(place, Date.now() + LATER_MS)).toBe(1);
  expect(existsSync(dead)).toBe(false);
  for (const folder of [filled, foreign, alive, file, aside]) expect(readdirSync(folder), folder).toContain('signalling');
  expect(readdirSync(place)).toHaveLength(6);
});

// Only root can make folders of another user.
test.skipIf(process.getuid?.() !== 0)('folders of other users do not hide stale folders, in any number', async () => {
  const dead = ['millrace-000000', 'millrace-mmmmmm', 'millrace-zzzzzz'].map((name) => path.join(place, name));
  for (const folder of dead) mkdirSync(folder);
  for (let n = 0; n < 300; n += 1) {
    const folder = path.join(place, `millrace-x${String(n).padStart(5, '0')}`);
    mkdirSync(folder);
    chownSync(folder, 65_534, 65_534);
  }
  expect(await removeStaleFolders(place, Date.now() + LATER_MS)).toBe(dead.length);
  expect(readdirSync(place)).toHaveLength(300);
});

test('a missing place is accepted', async () => {
  expect(await removeStaleFolders(path.join(place, 'none'))).toBe(0);
});
