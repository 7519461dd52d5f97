import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { CLOSED, encodeSample, RecordingBench } from '../../../test/support/recording-bench.ts';
import { Urgency } from '../../core/urgency.ts';
import type { Packet } from '../../media/packet.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';
import { RecordTask } from './record-task.ts';

const sample = encodeSample();
const bench = new RecordingBench();

describe('a recording that cannot continue', () => {
  it.each([
    [{ variantNames: ['nope'] }, /no track has the ids or names/],
    [{ trackIds: [77] }, /no track has the ids or names/],
  ])('reports that no track fits: %j', async (more, reason) => {
    bench.stream(sample.tracks);
    expect(await bench.record('e', more)).toMatchObject({ state: 'error', reason: expect.stringMatching(reason) });
    expect(bench.tasks()).toHaveLength(1);
  });

  it('records without a missing track, and logs a warning', async () => {
    const { attached } = bench.stream(sample.tracks);
    expect(await bench.record('e', { variantNames: ['video', 'nope'] })).toMatchObject({ state: 'recording' });
    expect(bench.logger.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
      'the stream has no track nope: recorded without it',
    ]);
    bench.send(attached, sample.packets);
    attached.close(CLOSED);
    await bench.publisher.stop();
    expect(bench.streams('e_0.mp4').map(({ type }) => type)).toEqual(['video']);
  });

  it('is logged with the path of the file, not with that of the API', async () => {
    const { attached } = bench.stream(sample.tracks);
    await bench.record('e');
    bench.send(attached, sample.packets.slice(0, 20));
    expect(bench.logger.matching(`recording to ${join(bench.root, 'e_0.mp4')}`)).toHaveLength(1);
    attached.close(CLOSED);
    await bench.publisher.stop();
  });

  it('reports why its file cannot be created, leaves other recordings running, and retries with the next stream', async () => {
    mkdirSync(bench.root);
    writeFileSync(join(bench.root, 'file'), '');
    await bench.record('bad', { filePath: '/file/x.ts' });
    await bench.record('good');
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets.slice(0, 100));
    await expect.poll(() => bench.tasks('bad')[0]?.state).toBe('error');
    expect(bench.tasks('bad')[0]?.reason).toMatch(/ENOTDIR|EEXIST/);
    bench.send(attached, sample.packets.slice(100));
    attached.close(CLOSED);
    rmSync(join(bench.root, 'file'));
    expect(bench.tasks().map(({ state }) => state)).toEqual(['error', 'ready']);
    const again = bench.stream(sample.tracks);
    bench.send(again.attached, sample.packets);
    again.attached.close(CLOSED);
    await bench.publisher.stop();
    expect(bench.probe('good_0.mp4').video).toHaveLength(150);
    expect(bench.probe('file/x.ts').video).toHaveLength(150);
  });
});

it('fails with the reason for each stream while the settings refuse its path', async () => {
  await bench.record('x');
  bench.settings = { rootPath: bench.root, filePath: '/x.webm' };
  for (let round = 0; round < 2; round += 1) {
    const { attached } = bench.stream(sample.tracks);
    expect(bench.tasks()).toMatchObject([{ state: 'error', reason: expect.stringContaining('WebM') }]);
    // An unrecorded track is not waited for.
    expect(attached.urgency).toBe(Urgency.NONE);
    attached.close(CLOSED);
  }
});

describe('a recording whose name found no room', () => {
  it('gets it in the running server, and is counted once', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await bench.record('a');
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    await expect.poll(() => bench.files()).toHaveLength(1);
    const full = vi
      .spyOn(AllowedFolders.prototype, 'makeFolder')
      .mockRejectedValue(Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' }));
    attached.close(CLOSED);
    await expect.poll(() => bench.logger.lines.some(({ message }) => message.includes('it is tried again later: ENOSPC'))).toBe(true);
    full.mockRestore();
    expect(bench.files()[0]).toMatch(/^tmp_/);
    bench.stream(sample.tracks);
    const [waiting] = bench.tasks();
    expect(waiting?.totalRecordBytes).toBeGreaterThan(0);
    vi.advanceTimersByTime(5000);
    await expect.poll(() => bench.notes()).toEqual([]);
    expect(bench.files()).toEqual(['a_0.mp4']);
    const { totalRecordTime } = waiting ?? {};
    expect(bench.tasks()[0]).toMatchObject({ totalRecordBytes: bench.namedBytes(), totalRecordTime });
  });
});

describe('an internal fault in one recording', () => {
  it('at the end of its stream does not affect the files of other recordings', async () => {
    for (const id of ['bad', 'good']) await bench.record(id);
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    const ended = vi.spyOn(RecordTask.prototype, 'streamEnded').mockImplementationOnce(() => {
      throw new TypeError('made up');
    });
    onTestFinished(() => ended.mockRestore());
    attached.close(CLOSED);
    expect(bench.tasks().map(({ id, state }) => `${id} ${state}`)).toEqual(['bad error', 'good ready']);
    await bench.publisher.stop();
    // The other recording's file is kept as well.
    expect(bench.files().sort()).toEqual(['bad_0.mp4', 'good_0.mp4']);
  });

  it.each(['mp4', 'ts'])('ends only that recording, and logs the reason (%s)', async (extension) => {
    const [main] = sample.tracks.filter(({ type }) => type === 'video');
    if (main?.type !== 'video') throw new Error('no video');
    const unsupported = { ...main, id: 5, variantName: 'strange' };
    await bench.record('bad', { filePath: `/bad.${extension}`, trackIds: [5] });
    await bench.record('good', { variantNames: ['video'] });
    const { attached } = bench.stream([...sample.tracks, unsupported]);
    const before: Packet[] = sample.packets.filter(({ track }) => track === main).map((packet) => ({ ...packet, track: unsupported }));
    bench.send(attached, before.slice(0, 50));
    const broken: Packet = {
      ...{ track: unsupported, pts: 9e6, dts: 9e6, duration: 3000, keyframe: true },
      get data(): Uint8Array {
        throw new RangeError('section of 190 bytes does not fit one packet');
      },
    };
    attached.onPacket(broken);
    expect(bench.tasks().map(({ id, state }) => `${id} ${state}`)).toEqual(['bad error', 'good recording']);
    expect(bench.tasks('bad')[0]?.reason).toBe('section of 190 bytes does not fit one packet');
    expect(bench.logger.lines.some(({ level, fields }) => level === 'error' && fields['err'] instanceof RangeError)).toBe(true);
    bench.send(attached, sample.packets);
    attached.close(CLOSED);
    await bench.publisher.stop();
    expect(bench.probe('good_0.mp4').video).toHaveLength(150);
    expect(bench.probe(`bad.${extension}`).video).toHaveLength(50);
  });
});
