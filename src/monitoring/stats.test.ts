import { Value } from '@sinclair/typebox/value';
import { expect, test } from 'vitest';
import { fakeStream, fakeTraffic } from '../../test/fakes/stream-figures.ts';
import { formatTimestamp } from '../util/timestamp.ts';
import { queueStatuses } from './queues.ts';
import { statisticsV1 } from './stats-v1.ts';
import { statisticsV2 } from './stats-v2.ts';
import { streamInformation } from './stream-info.ts';

const local = (ms: number) => formatTimestamp(Date.UTC(2026, 1, 1, 10, 0, 0, ms));

test('version 1 statistics name every counter once', () => {
  expect(statisticsV1(fakeTraffic())).toEqual({
    avgThroughputIn: 103,
    avgThroughputOut: 203,
    connections: { file: 0, hlsv3: 1, llhls: 2, ovt: 3, push: 4, srt: 5, thumbnail: 6, webrtc: 7 },
    createdTime: local(0),
    lastRecvTime: local(100),
    lastSentTime: local(200),
    lastThroughputIn: 102,
    lastThroughputOut: 202,
    lastUpdatedTime: local(999),
    maxThroughputIn: 104,
    maxThroughputOut: 204,
    maxTotalConnectionTime: local(500),
    maxTotalConnections: 30,
    totalBytesIn: 101,
    totalBytesOut: 201,
    totalConnections: 28,
  });
});

test('version 2 statistics divide the same counters by direction', () => {
  expect(statisticsV2(fakeTraffic())).toEqual({
    createdTime: local(0),
    lastUpdatedTime: local(999),
    providers: {
      avgThroughputIn: 103,
      connections: { file: 0, mpegts: 1, multiplex: 2, ovt: 3, rtmp: 4, rtsp: 5, rtsppull: 6, scheduled: 7, srt: 8, webrtc: 9 },
      lastRecvTime: local(100),
      lastThroughputIn: 102,
      maxThroughputIn: 104,
      totalBytesIn: 101,
    },
    publishers: {
      avgThroughputOut: 203,
      connections: { file: 0, hlsv3: 1, llhls: 2, ovt: 3, push: 4, srt: 5, thumbnail: 6, webrtc: 7 },
      lastSentTime: local(200),
      lastThroughputOut: 202,
      maxThroughputOut: 204,
      maxTotalConnectionTime: local(500),
      maxTotalConnections: 30,
      totalBytesOut: 201,
      totalConnections: 28,
    },
  });
});

test('timestamps are local, with milliseconds and a numeric offset', () => {
  const text = formatTimestamp(Date.UTC(2026, 1, 1, 10, 0, 0, 7));
  expect(text).toMatch(/^2026-0[12]-\d\dT\d\d:\d\d:00\.007[+-]\d\d:\d\d$/);
  expect(new Date(text).getTime()).toBe(Date.UTC(2026, 1, 1, 10, 0, 0, 7));
});

test('queues are sorted by id', () => {
  const status = (id: number) => ({
    id,
    urn: '',
    type: '',
    size: 0,
    peak: 0,
    threshold: 0,
    drop: 0,
    inputPerSecond: 0,
    outputPerSecond: 0,
    avgWaitingTime: 0,
  });
  expect(queueStatuses([status(3), status(1), status(2)]).map(({ id }) => id)).toEqual([1, 2, 3]);
});

test('stream information lists tracks by id and playlists by file name', () => {
  const info = streamInformation(fakeStream('s'), { masked: false });
  expect(info.input.tracks.map(({ id, name, type }) => [id, name, type])).toEqual([
    [0, 'Video', 'Video'],
    [1, 'Audio', 'Audio'],
    [2, 'Data', 'Data'],
  ]);
  expect(info.outputs[0]?.tracks.map(({ name }) => name)).toEqual(['bypass_video', 'aac', 'Data']);
  expect(info.outputs[0]?.playlists.map(({ fileName }) => fileName)).toEqual(['abr', 'llhls']);
});

test('bitrates are strings: the announced bitrate, or else the measured one', () => {
  const { tracks } = streamInformation(fakeStream('s'), { masked: false }).input;
  expect(Value.Clone(tracks[0])).toMatchObject({
    video: { bitrate: '2500000', bitrateConf: '2500000', bitrateAvg: '2391000', bitrateLatest: '2410000' },
  });
  expect(Value.Clone(tracks[1])).toMatchObject({ audio: { bitrate: '2391000', bitrateConf: '0' } });
});

test('members that a rendition or a stream lacks are left out', () => {
  const stream = { ...fakeStream('s'), sourceUrl: '' };
  const info = streamInformation(stream, { masked: false });
  expect(info.input).not.toHaveProperty('sourceUrl');
  expect(info.outputs[0]?.playlists[0]?.renditions[0]).toEqual({ name: 'default', videoVariantName: 'bypass_video' });
});

test('warnings of publishers are listed with the output, and left out without any', () => {
  const [output] = [...fakeStream('s').outputs];
  if (output === undefined) throw new Error('no output');
  const outputs = [output, { ...output, warnings: ['no audio'] }];
  const info = streamInformation({ ...fakeStream('s'), outputs }, { masked: false });
  expect(info.outputs.map((one) => ('warnings' in one ? one.warnings : null))).toEqual([null, ['no audio']]);
});

test('the address of the source can be hidden', () => {
  const { input } = streamInformation(fakeStream('s'), { masked: true });
  expect(input).toMatchObject({ sourceUrl: 'TCP://xxx.xxx.xxx.xxx:xxx' });
});
