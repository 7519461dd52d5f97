/** The API's figures match those of the encoder and the viewers. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { apiPath, type Statistics, type StreamInformation, type TrackInformation } from '../harness/api-client.ts';
import { until } from '../harness/poll.ts';
import { type FfmpegPublisher, publish } from '../harness/publisher.ts';
import { startServer, type TestServer } from '../harness/server.ts';
import { follow, openSession } from '../harness/viewer.ts';

const FPS = 25;
const GOP = 50;
const TOLERANCE = 0.1;

let server: TestServer;
let encoder: FfmpegPublisher;

beforeAll(async () => {
  server = await startServer({ segmentDuration: 2 });
  encoder = publish({ url: server.rtmp('measured'), fps: FPS, gop: GOP, videoKbps: 1200 });
  await encoder.sent(10 * FPS, 30_000);
});

afterAll(async () => {
  await encoder?.stop();
  await server?.close();
});

function expectNear(what: string, value: number, truth: number): void {
  expect(value, `${what}: ${value}, should be about ${truth}`).toBeGreaterThan(truth * (1 - TOLERANCE));
  expect(value, `${what}: ${value}, should be about ${truth}`).toBeLessThan(truth * (1 + TOLERANCE));
}

function videoOf(tracks: readonly TrackInformation[]): NonNullable<TrackInformation['video']> {
  const video = tracks.find((track) => track.type === 'Video')?.video;
  if (video === undefined) throw new Error(`no video track in ${JSON.stringify(tracks)}`);
  return video;
}

test('stream information has the frame rate, GOP and bitrate that ffmpeg sends', async () => {
  const { input } = await server.api.get<StreamInformation>(apiPath.stream('measured'));
  expect(input.sourceType.toLowerCase()).toBe('rtmp');
  const video = videoOf(input.tracks);
  const audio = input.tracks.find((track) => track.type === 'Audio')?.audio;
  expect(video).toMatchObject({ codec: 'H264', width: 640, height: 360, hasBframes: false });
  expect(audio).toMatchObject({ codec: 'AAC', samplerate: 48_000, channel: 2 });
  expectNear('framerateLatest', video.framerateLatest, FPS);
  expectNear('framerateAvg', video.framerateAvg, FPS);
  expectNear('keyFrameIntervalLatest', video.keyFrameIntervalLatest, GOP);
  expectNear('keyFrameIntervalAvg', video.keyFrameIntervalAvg, GOP);

  const sent = encoder.progress;
  const truth = ((sent?.bytes ?? 0) * 8) / (sent?.seconds ?? 1);
  expectNear('bitrateAvg of both tracks', Number(video.bitrateAvg) + Number(audio?.bitrateAvg), truth);
  expectNear('bitrateLatest of both tracks', Number(video.bitrateLatest) + Number(audio?.bitrateLatest), truth);
});

test('the outbound stream carries the same tracks', async () => {
  const { input, outputs } = await server.api.get<StreamInformation>(apiPath.stream('measured'));
  const output = outputs.find((one) => one.name === 'measured');
  expect(videoOf(output?.tracks ?? [])).toMatchObject({ codec: 'H264', width: 640, height: 360 });
  expect(output?.tracks.map((track) => track.type).sort()).toEqual(input.tracks.map((track) => track.type).sort());
});

test('received bytes match the bytes that ffmpeg wrote', async () => {
  const { totalBytesIn } = await server.api.get<Statistics>(apiPath.stats('measured'));
  expectNear('totalBytesIn', totalBytesIn, encoder.progress?.bytes ?? 0);
});

test('viewers and sent bytes are counted, and viewers who left are counted out', async () => {
  const before = await server.api.get<Statistics>(apiPath.stats('measured'));
  const viewers = await Promise.all([1, 2, 3].map(() => openSession(server.http('measured', 'llhls.m3u8'))));
  const watching = new AbortController();
  const loops = viewers.map(({ video }) => follow(video, watching.signal));
  try {
    await until('three viewers in the statistics', async () => {
      const now = await server.api.get<Statistics>(apiPath.stats('measured'));
      return now.connections.llhls - before.connections.llhls === 3 && now.totalBytesOut > before.totalBytesOut;
    });
  } finally {
    watching.abort();
    await Promise.all(loops);
  }
  await until(
    'viewers to be counted out',
    async () => (await server.api.get<Statistics>(apiPath.stats('measured'))).connections.llhls === before.connections.llhls,
    { deadlineMs: 60_000, everyMs: 500 },
  );
});
