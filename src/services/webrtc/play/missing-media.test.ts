import { expect, test } from 'vitest';
import { audioTrack, videoTrack } from '../../../../test/fakes/synthetic-media.ts';
import type { Playlist } from '../../../core/playlist.ts';
import type { Track } from '../../../media/track.ts';
import type { MediaKind } from './codec-plan.ts';
import { missingMedia } from './missing-media.ts';

const H264 = videoTrack({ variantName: 'high' });
const HEVC = videoTrack({ variantName: 'high', codec: 'H265' });
const VP9 = videoTrack({ variantName: 'low', codec: 'VP9' });
const AAC = audioTrack({ variantName: 'aac' });
const OPUS = audioTrack({ variantName: 'opus', codec: 'OPUS' });
const BOTH: readonly MediaKind[] = ['video', 'audio'];

function rendition(name: string, videoVariantName: string, audioVariantName: string): Playlist['renditions'][number] {
  return { name, videoVariantName, audioVariantName, videoIndexHint: -1, audioIndexHint: -1 };
}

const options = { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: false, enableSubtitles: true };
const OWN: Playlist = { name: 'd', fileName: 'd', options, renditions: [rendition('default', 'high', '')], publisherDefault: true };
const LADDER: Playlist = {
  name: 'l',
  fileName: 'l',
  options,
  renditions: [rendition('hd', 'high', 'opus'), rendition('sd', 'low', 'opus')],
};
const SILENT: Playlist = { name: 's', fileName: 's', options, renditions: [rendition('hd', 'high', '')] };

const NO_AUDIO = 'viewers over WebRTC get no audio: it is in AAC, which WebRTC does not carry. Let an output profile make OPUS of it';
const NO_VIDEO = 'a viewer over WebRTC gets no video: its player supports none of H265. Let an output profile make H264 of it';
const SOME = "viewers over WebRTC do not get 'sd': the video is in VP9, which WebRTC does not carry. Let an output profile make H264 of it";
const HALF: Playlist = { ...LADDER, renditions: [rendition('hd', 'high', 'aac'), rendition('sd', 'low', 'opus')] };
const DOUBLE: Playlist = { ...LADDER, renditions: [rendition('hd aac', 'high', 'aac'), rendition('hd', 'high', 'opus')] };
const NO_HD =
  "viewers over WebRTC do not get 'hd': the audio is in AAC, which WebRTC does not carry. Let an output profile make OPUS of it";
const LOW = videoTrack({ variantName: 'low' });

test.each<[string, Playlist, Track[], readonly MediaKind[], readonly MediaKind[], string[]]>([
  ['all media', OWN, [H264, OPUS], BOTH, BOTH, []],
  ['AAC beside Opus', OWN, [H264, AAC, OPUS], BOTH, BOTH, []],
  ['AAC alone', OWN, [H264, AAC], BOTH, ['video'], [NO_AUDIO]],
  ['no audio at all', OWN, [H264], BOTH, ['video'], []],
  ['audio that the player does not ask for', OWN, [H264, AAC], ['video'], ['video'], []],
  ['H.265 for a player without support', OWN, [HEVC, OPUS], BOTH, ['audio'], [NO_VIDEO]],
  ['a rendition that WebRTC does not carry', LADDER, [H264, VP9, OPUS], BOTH, BOTH, [SOME]],
  ['a rendition whose audio WebRTC does not carry', HALF, [H264, LOW, AAC, OPUS], BOTH, BOTH, [NO_HD]],
  ['a rendition in AAC beside the same in Opus', DOUBLE, [H264, AAC, OPUS], BOTH, BOTH, []],
  ['a playlist without audio', SILENT, [H264, AAC], BOTH, ['video'], []],
])('%s', (_name, playlist, tracks, asked, agreed, texts) => {
  expect(missingMedia({ playlist, tracks, asked, agreed }).map(({ text }) => text)).toEqual(texts);
});
