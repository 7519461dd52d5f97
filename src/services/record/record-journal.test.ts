import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RecordingLogger } from '../../../test/fakes/recording-logger.ts';
import { constantFrames, videoPackets, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { DocumentFolder } from '../../state/document-folder.ts';
import { KEYED } from '../../state/document-layout.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { finalise } from './finalise.ts';
import { RecordFile } from './record-file.ts';
import { RecordInfoFiles } from './record-info-file.ts';
import { type FinishedRecording, RecordJournal } from './record-journal.ts';
import { foldersBelow } from './record-place.ts';
import type { RecordingNote } from './recording-note.ts';

vi.mock('./finalise.ts', async (importOriginal) => {
  const original = await importOriginal<typeof import('./finalise.ts')>();
  return { ...original, finalise: vi.fn(original.finalise) };
});

const anywhere = new AllowedFolders(null, 'nothing');
let folder: string;
let root: string;
let logger: RecordingLogger;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-journal-'));
  root = join(folder, 'root');
  mkdirSync(root);
  logger = new RecordingLogger();
});
afterEach(() => {
  vi.mocked(finalise).mockReset();
  rmSync(folder, { recursive: true, force: true });
});

/** A state folder on a disk that may be full. */
class Notes extends DocumentFolder {
  full = false;

  constructor() {
    super({ folder: join(folder, 'notes'), kind: 'open-recording', layout: KEYED, logger });
  }

  override save(key: string, value: object): Promise<void> {
    return this.full ? Promise.reject(noSpace()) : super.save(key, value);
  }
}

function noSpace(): Error {
  return Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC', errno: -28 });
}

/** The journal of a process that has just started, and the notes that it found. */
async function start(notes = new Notes()) {
  const journal = new RecordJournal(notes, new RecordInfoFiles(), logger);
  return { journal, notes, left: await journal.load() };
}

/** Starts a process and lets it finish the files there; returns the names of the remaining notes. */
async function recover(finished: FinishedRecording[] = []): Promise<string[]> {
  const { journal, left } = await start();
  await journal.recover(
    left,
    ({ root: below }) => foldersBelow(below ?? null, anywhere),
    async (_key, file) => finished.push(file) > 0,
  );
  return readdirSync(join(folder, 'notes'));
}

function noteOf(more: Partial<RecordingNote> = {}): RecordingNote {
  const names = { transactionId: 't', id: 'i', vhost: 'v', app: 'a', sourceStream: 's', stream: 's' };
  return {
    ...{ task: 'x', temporary: join(root, 'tmp_x'), filePath: join(root, 'file.ts'), infoPath: join(root, 'info.xml'), moved: null },
    ...{ values: { ...names, startTime: 0, sequence: 0 }, metadata: '', createdTime: 0 },
    ...more,
  };
}

const MEANS = { folders: anywhere, count: async () => true };
const END = { finishTime: 1000, recordTime: 500, lastSequence: true };

it('keeps the note of a file as long as its folder is not there', async () => {
  const volume = join(root, 'volume');
  const note = noteOf({ temporary: join(volume, 'tmp_x'), filePath: join(volume, 'file.ts') });
  const { journal } = await start();
  await journal.open('k', note);
  // The volume is not mounted yet.
  expect(await recover()).toEqual(['k.json']);
  // Something is wrong with it.
  writeFileSync(volume, '');
  expect(await recover()).toEqual(['k.json']);
  expect(logger.lines.filter(({ level, message }) => level === 'warn' && message.includes('the next start tries again'))).toHaveLength(2);
  rmSync(volume);
  mkdirSync(volume);
  writeFileSync(note.temporary, 'media');
  expect(await recover()).toEqual([]);
  expect(readdirSync(volume)).toEqual(['file.ts']);
});

it('forgets a file that no longer exists', async () => {
  const { journal } = await start();
  await journal.open('k', noteOf());
  expect(await recover()).toEqual([]);
});

it('leaves a finished file to the next start when its folder has disappeared', async () => {
  const { journal } = await start();
  const note = noteOf({ temporary: join(root, 'volume/tmp_x') });
  await journal.open('k', note);
  expect(await journal.finish('k', note, END, MEANS)).toMatchObject({ outcome: 'left' });
  expect(readdirSync(join(folder, 'notes'))).toEqual(['k.json']);
});

it('cuts file names that are too long, also those of information files', async () => {
  const { journal } = await start();
  const note = noteOf({ filePath: join(root, 'deep', `${'ü'.repeat(300)}.ts`), infoPath: join(root, `${'ü'.repeat(300)}.xml`) });
  writeFileSync(note.temporary, 'media');
  await journal.open('k', note);
  const { outcome, path } = await journal.finish('k', note, END, MEANS);
  expect([outcome, path]).toEqual(['finished', join(root, 'deep', `${'ü'.repeat(126)}.ts`)]);
  const [info = ''] = readdirSync(root).filter((name) => name.endsWith('.xml'));
  expect(readFileSync(join(root, info), 'utf8')).toContain(path);
  expect(readdirSync(join(folder, 'notes'))).toEqual([]);
});

it('finalises a file later that was renamed while the disk was full, even when its note could not be updated', async () => {
  const { journal, notes } = await start();
  const track = videoTrack();
  const packets = videoPackets(track, constantFrames({ rate: 30, gop: 30, seconds: 2 }), 100);
  const [first] = packets;
  if (first === undefined) throw new Error('no packets');
  const note = noteOf({ filePath: join(root, 'a+b_${EndTime}.mp4') });
  const options = { tracks: [track], first, container: 'mp4' as const, startAt: 0, key: 'k', ...MEANS, logger };
  const file = new RecordFile({ ...options, note, journal, onError: (error) => expect.unreachable(error.message) });
  for (const packet of packets) file.push(packet);
  vi.mocked(finalise).mockRejectedValueOnce(noSpace());
  notes.full = true;
  const { outcome, path } = await file.finish(1000, true, Promise.resolve());
  expect(outcome).toBe('finished');
  const fragmented = readFileSync(path ?? '');
  expect(fragmented.includes('moof')).toBe(true);
  // The file of another user.
  writeFileSync(join(root, 'a+b_x_1.mp4'), 'no film');
  expect(await recover()).toEqual([]);
  const whole = readFileSync(path ?? '');
  expect(whole.lastIndexOf('moov')).toBeGreaterThan(fragmented.lastIndexOf('moof'));
  expect(readFileSync(join(root, 'a+b_x_1.mp4'), 'utf8')).toBe('no film');
});

it.each([
  ['just', true, false],
  ['', false, false],
  ['', false, true],
])(
  'lists a file once that had %s got its name when the process died (both names: %s, listed before: %s)',
  async (_when, isBoth, isTold) => {
    const { journal } = await start();
    const note = noteOf({ filePath: join(root, 'file_${EndTime:hhmmss}.ts') });
    writeFileSync(note.temporary, 'media');
    await journal.open('k', note);
    journal.made('k', note, String(statSync(note.temporary).ino));
    await expect.poll(() => readFileSync(join(folder, 'notes/k.json'), 'utf8')).toContain('"inode"');
    const named = join(root, 'file_010203_1.ts');
    if (isBoth) linkSync(note.temporary, named);
    else renameSync(note.temporary, named);
    writeFileSync(join(root, 'file_010203.ts'), 'another');
    const values = { transactionId: 't', id: 'i', vhost: 'v', app: 'a', stream: 's' };
    const times = { recordTime: 500, sequence: 0, lastSequence: true, createdTime: 0, startTime: 0, finishTime: 1000 };
    if (isTold) await new RecordInfoFiles().append(note.infoPath, { ...values, ...times, metadata: '', filePath: named, recordBytes: 5 });
    const finished: FinishedRecording[] = [];
    expect(await recover(finished)).toEqual([]);
    expect(finished).toMatchObject([{ outcome: 'finished', path: named, bytes: 5 }]);
    expect(readFileSync(note.infoPath, 'utf8').match(/<filePath>.*/g)).toEqual([`<filePath><![CDATA[${named}]]></filePath>`]);
    expect(readFileSync(join(root, 'file_010203.ts'), 'utf8')).toBe('another');
    expect(readdirSync(root)).toEqual(['file_010203.ts', 'file_010203_1.ts', 'info.xml']);
  },
);

it('keeps the note of a file until the file is counted and listed, even on a full disk', async () => {
  const { journal } = await start();
  const note = noteOf();
  writeFileSync(note.temporary, 'media');
  await journal.open('k', note);
  journal.made('k', note, String(statSync(note.temporary).ino));
  await expect.poll(() => readFileSync(join(folder, 'notes/k.json'), 'utf8')).toContain('"inode"');
  expect(await journal.finish('k', note, END, { folders: anywhere, count: async () => false })).toMatchObject({ outcome: 'finished' });
  expect([readdirSync(join(folder, 'notes')), journal.isOpen('k')]).toEqual([['k.json'], true]);
  const full = vi.spyOn(RecordInfoFiles.prototype, 'append').mockRejectedValueOnce(noSpace());
  rmSync(note.infoPath);
  expect(await recover()).toEqual(['k.json']);
  full.mockRestore();
  expect(await recover()).toEqual([]);
  expect(readFileSync(note.infoPath, 'utf8')).toContain('file.ts');
});

it('renames a file in the running server when the full disk has room again', async () => {
  const notes = new Notes();
  await notes.load();
  const journal = new RecordJournal(notes, new RecordInfoFiles(), logger, 5);
  const counted: string[] = [];
  const means = { folders: anywhere, count: async (key: string) => counted.push(key) > 0 && !notes.full };
  for (const [index, name] of ['nameless', 'untold', 'uncounted'].entries()) {
    const note = noteOf({ temporary: join(root, `tmp_${name}`), filePath: join(root, `${name}/file.ts`) });
    writeFileSync(note.temporary, 'media');
    await journal.open(name, { ...note, values: { ...note.values, sequence: index } });
    journal.made(name, { ...note, values: { ...note.values, sequence: index } }, String(statSync(note.temporary).ino));
  }
  await notes.settle();
  const append = vi.spyOn(RecordInfoFiles.prototype, 'append');
  const naming = vi.spyOn(anywhere, 'makeFolder');
  const finish = (name: string, sequence: number): Promise<FinishedRecording> => {
    const note = noteOf({ temporary: join(root, `tmp_${name}`), filePath: join(root, `${name}/file.ts`) });
    return journal.finish(name, { ...note, values: { ...note.values, sequence } }, END, means);
  };
  naming.mockRejectedValueOnce(noSpace());
  expect(await finish('nameless', 0)).toMatchObject({ outcome: 'left' });
  append.mockRejectedValueOnce(noSpace());
  expect(await finish('untold', 1)).toMatchObject({ outcome: 'finished' });
  notes.full = true;
  expect(await finish('uncounted', 2)).toMatchObject({ outcome: 'finished' });
  // Some time goes by in which nothing can be counted.
  await expect.poll(() => counted.filter((key) => key === 'uncounted').length).toBeGreaterThan(2);
  expect(readdirSync(join(folder, 'notes'))).toEqual(['nameless.json', 'uncounted.json', 'untold.json']);
  notes.full = false;
  await expect.poll(() => readdirSync(join(folder, 'notes'))).toEqual([]);
  expect(readdirSync(root).sort()).toEqual(['info.xml', 'nameless', 'uncounted', 'untold']);
  const told = [...readFileSync(join(root, 'info.xml'), 'utf8').matchAll(/CDATA\[(.*?)\]/g)].map(([, path]) => path);
  expect(told.toSorted()).toEqual(['nameless', 'uncounted', 'untold'].map((name) => join(root, name, 'file.ts')));
  expect(readFileSync(join(root, 'info.xml'), 'utf8')).not.toContain('<recordTime>0<');
  append.mockRestore();
  naming.mockRestore();
  await journal.close();
});

it('finalises a fragmented file in the running server when the disk has room again, and not after a close', async () => {
  const notes = new Notes();
  await notes.load();
  const journal = new RecordJournal(notes, new RecordInfoFiles(), logger, 5);
  const counted: string[] = [];
  const means = { folders: anywhere, count: async (key: string) => counted.push(key) > 0 };
  const note = noteOf({ filePath: join(root, 'file.mp4') });
  writeFileSync(note.temporary, 'media');
  await journal.open('k', note);
  vi.mocked(finalise).mockRejectedValueOnce(noSpace()).mockRejectedValueOnce(noSpace());
  vi.mocked(finalise).mockResolvedValueOnce({ outcome: 'finalised', truncated: 0, durationMs: 1, samples: 1 });
  expect(await journal.finish('k', note, END, means)).toMatchObject({ outcome: 'finished' });
  await expect.poll(() => readdirSync(join(folder, 'notes'))).toEqual([]);
  expect(counted).toEqual(['k']);
  expect(vi.mocked(finalise)).toHaveBeenCalledTimes(3);

  await journal.open('l', { ...note, temporary: join(root, 'tmp_l') });
  writeFileSync(join(root, 'tmp_l'), 'media');
  vi.mocked(finalise).mockRejectedValueOnce(noSpace());
  await journal.finish('l', { ...note, temporary: join(root, 'tmp_l') }, END, means);
  await journal.close();
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(vi.mocked(finalise)).toHaveBeenCalledTimes(4);
  expect(readdirSync(join(folder, 'notes'))).toEqual(['l.json']);
});

it('does not follow a link out of the root during recovery', async () => {
  const { journal } = await start();
  const note = noteOf({ root, temporary: join(root, 'sub/tmp_x'), filePath: join(root, 'sub/file.ts') });
  mkdirSync(dirname(note.temporary));
  writeFileSync(note.temporary, 'media');
  await journal.open('k', note);
  const empty = join(root, 'sub/tmp_y');
  writeFileSync(empty, '');
  await journal.open('y', { ...note, temporary: empty });
  mkdirSync(join(folder, 'outside'));
  renameSync(join(root, 'sub'), join(folder, 'outside/sub'));
  symlinkSync(join(folder, 'outside/sub'), join(root, 'sub'));
  expect(await recover()).toEqual(['k.json', 'y.json']);
  expect(readdirSync(join(folder, 'outside/sub'))).toEqual(['tmp_x', 'tmp_y']);
});
