import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { CLOSED, encodeSample, RecordingBench } from '../../../test/support/recording-bench.ts';
import { DocumentFolder } from '../../state/document-folder.ts';

const sample = encodeSample();
const bench = new RecordingBench();

/** Two files have their names, the third is open, and the disk knows all that. */
async function thirdFileOpen(): Promise<void> {
  await expect.poll(() => bench.named().length).toBe(2);
  await expect.poll(() => bench.notes()).toHaveLength(1);
  const tasks = join(bench.folder, 'state/records/tasks');
  const stored = (): unknown => JSON.parse(readFileSync(join(tasks, readdirSync(tasks)[0] ?? ''), 'utf8'));
  await expect.poll(stored).toMatchObject({ value: { totals: { bytes: bench.namedBytes() } } });
}

describe('after a kill', () => {
  it.each(['mp4', 'ts'])('the next start finishes the interrupted file (%s)', async (extension) => {
    await bench.record('k', { filePath: `/k_\${EndTime:YYYY}.${extension}` });
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    // Nothing is closed: this publisher counts as killed, and its unwritten data is lost.
    await expect.poll(() => bench.files().length).toBe(1);
    expect(bench.files()[0]).toBe(`tmp_k_k.${extension}`);
    const dead = bench.publisher;
    await bench.restart();
    await bench.publisher.recovered;
    const [name = ''] = bench.files();
    expect(name).toMatch(new RegExp(`^k_20\\d\\d\\.${extension}$`));
    expect(bench.probe(name).video.length).toBeGreaterThan(90);
    expect(bench.notes()).toEqual([]);
    expect(readFileSync(join(bench.root, 'info.xml'), 'utf8')).toContain('<id>k</id>');
    expect(bench.tasks()[0]).toMatchObject({ id: 'k', state: 'ready' });
    await dead.stopRecord(bench.owner, 'k');
  });

  it('finishes a file that an earlier version left under a random name', async () => {
    await bench.record('old');
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    await expect.poll(() => bench.files()).toEqual(['tmp_old_old_0.mp4']);
    await expect.poll(() => statSync(join(bench.root, 'tmp_old_old_0.mp4')).size).toBeGreaterThan(10_000);
    const random = `tmp_${'aB3'.repeat(10)}xY`;
    const [note = ''] = bench.notes();
    const file = join(bench.folder, 'state/records/open', note);
    await expect.poll(() => readFileSync(file, 'utf8')).toContain('"inode"');
    writeFileSync(file, readFileSync(file, 'utf8').replace('tmp_old_old_0.mp4', random));
    renameSync(join(bench.root, 'tmp_old_old_0.mp4'), join(bench.root, random));
    const dead = bench.publisher;
    await bench.restart();
    await bench.publisher.recovered;
    expect(bench.files()).toEqual(['old_0.mp4']);
    expect(bench.probe('old_0.mp4').video.length).toBeGreaterThan(90);
    await dead.stopRecord(bench.owner, 'old');
  });

  it.each(['mp4', 'ts'])('totals and sequence numbers continue without a gap (%s)', async (extension) => {
    await bench.record('n', { interval: 2000, filePath: `/n_\${Sequence}.${extension}` });
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    await thirdFileOpen();
    const dead = bench.publisher;
    await bench.restart();
    await bench.publisher.recovered;
    const names = [0, 1, 2].map((number) => `n_${number}.${extension}`);
    expect(bench.files()).toEqual(names);
    const info = [...readFileSync(join(bench.root, 'info.xml'), 'utf8').matchAll(/<file>[\s\S]*?<\/file>/g)].map(([text]) => ({
      bytes: Number(/<recordBytes>(\d+)/.exec(text)?.[1]),
      time: Number(/<recordTime>(\d+)/.exec(text)?.[1]),
      last: /<lastSequence>(\w+)/.exec(text)?.[1],
    }));
    expect(info.map(({ last }) => last)).toEqual(['false', 'false', 'true']);
    expect(info.map(({ bytes }) => bytes)).toEqual(names.map((name) => statSync(join(bench.root, name)).size));
    const shown = bench.probe(names[2] ?? '');
    const frames = [...shown.video, ...shown.audio];
    expect(Math.abs((info[2]?.time ?? 0) - (Math.max(...frames) - Math.min(...frames)) * 1000)).toBeLessThan(80);
    bench.stream(sample.tracks);
    expect(bench.tasks()[0]).toMatchObject({
      state: 'recording',
      sequence: 3,
      outputFilePath: `/n_3.${extension}`,
      totalRecordBytes: info.reduce((sum, { bytes }) => sum + bytes, 0),
      totalRecordTime: info.reduce((sum, { time }) => sum + time, 0),
    });
    await dead.stopRecord(bench.owner, 'n');
  });

  it.each(['totals', 'notes'])('between a file getting its name and the %s being written, the file is counted once', async (what) => {
    await bench.record('n', { interval: 2000 });
    const { attached } = bench.stream(sample.tracks);
    // From here on the disk takes none of these: the next process finds its present content.
    const { save } = DocumentFolder.prototype;
    const refusal = () => Promise.reject(new Error('the process is dead'));
    const totals = vi.spyOn(DocumentFolder.prototype, 'save').mockImplementation(function (this: DocumentFolder, key, value) {
      return what === 'totals' ? refusal() : save.call(this, key, value);
    });
    const notes = vi.spyOn(DocumentFolder.prototype, 'remove').mockImplementation(refusal);
    bench.send(attached, sample.packets);
    attached.close(CLOSED);
    await bench.publisher.stop();
    totals.mockRestore();
    notes.mockRestore();
    expect(bench.notes()).toHaveLength(3);
    for (let round = 0; round < 2; round += 1) {
      await bench.restart();
      await bench.publisher.recovered;
    }
    expect(bench.notes()).toEqual([]);
    expect(bench.files()).toEqual(['n_0.mp4', 'n_1.mp4', 'n_2.mp4']);
    expect(readFileSync(join(bench.root, 'info.xml'), 'utf8').match(/<file>/g)).toHaveLength(3);
    bench.stream(sample.tracks);
    expect(bench.tasks()[0]).toMatchObject({ sequence: 3, totalRecordBytes: bench.namedBytes() });
  });

  it('a second kill, while the first is being cleared up, counts no file twice', async () => {
    await bench.record('n', { interval: 2000 });
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    await thirdFileOpen();
    const dead = bench.publisher;
    for (let kill = 0; kill < 3; kill += 1) {
      await bench.restart();
      await bench.publisher.recovered;
    }
    await bench.publisher.stop();
    await bench.restart();
    bench.stream(sample.tracks);
    expect(bench.files()).toHaveLength(3);
    expect(bench.tasks()[0]).toMatchObject({ sequence: 3, totalRecordBytes: bench.namedBytes() });
    await dead.stopRecord(bench.owner, 'n');
  });
});
