import { describe, expect, test } from 'vitest';
import { audioTrack, dataTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { ASC, HVCC } from '../../../test/fixtures/bitstreams.ts';
import type { Track } from '../../media/track.ts';
import { PushFailure } from './push-failure.ts';
import { leftOut, pushedTracks } from './track-selection.ts';

const H264 = videoTrack({ id: 1, variantName: 'high' });
const LOW = videoTrack({ id: 2, variantName: 'low' });
const H265 = videoTrack({ id: 0, codec: 'H265', config: Object.values(HVCC)[0] ?? null, variantName: 'hevc' });
const JPEG = videoTrack({ id: 9, codec: 'JPEG', config: null, variantName: 'picture' });
const VP9 = videoTrack({ id: 10, codec: 'VP9', variantName: 'vp9' });
const OPUS = audioTrack({ id: 3, codec: 'OPUS', variantName: 'opus' });
const AAC = audioTrack({ id: 4, config: ASC.plainStereo48, variantName: 'aac' });
const AAC2 = audioTrack({ id: 5, config: ASC.plainStereo48, variantName: 'other' });
const DATA = dataTrack(6);

const ids = (tracks: readonly Track[]): number[] => tracks.map(({ id }) => id);
const wish = (protocol: 'rtmp' | 'mpegts' | 'srt', variantNames: string[] = [], trackIds: number[] = []) => ({
  protocol,
  variantNames,
  trackIds,
});

describe('tracks of a push', () => {
  test.each([
    ['the first of each kind over RTMP', wish('rtmp'), [H264, LOW, AAC, AAC2, DATA], [1, 4]],
    ['the first by id, in whatever order they come', wish('rtmp'), [AAC2, LOW, AAC, H264], [1, 4]],
    ['tracks that every receiver supports, before others', wish('rtmp'), [H265, H264, OPUS, AAC], [1, 4]],
    ['tracks of Enhanced RTMP when there are no others', wish('rtmp'), [H265, OPUS], [0, 3]],
    ['never an image', wish('rtmp'), [JPEG, AAC], [4]],
    ['named ones', wish('rtmp', ['low', 'other']), [H264, LOW, AAC, AAC2, DATA], [2, 5]],
    ['tracks by id', wish('rtmp', [], [2, 4]), [H264, LOW, AAC], [2, 4]],
    ['every track that a transport stream carries', wish('mpegts'), [H264, H265, LOW, VP9, JPEG, OPUS, AAC, DATA], [1, 0, 2, 3, 4, 6]],
    ['named tracks with the data', wish('srt', ['low', 'aac']), [H264, LOW, AAC, AAC2, DATA], [2, 4, 6]],
  ] as const)('are %s', (_what, wanted, tracks, expected) => {
    expect(ids(pushedTracks(wanted, tracks))).toEqual(expected);
  });

  test.each([
    ['a name that no track has', wish('rtmp', ['high', 'nope']), [H264], "the stream has no track nope (track 1 'high': H264)"],
    ['an id that no track has', wish('srt', [], [7]), [H264], "the stream has no track id 7 (track 1 'high': H264)"],
    [
      'two videos over RTMP',
      wish('rtmp', ['high', 'low']),
      [H264, LOW],
      "RTMP carries one video track, but 2 are selected (track 1 'high': H264, track 2 'low': H264)",
    ],
    ['a codec RTMP has no name for', wish('rtmp', ['picture']), [JPEG, H264], "RTMP cannot carry track 9 'picture': JPEG"],
    ['a codec that a transport stream cannot hold', wish('mpegts', ['vp9']), [VP9, H264], "MPEG-TS cannot carry track 10 'vp9': VP9"],
    ['a stream without a suitable track', wish('mpegts'), [VP9, DATA], "mpegts can carry no track of the stream (track 10 'vp9': VP9)"],
    ['unsuitable video beside suitable audio', wish('srt'), [VP9, OPUS, DATA], "MPEG-TS cannot carry track 10 'vp9': VP9"],
    ['a stream of data alone', wish('rtmp'), [DATA], 'rtmp can carry no track of the stream (no audio, no video)'],
  ] as const)('fail for %s, which is named', (_what, wanted, tracks, message) => {
    expect(() => pushedTracks(wanted, tracks)).toThrow(new PushFailure('unsuitable', message));
  });

  test('names only the tracks that are left out because of their codec', () => {
    const tracks = [H264, LOW, VP9, JPEG, AAC, DATA];
    expect(leftOut(wish('srt'), tracks)).toBe("track 10 'vp9': VP9");
    expect(leftOut(wish('srt', ['low']), tracks)).toBe('');
    expect(leftOut(wish('rtmp'), tracks)).toBe('');
  });
});
