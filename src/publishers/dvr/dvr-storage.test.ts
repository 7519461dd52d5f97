import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { DvrStorage } from './dvr-storage.ts';
import { RunFolder } from './run-folder.ts';

const APP = '#default#app';
const MACHINE = hostname().replace(/[^A-Za-z0-9]/g, '-');

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-dvr-'));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** A folder with a file, as a server of that name would have made it. */
function leave(stream: string, run: string): string {
  const folder = join(root, APP, stream, run);
  mkdirSync(join(folder, '0'), { recursive: true });
  writeFileSync(join(folder, '0', '17.m4s'), 'media');
  return folder;
}

/** Id of a process that has ended. */
function deadPid(): number {
  return Number(execFileSync(process.execPath, ['-p', 'process.pid']).toString());
}

describe('RunFolder', () => {
  it('leaves nothing behind, not even the folders of its stream', async () => {
    const folder = new RunFolder(root, [APP, 'stream'], 'a');
    const other = new RunFolder(root, [APP, 'other'], 'a');
    const path = await folder.write('0/1.m4s', [Buffer.from('one'), Buffer.from('two')]);
    expect(readFileSync(path, 'utf8')).toBe('onetwo');
    await other.write('0/1.m4s', [Buffer.from('x')]);
    await folder.remove();
    expect(readdirSync(join(root, APP))).toEqual(['other']);
    await other.remove();
    await other.remove();
    expect(readdirSync(root)).toEqual([]);
  });

  it('cannot leave its root', async () => {
    const folder = new RunFolder(root, ['..', '../../etc'], 'a');
    expect(folder.path.startsWith(`${root}/`)).toBe(true);
  });
});

describe('DvrStorage', () => {
  it('removes what servers left that run no more, and nothing else', async () => {
    const child = spawn('sleep', ['60']);
    try {
      const dead = leave('one', `${MACHINE}_${deadPid()}_abc_llhls`);
      const earlier = leave('one', `${MACHINE}_${process.pid}_earlier_llhls`);
      const running = leave('two', `${MACHINE}_${child.pid}_abc_llhls`);
      const elsewhere = leave('three', 'othermachine_1_abc_llhls');
      const foreign = leave('four', 'something');
      const storage = new DvrStorage();
      const own = storage.open(root, [APP, 'five'], 'llhls');
      const file = await own.write('0/1.m4s', [Buffer.from('x')]);
      await storage.swept;
      expect([dead, earlier].filter(existsSync)).toEqual([]);
      expect([running, elsewhere, foreign, file].filter((path) => !existsSync(path))).toEqual([]);
      expect(readdirSync(join(root, APP)).sort()).toEqual(['five', 'four', 'three', 'two']);
    } finally {
      child.kill();
    }
  });

  it('tells once of a stream whose files cannot be written', async () => {
    const file = join(root, 'file');
    writeFileSync(file, '');
    const logger = new RecordingLogger();
    const folder = new DvrStorage(logger).open(file, [APP, 'stream'], 'llhls');
    for (const name of ['0/1.m4s', '0/2.m4s']) await expect(folder.write(name, [Buffer.from('x')])).rejects.toThrow();
    const message = expect.stringMatching(/^DVR of #default#app\/stream: viewers cannot rewind as far as they should: E\w+: .*file/);
    expect(logger.lines).toMatchObject([{ level: 'warn', message, fields: { folder: file } }]);
  });
});
