/** Recordings made through the API contain the sent media, whatever ends them. */
import { createWriteStream, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { readBoxes } from '../../src/containers/isobmff/box-reader.ts';
import { AcknowledgedPublisher } from '../harness/acknowledged-publisher.ts';
import { apiPath } from '../harness/api-client.ts';
import type { Child } from '../harness/child.ts';
import { killOnce } from '../harness/kill.ts';
import { until } from '../harness/poll.ts';
import { publish } from '../harness/publisher.ts';
import { pushes, startPush } from '../harness/push.ts';
import {
  decodedFrames,
  encodeSource,
  type FilePacket,
  type FilePackets,
  MAX_LOST,
  MAX_LOST_AT_REST,
  packetsOf,
  publishFile,
} from '../harness/recorded-file.ts';
import { finished, media, record, startRecorder, stopAtEnd, stopRecord, task, tasks, unfinished } from '../harness/recordings.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { freeBytes, smallDisk } from '../harness/small-disk.ts';
import { readFlv } from '../support/flv.ts';

const SECONDS = 8;
const FRAMES = SECONDS * 30;
/** Largest shift between audio and video in a recording, seconds. */
const MAX_SHIFT = 0.02;
/** Free space on the small disk: a few seconds of two recordings. */
const ROOM_BYTES = 300 * 1024;
/** Half a second of `encodeSource`, including tables. */
const MAX_FRAGMENT_BYTES = 64 * 1024;
const APP = apiPath.app('default', 'app');

let sourceFile: string;
let source: FilePackets;
beforeAll(() => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-source-'));
  sourceFile = path.join(folder, 'source.flv');
  encodeSource(sourceFile, SECONDS);
  source = packetsOf(sourceFile);
  return () => rmSync(folder, { recursive: true, force: true });
});

async function streamEnds(server: TestServer, encoder: Child): Promise<void> {
  await encoder.ended((SECONDS + 20) * 1000);
  await until('the stream is gone', async () => (await server.api.get<string[]>(`${APP}/streams`)).length === 0);
}

/** Shift of the packets in `recorded` relative to the source, seconds, and the indices of missing packets. */
function shifts(recorded: readonly FilePacket[], original: readonly FilePacket[]): { least: number; most: number; missing: number[] } {
  const times = new Map(recorded.map(({ hash, time }) => [hash, time]));
  const moved: number[] = [];
  const missing: number[] = [];
  for (const [index, { hash, time }] of original.entries()) {
    const at = times.get(hash);
    if (at === undefined) missing.push(index);
    else moved.push(at - time);
  }
  return { least: Math.min(...moved), most: Math.max(...moved), missing };
}

test('MP4 and MPEG-TS contain every sent frame, with audio and video aligned', async () => {
  const { server, root } = await startRecorder();
  expect(await record(server, 'whole', '/deep/whole.mp4')).toMatchObject({ state: 'ready' });
  await record(server, 'stream', '/whole.ts');
  await record(server, 'parts', '/part_${Sequence}.mp4', { interval: 3000 });
  const encoder = stopAtEnd(publishFile(sourceFile, server.rtmp('live')));
  await until('the recording runs', async () => ((await task(server, 'whole'))?.recordTime ?? 0) > 0);
  await streamEnds(server, encoder);
  await finished(root, ['deep/whole.mp4', 'whole.ts', 'part_2.mp4']);
  expect(await task(server, 'whole')).toMatchObject({ state: 'ready' });

  const whole = packetsOf(path.join(root, 'deep/whole.mp4'));
  const video = shifts(whole.video, source.video);
  const audio = shifts(whole.audio, source.audio);
  expect(video.missing).toEqual([]);
  expect(video.most - video.least).toBeLessThan(0.002);
  // Audio before the first frame is not recorded.
  expect(audio.missing.every((index) => index < 6)).toBe(true);
  expect(Math.abs(audio.least - video.least)).toBeLessThan(MAX_SHIFT);
  expect(Math.abs(audio.most - video.least)).toBeLessThan(MAX_SHIFT);

  const stream = packetsOf(path.join(root, 'whole.ts'));
  expect(stream.video).toHaveLength(FRAMES);
  const streamShift = (stream.video[0]?.time ?? 0) - (source.video[0]?.time ?? 0);
  const lastSound = (stream.audio.at(-1)?.time ?? 0) - (source.audio.at(-1)?.time ?? 0);
  expect(Math.abs(lastSound - streamShift)).toBeLessThan(MAX_SHIFT);
  expect(decodedFrames(path.join(root, 'whole.ts'))).toBe(FRAMES);

  const parts = ['part_0.mp4', 'part_1.mp4', 'part_2.mp4'].map((name) => packetsOf(path.join(root, name)));
  expect(parts.map((part) => part.video.length)).toEqual([90, 90, 60]);
  const sound = parts.flatMap((part) => part.audio.map(({ hash }) => hash));
  expect(source.audio.slice(6).filter(({ hash }) => !sound.includes(hash))).toEqual([]);
});

test('stopRecord ends a file at once, and SIGTERM finishes running recordings', async () => {
  const { server, root } = await startRecorder();
  stopAtEnd(publish({ url: server.rtmp('live'), width: 320, height: 180, videoKbps: 300 }));
  await until('the stream is there', async () => (await server.api.get<string[]>(`${APP}/streams`)).includes('live'));
  expect(await record(server, 'stopped', '/stopped.mp4')).toMatchObject({ state: 'recording' });
  await record(server, 'running', '/running.mp4');
  await until('three seconds are recorded', async () => ((await task(server, 'running'))?.recordTime ?? 0) > 3000);
  const last = await stopRecord(server, 'stopped');
  expect(last).toMatchObject({ state: 'stopping', outputFilePath: '/stopped.mp4' });
  expect(await task(server, 'stopped')).toBeUndefined();
  await until('the file has its name', () => existsSync(path.join(root, 'stopped.mp4')));
  expect(Math.abs(decodedFrames(path.join(root, 'stopped.mp4')) - ((last.recordTime ?? 0) * 30) / 1000)).toBeLessThanOrEqual(1);
  await server.stop();
  expect(unfinished(root)).toEqual([]);
  expect(decodedFrames(path.join(root, 'running.mp4'))).toBeGreaterThanOrEqual(89);
});

test('kill -9 costs at most the last fragment of the received media, in each of several kills', async () => {
  const { server, root } = await startRecorder();
  await record(server, 'mp4', '/mp4_${StartTime:hhmmss}.mp4');
  await record(server, 'ts', '/ts_${StartTime:hhmmss}.ts');
  await record(server, 'parts', '/parts_${Sequence}.mp4', { interval: 1000 });
  const tags = readFlv(sourceFile);
  for (let round = 1; round <= 3; round += 1) {
    // Most encoders want no acknowledgements, and their sockets rest.
    const rests = round === 2;
    const most = rests ? MAX_LOST_AT_REST : MAX_LOST;
    for (const { id, files, received, lost, log } of await killOnce({
      ...{ server, root, tags, ids: ['mp4', 'ts', 'parts'], rests },
      killAfter: 520 + round * 500,
    })) {
      const about = `round ${round}, ${id}: ${JSON.stringify({ files, received, lost })}\n${log}`;
      expect(lost.video, about).toBeLessThanOrEqual(most.video);
      expect(lost.audio, about).toBeLessThanOrEqual(most.audio);
      expect(received.video, about).toBeGreaterThan(25);
    }
    expect((await tasks(server)).map(({ state }) => state)).toEqual(['ready', 'ready', 'ready']);
  }
});

/** Types of the boxes of an MP4 file. */
function boxesOf(file: string): string[] {
  return readBoxes(readFileSync(file)).map(({ type }) => type);
}

test('a full disk with recordings and state fails its recordings with a reason, keeps all data that fits, and finishes the files later', async (context) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-full-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const state = smallDisk(path.join(folder, 'state'));
  // On a separate disk, mounted inside the full disk.
  if (state === null || smallDisk(path.join(state, 'recordings/other')) === null) {
    context.skip('a tmpfs cannot be mounted here');
    return;
  }
  const root = path.join(state, 'recordings');
  // In the state folder, as in the shipped configuration.
  const server = await startServer({ state, recordRoot: 'recordings' });
  onTestFinished(() => server.close());
  for (const extension of ['mp4', 'ts']) await record(server, `full-${extension}`, `/full.${extension}`);
  await record(server, 'other', '/other/other.mp4', { infoPath: '/other/info.xml' });
  writeFileSync(path.join(state, 'filler'), Buffer.alloc(freeBytes(state) - ROOM_BYTES));
  const encoder = stopAtEnd(await AcknowledgedPublisher.start(server.ports.rtmp, 'live', readFlv(sourceFile)));
  for (const id of ['full-mp4', 'full-ts']) {
    const failed = await until(`${id} fails`, async () => {
      const one = await task(server, id);
      return one?.state === 'error' ? one : null;
    });
    expect(failed.reason).toContain('ENOSPC');
  }
  // The disk has no room for another half second.
  expect(freeBytes(state)).toBeLessThan(MAX_FRAGMENT_BYTES);
  const atFailure = (await task(server, 'other'))?.recordTime ?? 0;
  await until('the other recording continues', async () => ((await task(server, 'other'))?.recordTime ?? 0) > atFailure + 1000);
  // The remaining space, less than a fragment, may be enough for a document, so it is filled.
  writeFileSync(path.join(state, 'rest-filler'), Buffer.alloc(freeBytes(state)));
  const refused = await server.api.call('POST', `${APP}:startRecord`, { id: 'more', stream: { name: 'live' }, filePath: '/more.ts' });
  expect(refused).toMatchObject({
    status: 500,
    body: { message: '[HTTP] Failed to save the recording task: [more]: no space is left on the disk (500)' },
  });
  // The unfinished file plays under any name: every frame from the first up to the last half second.
  await until('the files are closed', () => media(root).length + unfinished(root).length === 3);
  const written = [...media(root), ...unfinished(root)].filter((name) => !name.startsWith('other/'));
  expect(written).toHaveLength(2);
  for (const name of written) {
    const count = packetsOf(path.join(root, name)).video.length;
    expect(count, name).toBeGreaterThan(30);
    expect(decodedFrames(path.join(root, name)), name).toBe(count);
  }
  await server.kill();
  await encoder.gone;
  // A server starts without free space, and finishes the files when there is some.
  writeFileSync(path.join(state, 'more-filler'), Buffer.alloc(freeBytes(state)));
  await server.restart();
  expect((await tasks(server)).map(({ state: now }) => now)).toEqual(['ready', 'ready', 'ready']);
  expect(readdirSync(path.join(state, 'records/open')).length).toBeGreaterThan(0);
  for (const name of ['filler', 'rest-filler', 'more-filler']) rmSync(path.join(state, name));
  await until('no unfinished recording', () => unfinished(root).length === 0 && readdirSync(path.join(state, 'records/open')).length === 0);
  expect(media(root)).toEqual(['full.mp4', 'full.ts', 'other/other.mp4']);
  const hashes = source.video.map(({ hash }) => hash);
  const whole = packetsOf(path.join(root, 'full.mp4')).video.map(({ hash }) => hash);
  expect(hashes.filter((hash) => whole.includes(hash))).toHaveLength(whole.length);
  // Only frames after the last one, in decoding order, may be missing.
  expect(hashes.slice(0, whole.length - 1).filter((hash) => !whole.includes(hash))).toEqual([]);
  expect(whole.length).toBeGreaterThan(30);
  for (const name of ['full.mp4', 'other/other.mp4']) {
    expect(boxesOf(path.join(root, name)), name).toEqual(['ftyp', 'mdat', 'moov']);
  }
  for (const [info, names] of [
    ['info.xml', ['full.mp4', 'full.ts']],
    ['other/info.xml', ['other/other.mp4']],
  ] as const) {
    const told = [...readFileSync(path.join(root, info), 'utf8').matchAll(/CDATA\[(.*?)\]/g)].map(([, file]) => file);
    expect(told.toSorted(), info).toEqual(names.map((name) => path.join(root, name)));
  }
  const again = stopAtEnd(await AcknowledgedPublisher.start(server.ports.rtmp, 'live', readFlv(sourceFile)));
  for (const [id, name] of [
    ['full-mp4', 'full.mp4'],
    ['full-ts', 'full.ts'],
    ['other', 'other/other.mp4'],
  ] as const) {
    const running = await until(`${id} goes on`, async () => {
      const one = await task(server, id);
      return one?.state === 'recording' && (one.recordTime ?? 0) > 0 ? one : null;
    });
    expect(running.sequence, id).toBe(1);
    expect(running.totalRecordBytes, id).toBeGreaterThan(statSync(path.join(root, name)).size);
  }
  await again.stop();
});

/** Writes the data of a TCP push to `file`; returns the port. */
async function receive(file: string): Promise<number> {
  const receiver = createServer((socket) => socket.pipe(createWriteStream(file)));
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void receiver.close());
  return (receiver.address() as AddressInfo).port;
}

test('ten recordings, five pushes and two dumps of one stream do not disturb each other', async () => {
  const { server, root } = await startRecorder({ push: '' });
  const received = Array.from({ length: 5 }, (_, index) => path.join(root, `pushed_${index}`));
  for (const file of received) {
    const url = `tcp://127.0.0.1:${await receive(file)}`;
    await startPush(server.api, { id: path.basename(file), stream: 'live', protocol: 'mpegts', url });
  }
  const names = Array.from({ length: 10 }, (_, index) => `many_${index}.${index % 2 === 0 ? 'mp4' : 'ts'}`);
  for (const name of names) await record(server, name, `/${name}`);
  const encoder = stopAtEnd(publishFile(sourceFile, server.rtmp('live')));
  const stream = apiPath.stream('live');
  await until('the stream is there', async () => (await server.api.call('GET', stream)).status === 200);
  for (const id of ['d1', 'd2']) {
    const wanted = { id, outputStreamName: 'live', outputPath: path.join(root, id) };
    expect((await server.api.call('POST', `${stream}:startHlsDump`, wanted)).status).toBe(200);
  }
  await streamEnds(server, encoder);
  await finished(root, names);
  for (const name of names) expect(packetsOf(path.join(root, name)).video.length, name).toBe(FRAMES);
  await until('all pushes have ended', async () => (await pushes(server.api)).every(({ state }) => state === 'ready'));
  for (const file of received) {
    expect(decodedFrames(file), file).toBe(FRAMES);
    const { video, audio } = packetsOf(file);
    const moved = (video[0]?.time ?? 0) - (source.video[0]?.time ?? 0);
    expect(Math.abs((audio.at(-1)?.time ?? 0) - (source.audio.at(-1)?.time ?? 0) - moved), file).toBeLessThan(MAX_SHIFT);
  }
  for (const id of ['d1', 'd2']) expect(decodedFrames(path.join(root, id, 'llhls.m3u8')), id).toBe(FRAMES);
  // A push logs the number of dropped packets at its end: it must be 0.
  expect(server.log.replaceAll('"dropped":0,', '')).not.toMatch(/dropped|too slow/);
});

test('a path outside of the root and a used id are refused', async () => {
  const { server } = await startRecorder();
  const answer = await server.api.call('POST', `${APP}:startRecord`, { id: 'x', stream: { name: 'live' }, filePath: '/a/../../x.ts' });
  expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining('contains ".."') } });
  await record(server, 'x', '/x.ts');
  const again = await server.api.call('POST', `${APP}:startRecord`, { id: 'x', stream: { name: 'live' } });
  expect(again).toEqual({ status: 409, body: { message: '[HTTP] Duplicate ID already exists (409)', statusCode: 409 } });
});
