import { expect, test } from 'vitest';
import { audioTrack, dataTrack, videoTrack } from '../../test/fakes/synthetic-media.ts';
import type { Track } from '../media/track.ts';
import { type DefaultChoice, defaultPlaylist } from './default-playlist.ts';

const OWN = {
  ...{ name: 'own', fileName: 'own' },
  options: { webrtcAutoAbr: false, hlsChunklistPathDepth: -1, enableTsPackaging: false, enableSubtitles: true },
};
const VIDEO = videoTrack({ id: 1, variantName: 'hd' });
const AV1 = videoTrack({ id: 2, variantName: 'av1', codec: 'AV1' });
const OPUS = audioTrack({ id: 3, variantName: 'opus', codec: 'OPUS' });
const AAC = audioTrack({ id: 4, variantName: 'aac' });
const LOUD = audioTrack({ id: 5, variantName: 'loud' });
const MP3 = audioTrack({ id: 6, variantName: 'mp3', codec: 'MP3' });

/** Name, video and audio of each rendition. */
function chosen(tracks: readonly Track[], choice: Partial<DefaultChoice> = {}): string[] | null {
  const playlist = defaultPlaylist(tracks, { canServe: () => true, ...choice }, OWN);
  return playlist?.renditions.map((one) => `${one.name}: ${one.videoVariantName} ${one.audioVariantName}`) ?? null;
}

test('is of the first video and the first audio that can be served', () => {
  expect(chosen([dataTrack(7), OPUS, AV1, VIDEO, AAC])).toEqual(['default: av1 opus']);
  expect(chosen([OPUS, AV1, VIDEO, AAC], { canServe: ({ codec }) => codec === 'H264' || codec === 'AAC' })).toEqual(['default: hd aac']);
  expect(chosen([AAC])).toEqual(['default:  aac']);
  expect(chosen([VIDEO, AAC], { canServe: () => false })).toBeNull();
  expect(chosen([dataTrack(7)])).toBeNull();
});

test('common codecs are preferred, and other codecs are used when there are no common ones', () => {
  const isCommon: DefaultChoice['isCommon'] = ({ codec }) => codec === 'H264' || codec === 'AAC';
  expect(chosen([OPUS, AV1, VIDEO, AAC], { isCommon })).toEqual(['default: hd aac']);
  expect(chosen([OPUS, AV1], { isCommon })).toEqual(['default: av1 opus']);
});

test('each further audio codec becomes one separate rendition when players choose by codec', () => {
  const choice: Partial<DefaultChoice> = { isCommon: ({ type, codec }) => type === 'video' || codec === 'AAC', everyAudioCodec: true };
  expect(chosen([VIDEO, OPUS, AAC, LOUD, MP3], choice)).toEqual(['default: hd aac', 'opus: hd opus', 'mp3: hd mp3']);
  expect(chosen([VIDEO, OPUS], choice)).toEqual(['default: hd opus']);
  // A variant with both codecs is complete in the first rendition.
  expect(chosen([VIDEO, AAC, { ...OPUS, variantName: 'aac' }], choice)).toEqual(['default: hd aac']);
});
