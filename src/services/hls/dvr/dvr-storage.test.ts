import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../../../../test/fakes/recording-logger.ts';
import { AllowedFolders } from '../../../util/allowed-folders.ts';
import { Conditions } from '../../../util/conditions.ts';
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

function make(logger = new RecordingLogger(), allowed = new AllowedFolders(null, 'the setting')) {
  const conditions = new Conditions();
  return { storage: new DvrStorage({ stateFolder: join(root, 'state'), allowed, conditions, logger }), conditions, logger };
}

/** Id of a process that has ended. */
function deadPid(): number {
  return Number(execFileSync(process.execPath, ['-p', 'process.pid']).toString());
}

describe('RunFolder', () => {
  it('removes its folder, and the folders of its stream when they are empty', async () => {
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

describe('the folder of DVR files', () => {
  const SEGMENT = [Buffer.from('x')];

  it('is the state folder, closed to other users, unless a stream names another folder', async () => {
    const { storage } = make();
    const file = await storage.open('', [APP, 'stream'], 'llhls').write('0/1.m4s', SEGMENT);
    expect(file.startsWith(join(root, 'state/dvr', APP, 'stream/'))).toBe(true);
    for (let at = file; at !== join(root, 'state'); at = dirname(at)) expect(statSync(at).mode & 0o077, at).toBe(0);
  });

  it('must lie in the allowed folders after links are followed', async () => {
    const { storage, logger, conditions } = make(undefined, new AllowedFolders([join(root, 'in')], 'the setting'));
    mkdirSync(join(root, 'in'));
    mkdirSync(join(root, 'out'));
    symlinkSync(join(root, 'out'), join(root, 'in/link'));
    for (const wanted of ['out/x', 'in/../out', 'in/link/x', 'in/link']) {
      const folder = storage.open(join(root, wanted), [APP, 'stream'], wanted);
      await expect(folder.write('0/1.m4s', SEGMENT), wanted).rejects.toThrow('the setting');
    }
    expect(readdirSync(join(root, 'out'))).toEqual([]);
    expect(logger.lines).toHaveLength(4);
    expect(conditions.reasons).toEqual(['a stream cannot be rewound as far as it should: its folder cannot be used']);
    await storage.open(join(root, 'in/good'), [APP, 'stream'], 'a').write('0/1.m4s', SEGMENT);
  });

  it('is no folder or link that another user may have planted in a world-writable folder', async () => {
    const { storage } = make();
    const everybody = join(root, 'everybody');
    mkdirSync(everybody);
    chmodSync(everybody, 0o1777);
    mkdirSync(join(root, 'theirs'));
    symlinkSync(join(root, 'theirs'), join(everybody, 'link'));
    mkdirSync(join(everybody, 'app', APP), { recursive: true });
    symlinkSync(join(root, 'theirs'), join(everybody, 'app', APP, 'stream'));
    for (const name of ['link', 'app']) {
      const folder = storage.open(join(everybody, name), [APP, 'stream'], 'a');
      await expect(folder.write('0/1.m4s', SEGMENT), name).rejects.toThrow('another user may have made it');
    }
    if (process.getuid?.() === 0) {
      mkdirSync(join(everybody, 'foreign'));
      chownSync(join(everybody, 'foreign'), 65_534, 65_534);
      const folder = storage.open(join(everybody, 'foreign'), [APP, 'stream'], 'a');
      await expect(folder.write('0/1.m4s', SEGMENT)).rejects.toThrow('another user may have made it');
    }
    chmodSync(join(root, 'theirs'), 0o777);
    const loose = storage.open(join(root, 'theirs'), [APP, 'stream'], 'a');
    await expect(loose.write('0/1.m4s', SEGMENT)).rejects.toThrow('every user can write to it');
    expect(readdirSync(join(root, 'theirs'))).toEqual([]);
    await storage.open(join(everybody, 'own'), [APP, 'stream'], 'a').write('0/1.m4s', SEGMENT);
    expect(statSync(join(everybody, 'own')).mode & 0o777).toBe(0o700);
  });
});

describe('DvrStorage', () => {
  it('removes only the folders of servers that no longer run', async () => {
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

  it('logs once that the files of a stream cannot be written', async () => {
    const file = join(root, 'file');
    writeFileSync(file, '');
    const logger = new RecordingLogger();
    const { storage, conditions } = make(logger);
    const folder = storage.open(file, [APP, 'stream'], 'llhls');
    for (const name of ['0/1.m4s', '0/2.m4s']) await expect(folder.write(name, [Buffer.from('x')])).rejects.toThrow();
    expect(conditions.reasons).toEqual(['a stream cannot be rewound as far as it should: the file system refused (ENOTDIR)']);
    const message = expect.stringMatching(/^DVR of #default#app\/stream: viewers cannot rewind as far as configured: E\w+: .*file/);
    expect(logger.lines).toMatchObject([{ level: 'warn', message, fields: { folder: file } }]);
    rmSync(file);
    await folder.write('0/3.m4s', [Buffer.from('x')]);
    expect(conditions.reasons).toEqual([]);
  });
});
