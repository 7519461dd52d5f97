import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CLOSED, encodeSample, RecordingBench } from '../../../test/support/recording-bench.ts';

const sample = encodeSample();
const bench = new RecordingBench();

describe('names of recordings', () => {
  it('two tasks with the same file name get two files, while they record and afterwards', async () => {
    const same = { filePath: '/same.mp4' };
    await bench.record('r/1', same);
    await bench.record('r_1', same);
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    await expect.poll(() => bench.files()).toEqual(['tmp_r_1_same.mp4', 'tmp_r_1_same_1.mp4']);
    attached.close(CLOSED);
    await bench.publisher.stop();
    expect(bench.files()).toEqual(['same.mp4', 'same_1.mp4']);
    for (const name of bench.files()) expect(bench.probe(name).video).toHaveLength(150);
  });

  it('neither replaces an existing file', async () => {
    mkdirSync(bench.root);
    writeFileSync(join(bench.root, 'tmp_r_x.mp4'), 'mine');
    writeFileSync(join(bench.root, 'x.mp4'), 'mine');
    await bench.record('r', { filePath: '/x.mp4' });
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    await expect.poll(() => bench.files()).toEqual(['tmp_r_x.mp4', 'tmp_r_x_1.mp4', 'x.mp4']);
    attached.close(CLOSED);
    await bench.publisher.stop();
    expect(bench.files()).toEqual(['tmp_r_x.mp4', 'x.mp4', 'x_1.mp4']);
    for (const name of ['tmp_r_x.mp4', 'x.mp4']) expect(readFileSync(join(bench.root, name), 'utf8')).toBe('mine');
    expect(bench.tasks()[0]).toMatchObject({ state: 'ready', outputFilePath: '/x_1.mp4' });
  });

  it('have no end time before it is known', async () => {
    const filePath = '/${Stream}_${EndTime:YYYYMMDD}.mp4';
    bench.settings = { rootPath: bench.root };
    const { attached } = bench.stream(sample.tracks);
    expect(await bench.record('e', { filePath })).toMatchObject({ outputFilePath: '/stream_${EndTime:YYYYMMDD}.mp4' });
    bench.send(attached, sample.packets);
    expect(await bench.stopRecord('e')).toMatchObject({ state: 'stopping', outputFilePath: '/stream_20260101.mp4' });
    await bench.publisher.stop();
    expect(bench.files()).toEqual(['stream_20260101.mp4']);
  });

  it('are absolute without a root, so that they can be given again', async () => {
    bench.settings = {};
    const recordings = join(bench.folder, 'state/recordings');
    const { attached } = bench.stream(sample.tracks);
    const { outputFilePath = '', outputInfoPath } = await bench.record('a');
    const id = /_default_app_stream_/.exec(outputFilePath)?.index ?? 0;
    const name = outputFilePath.slice(recordings.length + 1, id);
    expect([outputFilePath, outputInfoPath]).toEqual([
      `${recordings}/${name}_default_app_stream_20260101000000_\${EndTime:YYYYMMDDhhmmss}.ts`,
      `${recordings}/${name}_default_app_stream.xml`,
    ]);
    expect(await bench.record('b', { filePath: outputFilePath })).toMatchObject({ outputFilePath });
    bench.send(attached, sample.packets);
    attached.close(CLOSED);
    await bench.publisher.stop();
    const end = '20260101000006';
    expect(
      bench
        .tasks()
        .map((task) => task.outputFilePath?.slice(recordings.length + 1 + name.length))
        .sort(),
    ).toEqual([`_default_app_stream_20260101000000_${end}.ts`, `_default_app_stream_20260101000000_${end}_1.ts`]);
  });
});
