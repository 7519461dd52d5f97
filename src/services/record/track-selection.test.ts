import { describe, expect, test } from 'vitest';
import { audioTrack, dataTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { recordedTracks } from './track-selection.ts';

const H264 = videoTrack({ id: 1, publicName: 'high', variantName: 'v' });
const VP9 = videoTrack({ id: 2, publicName: 'vp9', variantName: 'v', codec: 'VP9' });
const JPEG = videoTrack({ id: 3, publicName: 'picture', variantName: 'p', codec: 'JPEG', config: null });
const AAC = audioTrack({ id: 4, variantName: 'a' });
const DATA = dataTrack(5);

const everything = { trackIds: [], variantNames: [] };
const named = (...variantNames: string[]) => ({ trackIds: [], variantNames });

describe('tracks of a recording', () => {
  test.each([
    ['all tracks', everything, [H264, AAC, DATA], [1, 4], ''],
    ['tracks with the name', named('a'), [H264, AAC, DATA], [4], ''],
    ['tracks with the id, and others with the name', { trackIds: [1], variantNames: ['a'] }, [H264, AAC, DATA], [1, 4], ''],
    ['suitable tracks beside unsuitable tracks of their kind', everything, [H264, VP9, AAC], [1, 4], 'vp9 (VP9)'],
    ['the audio of a stream with an image', everything, [JPEG, AAC], [4], 'picture (JPEG)'],
  ] as const)('are %s', (_what, wanted, tracks, ids, left) => {
    const selected = recordedTracks(wanted, 'ts', tracks);
    expect([selected.recorded.map(({ id }) => id), selected.left, selected.missing]).toEqual([ids, left, '']);
  });

  test('that are missing are named, and the others are recorded', () => {
    const wanted = { trackIds: [1, 77], variantNames: ['a', 'nope'] };
    const { recorded, missing } = recordedTracks(wanted, 'ts', [H264, AAC]);
    expect([recorded, missing]).toEqual([[H264, AAC], 'nope, id 77']);
  });

  test.each([
    ['a name that no track has', named('nope'), [H264], 'no track has the ids or names that were asked for'],
    ['an unsuitable named track beside a suitable track', named('v'), [H264, VP9], 'TS cannot hold vp9 (VP9)'],
    ['no suitable track', everything, [VP9, DATA], 'no track fits into TS: it cannot hold vp9 (VP9)'],
    ['data alone', everything, [DATA], 'no track has audio or video'],
    ['audio alone where there is video', everything, [VP9, AAC], 'TS cannot hold vp9 (VP9)'],
  ] as const)('are refused for %s', (_what, wanted, tracks, message) => {
    expect(() => recordedTracks(wanted, 'ts', tracks)).toThrow(new Error(message));
  });
});
