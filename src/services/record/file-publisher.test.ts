import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { dataTrack } from '../../../test/fakes/synthetic-media.ts';
import { encodeMedia } from '../../../test/support/encoded-media.ts';
import { CLOSED, encodeSample, RecordingBench, wish } from '../../../test/support/recording-bench.ts';
import { MAX_TASKS } from '../../core/tasks/task-registry.ts';
import { Urgency } from '../../core/urgency.ts';
import { AllowedFolders } from '../../util/allowed-folders.ts';

const sample = encodeSample();
const bench = new RecordingBench();

describe('a recording', () => {
  it.each(['mp4', 'ts'])('into %s holds every frame of a stream, and its figures are true', async (extension) => {
    await bench.record('a', { filePath: `/deep/\${Id}.${extension}`, metadata: 'm' });
    const { attached, stream } = bench.stream(sample.tracks);
    expect(stream.viewers).toBe(1);
    bench.send(attached, sample.packets);
    const running = bench.tasks()[0];
    expect(running).toMatchObject({
      state: 'recording',
      outputFilePath: `/deep/a.${extension}`,
      outputInfoPath: '/info.xml',
      isConfig: false,
    });
    expect(running?.recordTime).toBeGreaterThan(5900);
    expect(await bench.stopRecord('a')).toMatchObject({ state: 'stopping', recordTime: running?.recordTime });
    expect(bench.tasks()).toEqual([]);
    expect(stream.viewers).toBe(0);
    await bench.publisher.stop();
    const { video, audio } = bench.probe(`deep/a.${extension}`);
    expect(video).toHaveLength(150);
    expect(Math.abs((video[0] ?? 9) - (audio[0] ?? 0))).toBeLessThan(0.04);
    expect(readdirSync(join(bench.root, 'deep'))).toEqual([`a.${extension}`]);
    // The stream's output; the tables of a finished MP4 differ.
    const { size } = statSync(join(bench.root, `deep/a.${extension}`));
    expect(Math.abs(stream.bytes - size)).toBeLessThanOrEqual(extension === 'ts' ? 0 : 0.1 * size);
    expect(bench.notes()).toEqual([]);
    expect(readFileSync(join(bench.root, 'info.xml'), 'utf8')).toMatch(/<metadata>m<\/metadata>[\s\S]*<lastSequence>true</);
  });

  it.each([
    ['discontinuity', false],
    ['continuity', true],
  ] as const)('split by interval (%s) loses no frame between the files', async (segmentationRule, goesOn) => {
    await bench.record('s', { interval: 2000, segmentationRule });
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    expect(bench.tasks()[0]).toMatchObject({ sequence: 2, outputFilePath: '/s_2.mp4' });
    await bench.stopRecord('s');
    await bench.publisher.stop();
    expect(bench.files()).toEqual(['s_0.mp4', 's_1.mp4', 's_2.mp4']);
    const parts = bench.files().map((name) => bench.probe(name));
    expect(parts.map(({ video }) => video.length)).toEqual([50, 50, 50]);
    const whole = sample.packets.filter(({ track }) => track.type === 'audio').length;
    const audio = parts.reduce((sum, part) => sum + part.audio.length, 0);
    // Frames before the first frame are not recorded.
    expect(audio).toBeGreaterThanOrEqual(whole - 6);
    expect(audio).toBeLessThanOrEqual(whole);
    for (const [index, { video, audio: sound }] of parts.entries()) {
      const from = goesOn ? index * 2 : 0;
      expect(video[0]).toBeCloseTo(from, 2);
      expect(Math.abs((sound[0] ?? 9) - from)).toBeLessThan(0.03);
      expect(sound.at(-1)).toBeGreaterThan(from + 1.93);
    }
    const info = readFileSync(join(bench.root, 'info.xml'), 'utf8');
    expect([...info.matchAll(/<lastSequence>(\w+)</g)].map(([, last]) => last)).toEqual(['false', 'false', 'true']);
  });

  it.each(['mp4', 'ts'])('that is split into %s is listed at the times of its frames, even when they arrive late', async (extension) => {
    await bench.record('s', { filePath: `/\${Id}-\${Sequence}.${extension}`, interval: 2000 });
    const { attached, stream } = bench.stream(sample.tracks);
    stream.startedAt = bench.clock.now() - 60_000;
    // All of it in one moment, as behind an encoder that begins late.
    bench.send(attached, sample.packets);
    await bench.stopRecord('s');
    await bench.publisher.stop();
    const all = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY, stream: '' };
    const begins = bench.publisher.library.find(bench.owner, all).map(({ startTime }) => startTime - stream.startedAt);
    const first = sample.packets.find(({ track }) => track.type === 'video')?.pts ?? Number.NaN;
    expect(begins.map((ms) => ms - first / 90)).toEqual([0, 2000, 4000]);
  });

  it('that is split writes the end of the old file to disk while audio for it is still awaited', async () => {
    await bench.record('s', { interval: 2000 });
    const { attached } = bench.stream(sample.tracks);
    const cut = sample.packets.findIndex(({ track, keyframe, pts }) => track.type === 'video' && keyframe && pts >= 2 * 90_000);
    // Audio is a second late, so that the old file has to wait for it.
    const soon = sample.packets.slice(0, cut + 1).filter(({ track, pts }) => track.type === 'video' || pts < 48_000);
    bench.send(attached, soon);
    const videoOf = (name: string): number => bench.streams(name).find(({ type }) => type === 'video')?.packets ?? 0;
    await expect.poll(() => readdirSync(bench.root).filter((name) => statSync(join(bench.root, name)).size > 0)).toHaveLength(2);
    expect(readdirSync(bench.root).every((name) => name.startsWith('tmp_'))).toBe(true);
    await expect.poll(() => Math.max(...readdirSync(bench.root).map(videoOf))).toBe(50);
    attached.close(CLOSED);
  });

  it('with two video tracks whose keyframes differ loses no frame of either at a split', async () => {
    const [main] = sample.tracks.filter(({ type }) => type === 'video');
    if (main?.type !== 'video') throw new Error('no video');
    const second = { ...main, id: 5, variantName: 'other' };
    // The same frames 0.4 s later: their keyframes come 0.4 s after those of the first.
    const late = sample.packets
      .filter(({ track }) => track === main)
      .map((packet) => ({ ...packet, track: second, pts: packet.pts + 36_000, dts: packet.dts + 36_000 }));
    const packets = [...sample.packets, ...late].sort((a, b) => a.dts / a.track.timebase.den - b.dts / b.track.timebase.den);
    await bench.record('two', { interval: 2000 });
    const { attached } = bench.stream([...sample.tracks, second]);
    bench.send(attached, packets);
    await bench.stopRecord('two');
    await bench.publisher.stop();
    const videos = bench.files().map((name) => bench.streams(name).filter(({ type }) => type === 'video'));
    expect(videos.map((streams) => streams.map(({ packets: count }) => count))).toEqual([
      [50, 50],
      [50, 50],
      [50, 50],
    ]);
  });

  it('split by schedule begins a file at the first keyframe after the moment', async () => {
    // The keyframe shown at 3 s is decoded, and so arrives, a little before the third second.
    await bench.record('c', { schedule: '*/3 * *' });
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    await bench.stopRecord('c');
    await bench.publisher.stop();
    expect(bench.files().map((name) => bench.probe(name).video.length)).toEqual([100, 50]);
  });

  it('waits for its stream, returns to ready at its end, and continues with the next stream', async () => {
    expect(await bench.record('r')).toMatchObject({ state: 'ready' });
    for (const run of [0, 1]) {
      const { attached } = bench.stream(sample.tracks);
      expect(bench.tasks()[0]).toMatchObject({ state: 'recording', outputFilePath: `/r_${run}.mp4` });
      bench.send(attached, sample.packets);
      attached.close(CLOSED);
      attached.close(CLOSED);
      expect(bench.tasks()[0]).toMatchObject({ state: 'ready' });
    }
    await bench.publisher.stop();
    expect(bench.files()).toEqual(['r_0.mp4', 'r_1.mp4']);
    expect(bench.probe('r_1.mp4').video).toHaveLength(150);
  });

  it('has the urgency of a batch, and does not wake its stream', async () => {
    const { attached, stream } = bench.stream(sample.tracks);
    expect(attached.urgency).toBe(Urgency.NONE);
    await bench.record('a');
    expect(bench.tasks('a')[0]).toMatchObject({ state: 'recording' });
    expect([attached.urgency, stream.comings]).toEqual([Urgency.BATCHED, 0]);
  });

  it('contains only the requested tracks', async () => {
    await bench.record('v', { variantNames: ['video'] });
    await bench.record('n', { trackIds: [1], filePath: '/n.ts' });
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    await bench.stopRecord('v');
    await bench.stopRecord('n');
    await bench.publisher.stop();
    expect(bench.probe('v_0.mp4')).toMatchObject({ audio: [] });
    const { video, audio } = bench.probe('n.ts');
    expect([video.length, audio.length > 270]).toEqual([0, true]);
  });

  it('never replaces a file', async () => {
    mkdirSync(bench.root);
    writeFileSync(join(bench.root, 'x.mp4'), 'precious');
    for (const id of ['1', '2']) await bench.record(id, { filePath: '/x.mp4' });
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    attached.close(CLOSED);
    await bench.publisher.stop();
    expect(bench.files()).toEqual(['x.mp4', 'x_1.mp4', 'x_2.mp4']);
    expect(readFileSync(join(bench.root, 'x.mp4'), 'utf8')).toBe('precious');
    expect(bench.probe('x_2.mp4').video).toHaveLength(150);
  });

  it('continues in a new file when the parameters of a track change', async () => {
    const other = encodeMedia({ seconds: 2, video: 'libx264', audio: 'aac', rate: 25, gop: 25, size: '160x90' });
    await bench.record('p');
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    const moved = other.packets.map((packet) => ({
      ...packet,
      dts: packet.dts + 6 * packet.track.timebase.den,
      pts: packet.pts + 6 * packet.track.timebase.den,
    }));
    attached.onTracks([...other.tracks, dataTrack(9)]);
    bench.send(attached, moved);
    await bench.stopRecord('p');
    await bench.publisher.stop();
    expect(bench.files().map((name) => bench.probe(name).video.length)).toEqual([150, 50]);
  });
});

describe('paths', () => {
  it.each(['/../x.ts', 'a/../../x.ts', '/a\0.ts', '/${Id}/..'])('%j is refused', async (filePath) => {
    await expect(bench.record('x', { filePath })).rejects.toMatchObject({ name: 'PathRefused' });
    await expect(bench.record('x', { infoPath: filePath })).rejects.toMatchObject({ name: 'PathRefused' });
    expect(bench.tasks()).toEqual([]);
  });

  it.each(['/x.webm', '/${Id}.WebM'])('%s is refused, for WebM is not written', async (filePath) => {
    await expect(bench.record('x', { filePath })).rejects.toThrow('asks for WebM, which is not written: use .mp4 or .ts');
    bench.settings = { rootPath: bench.root, filePath };
    await expect(bench.record('x')).rejects.toMatchObject({ name: 'PathRefused' });
    expect(bench.tasks()).toEqual([]);
  });

  it('may not leave the root through a link, even through a link made later', async () => {
    mkdirSync(bench.root);
    mkdirSync(join(bench.folder, 'outside'));
    symlinkSync(join(bench.folder, 'outside'), join(bench.root, 'link'));
    await expect(bench.record('x', { filePath: '/link/x.ts' })).rejects.toThrow(/symbolic link/);
    await bench.record('late', { filePath: '/late/x.ts' });
    symlinkSync(join(bench.folder, 'outside'), join(bench.root, 'late'));
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    await expect.poll(() => bench.tasks()[0]?.reason).toMatch(/symbolic link/);
    expect(readdirSync(join(bench.folder, 'outside'))).toEqual([]);
  });

  it('have the container of the name that macros make', async () => {
    await bench.record('x.MP4', { filePath: '/${Id}' });
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    attached.close(CLOSED);
    await bench.publisher.stop();
    expect(bench.files()).toEqual(['x.MP4']);
    expect(readFileSync(join(bench.root, 'x.MP4')).toString('latin1', 4, 8)).toBe('ftyp');
    expect(bench.probe('x.MP4').video).toHaveLength(150);
    expect(bench.notes()).toEqual([]);
  });

  it.each([
    ['..', { filePath: '/${Id}/x.mp4' }, 'contains ".."'],
    ['..', { infoPath: '/${Id}/x.xml' }, 'contains ".."'],
    ['x.webm', { filePath: '/${Id}' }, 'WebM'],
  ])('are checked again after %j has replaced the macro in %j', async (id, paths, reason) => {
    bench.settings = {};
    await bench.record(id, paths);
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    expect(bench.tasks()).toMatchObject([{ state: 'error', reason: expect.stringContaining(reason) }]);
    attached.close(CLOSED);
    await bench.publisher.stop();
    expect(bench.notes()).toEqual([]);
    expect(readdirSync(join(bench.folder, 'state'))).toEqual(['records']);
  });

  it('must lie in the allowed folders, and the refusal names the setting', async () => {
    await bench.restart(new AllowedFolders([join(bench.folder, 'state/recordings')], 'Server/Storage/AllowedRoots'));
    await expect(bench.record('x')).rejects.toThrow('Server/Storage/AllowedRoots');
    bench.settings = {};
    await expect(bench.record('x', { filePath: '/etc/x.ts' })).rejects.toThrow('Server/Storage/AllowedRoots');
    await bench.record('x');
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    attached.close(CLOSED);
    await bench.publisher.stop();
    const names = readdirSync(join(bench.folder, 'state/recordings'));
    expect(names.some((name) => /^\w{16}_default_app_stream_\d{14}_\d{14}\.ts$/.test(name))).toBe(true);
  });
});

describe('tasks', () => {
  it('have separate ids in each application, and a limited number', async () => {
    await bench.record('a');
    await expect(bench.record('a')).rejects.toMatchObject({ code: 'duplicate' });
    await bench.publisher.startRecord({ ...bench.owner, app: 'other' }, wish('a'));
    const many = Array.from({ length: MAX_TASKS - 1 }, (_, index) => bench.record(`m${index}`));
    await Promise.all(many);
    await expect(bench.record('more')).rejects.toMatchObject({ code: 'too-many' });
    expect(await bench.stopRecord('nope')).toBeNull();
  });

  it('survive a restart with their totals, unless they were stopped or their application was deleted', async () => {
    await bench.record('b', { interval: 5000, metadata: 'kept' });
    await bench.record('a');
    await bench.record('gone');
    await bench.publisher.startRecord({ ...bench.owner, app: 'deleted' }, wish('a'));
    const { attached } = bench.stream(sample.tracks);
    bench.send(attached, sample.packets);
    attached.close(CLOSED);
    await bench.stopRecord('gone');
    bench.publisher.forgetApplication('default', 'deleted');
    const before = bench.tasks();
    await bench.publisher.stop();
    await bench.restart();
    expect(bench.tasks()).toMatchObject(before.map(({ id, createdTime }) => ({ id, createdTime, state: 'ready' })));
    expect(bench.publisher.records({ ...bench.owner, app: 'deleted' })).toEqual([]);
    expect(bench.tasks('b')[0]).toMatchObject({ interval: 5000, metadata: 'kept' });
    bench.stream(sample.tracks);
    expect(bench.tasks('b')[0]).toMatchObject({ sequence: 2, outputFilePath: '/b_2.mp4' });
  });

  it('that cannot be saved are refused', async () => {
    rmSync(join(bench.folder, 'state'), { recursive: true });
    await expect(bench.record('a')).rejects.toMatchObject({ code: 'not-durable' });
    expect(bench.tasks()).toEqual([]);
  });

  it('are made by a map file for the streams it names and vanish with them', async () => {
    const map = join(bench.folder, 'map.xml');
    const entry = (name: string, more = '') =>
      `<Record><Enable>true</Enable><StreamName>${name}</StreamName><FilePath>/${'${Stream}'}_${'${SourceStream}'}.ts</FilePath>${more}</Record>`;
    writeFileSync(map, `<RecordInfo>${entry('str*')}${entry('other')}<Record><StreamName>*</StreamName></Record></RecordInfo>`);
    bench.settings = { ...bench.settings, streamMap: { enable: true, path: map } };
    const { attached } = bench.stream(sample.tracks);
    // The file has not been read yet.
    bench.send(attached, sample.packets.slice(0, 100));
    await expect.poll(() => bench.tasks()).toHaveLength(1);
    expect(bench.tasks()[0]).toMatchObject({ isConfig: true, state: 'recording', id: expect.stringMatching(/^\w{16}$/) });
    bench.send(attached, sample.packets.slice(100));
    attached.close(CLOSED);
    expect(bench.tasks()).toEqual([]);
    await bench.publisher.stop();
    expect(bench.files()).toEqual(['stream_source.ts']);
    expect(bench.probe('stream_source.ts').video).toHaveLength(150);
    const late = bench.stream(sample.tracks).attached;
    for (let n = 0; n < 10; n += 1) bench.send(late, sample.packets);
    const missed = 10 * sample.packets.length;
    await bench.logger.line(`record map was read late: its tasks begin without ${missed} packets`);
    writeFileSync(map, `<RecordInfo>${entry('s', '<SegmentInterval>x</SegmentInterval>')}</RecordInfo>`);
    bench.stream(sample.tracks);
    await expect.poll(() => bench.logger.lines.some(({ message }) => message.includes('Record/SegmentInterval must be'))).toBe(true);
  });
});

it('shows the pending writes of a recording in a queue, until they finish', async () => {
  await bench.record('r');
  const { attached } = bench.stream(sample.tracks);
  expect(bench.queues.statuses()).toEqual([]);
  bench.send(attached, sample.packets);
  const [status] = bench.queues.statuses();
  expect(status).toMatchObject({
    ...{ urn: 'mngq:v=default#app:s=/stream:p=pub:r=streamworker_[file]_r', type: 'KiB', threshold: 16_384, drop: 0 },
  });
  expect(status?.peak).toBeGreaterThan(0);
  await bench.stopRecord('r');
  await expect.poll(() => bench.queues.statuses()).toEqual([]);
});
