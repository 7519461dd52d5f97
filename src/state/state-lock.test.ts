import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { freeBytes, readOnly, smallDisk } from '../../test/harness/small-disk.ts';
import { problemOf, StateLock } from './state-lock.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

/** Another process that holds the lock; `kill` ends it without cleaning up. */
async function holder(): Promise<{ readonly pid: number; kill(): Promise<void> }> {
  const program = `import { StateLock } from ${JSON.stringify(new URL('./state-lock.ts', import.meta.url).href)};
    // Held, as the server holds it: what nobody refers to is collected, and its lock goes with it.
    globalThis.lock = StateLock.take(${JSON.stringify(folder)});
    console.log('held');
    setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  onTestFinished(kill);
  await once(child.stdout, 'data');
  return { pid: child.pid ?? 0, kill };
}

test('a second process is refused with the id of the holder', async () => {
  const { pid } = await holder();
  expect(() => StateLock.take(folder)).toThrow(`state folder '${folder}' is in use by process ${pid}`);
});

test('a killed process releases the lock, although its process id is still in the file', async () => {
  await (await holder()).kill();
  expect(readdirSync(folder)).toContain('server.pid');
  // Another process has this number now.
  writeFileSync(join(folder, 'server.pid'), `${process.pid} ${hostname()}\n`);
  StateLock.take(folder).release();
});

test('it holds within one process too, until it is released', () => {
  const lock = StateLock.take(folder);
  expect(() => StateLock.take(folder)).toThrow('is in use by process');
  lock.release();
  lock.release();
  StateLock.take(folder).release();
  expect(readdirSync(folder).filter((name) => name !== 'server.lock')).toEqual([]);
});

test('names the holder without taking the lock', async () => {
  expect(StateLock.holder(folder)).toBeNull();
  const { pid, kill } = await holder();
  expect(StateLock.holder(folder)).toBe(`process ${pid}`);
  await kill();
  expect(StateLock.holder(folder)).toBeNull();
  StateLock.take(folder).release();
});

test('a holder on another machine and an unknown holder are named in the refusal', () => {
  const lock = StateLock.take(folder);
  onTestFinished(() => lock.release());
  writeFileSync(join(folder, 'server.pid'), '1 elsewhere\n');
  expect(() => StateLock.take(folder)).toThrow("is in use by process 1 on 'elsewhere'");
  rmSync(join(folder, 'server.pid'));
  expect(() => StateLock.take(folder)).toThrow('is in use by another process');
});

test('an unusable state folder is reported in words', () => {
  const file = join(folder, 'file');
  writeFileSync(file, '');
  expect(() => StateLock.take(file)).toThrow(`state folder '${file}' cannot be used: it is not a folder`);
  const taken = join(folder, 'taken');
  mkdirSync(join(taken, 'server.lock'), { recursive: true });
  expect(() => StateLock.take(taken)).toThrow(`state folder '${taken}' cannot be used: `);
  for (const [code, words] of [
    ['EACCES', 'this user may not write there'],
    ['EROFS', 'its file system is read-only'],
    ['EEXIST', 'it is not a folder'],
  ]) {
    expect(problemOf('x', Object.assign(new Error(''), { code })).message).toBe(`state folder 'x' cannot be used: ${words}`);
  }
});

test('a full disk can be locked: the number of the process is for people only', (context) => {
  const full = smallDisk(join(folder, 'full'), 1);
  if (full === null) {
    context.skip('a tmpfs cannot be mounted here');
    return;
  }
  // The lock of SQLite needs no free space.
  writeFileSync(join(full, 'filler'), Buffer.alloc(freeBytes(full)));
  const lock = StateLock.take(full);
  expect(() => StateLock.take(full)).toThrow('is in use by');
  lock.release();
});

test('it is released on a disk that has become read-only', (context) => {
  const lock = StateLock.take(folder);
  const mend = readOnly(folder);
  if (mend === null) {
    lock.release();
    context.skip('nothing can be mounted here');
    return;
  }
  lock.release();
  mend();
  StateLock.take(folder).release();
});
