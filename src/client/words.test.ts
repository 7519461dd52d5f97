import { expect, test } from 'vitest';
import { ProviderKind, PublisherKind, SourceType } from '../core/kinds.ts';
import { protocolName, VIEWER_KINDS, viewersOf } from './words.ts';

test('protocols have their usual names for each word of the API', () => {
  const words = ['Rtmp', 'rtmp', 'RtspPull', 'rtspPull', 'MPEGTS', 'mpegts', 'Ovt', 'WebRTC', 'webrtc', 'llhls', 'hlsv3', 'hls', 'SRT'];
  expect(words.map(protocolName).join(' ')).toBe('RTMP RTMP RTSP RTSP MPEG-TS MPEG-TS OVT WebRTC WebRTC LL-HLS HLS HLS SRT');
  expect(VIEWER_KINDS.map(protocolName)).toEqual(['WebRTC', 'LL-HLS', 'HLS', 'SRT']);
});

test('files, pushes, edges and thumbnails do not count as viewers', () => {
  expect(viewersOf({ webrtc: 1, llhls: 2, hlsv3: 4, srt: 8, file: 16, push: 32, ovt: 64, thumbnail: 128 })).toBe(15);
  expect(viewersOf({})).toBe(0);
});

test('an unknown word is returned unchanged, and every word of the server has a name', () => {
  const words = [...Object.values(SourceType), ...Object.values(ProviderKind), ...Object.values(PublisherKind)];
  expect(new Set(words.filter((word) => protocolName(word) === word))).toEqual(
    new Set(['WebRTC', 'SRT', 'File', 'Scheduled', 'Multiplex', 'file', 'scheduled', 'multiplex', 'push']),
  );
  expect(['gopher', 'constructor', ''].map(protocolName)).toEqual(['gopher', 'constructor', '']);
});
