import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { videoTrack } from '../../../test/fakes/synthetic-media.ts';
import type { Packet } from '../../media/packet.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { Mp4Container } from './mp4-container.ts';
import { vodPlaylist } from './vod-playlist.ts';
import { layOut } from './vod-segments.ts';

async function laidOut(container: 'mp4' | 'ts', bytes: Uint8Array) {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-vod-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const name = path.join(folder, 'file');
  writeFileSync(name, bytes);
  const file = await open(name);
  try {
    return await layOut(file, container, bytes.length);
  } finally {
    await file.close();
  }
}

const box = (type: string, body: Uint8Array = new Uint8Array(0)): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(8 + body.length);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, body]);
};

test.each([
  ['nothing', Buffer.alloc(0)],
  ['text', Buffer.from('#!/bin/sh\nexit 0\n')],
  ['another film', Buffer.concat([box('ftyp'), box('moov'), box('mdat')])],
  ['a moov that is cut', Buffer.concat([box('ftyp'), box('free', Buffer.alloc(8)), box('moov', Buffer.alloc(9)).subarray(0, 12)])],
  [
    'an endless box',
    Buffer.concat([
      box('ftyp'),
      box('free', Buffer.alloc(8)),
      Buffer.from(`00000001${Buffer.from('moov').toString('hex')}ffffffffffffffff`, 'hex'),
    ]),
  ],
])('%s is refused as an MP4 recording', async (_what, bytes) => {
  await expect(laidOut('mp4', bytes)).rejects.toThrow(ProtocolError);
});

test.each([
  ['text', Buffer.alloc(188, 'x')],
  ['a packet out of step', Buffer.concat([Buffer.alloc(188, 0x47), Buffer.alloc(188)])],
])('%s is refused as an MPEG-TS recording', async (_what, bytes) => {
  await expect(laidOut('ts', bytes)).rejects.toThrow(ProtocolError);
});

test('pieces of four seconds are not merged because of rounded timestamps', async () => {
  const track = videoTrack();
  const frames = Array.from({ length: 24 }, (_, second): Packet => {
    // Every fourth second a keyframe is a millisecond late.
    const pts = second * 90_000 + (second % 8 === 4 ? 90 : 0);
    return { track, pts, dts: pts, duration: 90_000, keyframe: true, data: Buffer.alloc(100) };
  });
  const chunks: Buffer[] = [];
  const write = (some: readonly Uint8Array[]): void => void chunks.push(Buffer.concat(some));
  const container = new Mp4Container({ tracks: [track], first: frames[0] as Packet, startAt: 0, write });
  for (const frame of frames) container.push(frame);
  container.flush();
  const { segments } = await laidOut('mp4', Buffer.concat(chunks));
  expect(segments.map(({ duration }) => Math.round(duration))).toEqual([4, 4, 4, 4, 4, 4]);
});

const layout = {
  segments: [
    { offset: 100, length: 50, duration: 4 },
    { offset: 150, length: 20, duration: 2.5 },
  ],
  init: null,
};
const file = (startTime: number, uri: string) => ({ layout, startTime, uri, initUri: `${uri}/init` });

test('a playlist of two files has a discontinuity between them, and the wall clock of each', () => {
  expect(vodPlaylist([file(0, 'a'), file(10_000, 'b')])?.split('\n')).toEqual([
    '#EXTM3U',
    '#EXT-X-VERSION:4',
    '#EXT-X-TARGETDURATION:4',
    '#EXT-X-PLAYLIST-TYPE:VOD',
    '#EXT-X-MEDIA-SEQUENCE:0',
    '#EXT-X-INDEPENDENT-SEGMENTS',
    ...['#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:00.000Z', '#EXTINF:4.000,', '#EXT-X-BYTERANGE:50@100', 'a'],
    ...['#EXTINF:2.500,', '#EXT-X-BYTERANGE:20@150', 'a', '#EXT-X-DISCONTINUITY'],
    ...['#EXT-X-PROGRAM-DATE-TIME:1970-01-01T00:00:10.000Z', '#EXTINF:4.000,', '#EXT-X-BYTERANGE:50@100', 'b'],
    ...['#EXTINF:2.500,', '#EXT-X-BYTERANGE:20@150', 'b', '#EXT-X-ENDLIST', ''],
  ]);
});

test('pieces outside of the span are left out', () => {
  const text = vodPlaylist([file(0, 'a'), file(10_000, 'b')], 5000, 12_000) ?? '';
  expect([...text.matchAll(/@(\d+)\n(\w)$/gm)].map(([, offset, uri]) => `${uri}${offset}`)).toEqual(['a150', 'b100']);
  expect(vodPlaylist([file(0, 'a')], 7000)).toBeNull();
  expect(vodPlaylist([])).toBeNull();
});

test('an MP4 playlist names the init section of each file before its segments', () => {
  const text =
    vodPlaylist([
      {
        ...file(0, 'a'),
        layout: {
          ...layout,
          init: [
            { offset: 0, length: 24 },
            { offset: 40, length: 6 },
          ],
        },
      },
    ]) ?? '';
  expect(text).toContain('#EXT-X-VERSION:6\n');
  expect(text).toContain('#EXT-X-MAP:URI="a/init",BYTERANGE="30@0"\n');
});
