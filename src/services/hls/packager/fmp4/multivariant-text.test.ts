import { describe, expect, it } from 'vitest';
import { audioTrack, videoTrack } from '../../../../../test/fakes/synthetic-media.ts';
import { parseMultivariantPlaylist } from '../../../../../test/support/playlist/multivariant-playlist.ts';
import type { Playlist, PlaylistRendition } from '../../../../core/playlist.ts';
import { AudioCodec, VideoCodec } from '../../../../media/codec.ts';
import type { Track } from '../../../../media/track.ts';
import { TAIL_MARK } from '../../wire/fmp4/update.ts';
import { renderMultivariant } from './multivariant-text.ts';

const rendition = (overrides: Partial<PlaylistRendition> = {}): PlaylistRendition => ({
  name: 'default',
  videoVariantName: 'video',
  audioVariantName: 'audio',
  videoIndexHint: -1,
  audioIndexHint: -1,
  ...overrides,
});

function render(
  tracks: readonly Track[],
  renditions: readonly PlaylistRendition[],
  depth = 0,
  figures: { rate?: number; fps?: number; captions?: Readonly<Record<number, readonly string[]>> } = {},
) {
  const options = { webrtcAutoAbr: true, hlsChunklistPathDepth: depth, enableTsPackaging: false, enableSubtitles: true };
  const playlist: Playlist = { name: 'p', fileName: 'master', options, renditions };
  const text = renderMultivariant(playlist, {
    app: 'my app',
    stream: 'näme',
    runMark: 'key',
    tracks,
    independentSegments: true,
    bandwidth: (track) => figures.rate ?? track.bitrateConf,
    frameRate: () => figures.fps ?? 0,
    captions: ({ id }) => figures.captions?.[id] ?? [],
  })?.text.replaceAll(TAIL_MARK, '');
  return text === undefined ? null : { text, ...parseMultivariantPlaylist(text) };
}

describe('a multivariant playlist', () => {
  it.each([
    [-1, '/my%20app/n%C3%A4me/'],
    [0, ''],
    [1, '../n%C3%A4me/'],
    [2, '../../my%20app/n%C3%A4me/'],
  ])('has prefixes for path depth %d', (depth, prefix) => {
    const result = render([videoTrack(), audioTrack()], [rendition()], depth);
    expect(result?.variants[0]?.uri).toBe(`${prefix}chunklist_0_video_key_llhls.m3u8`);
    expect(result?.media[0]?.get('URI')).toBe(`${prefix}chunklist_1_audio_key_llhls.m3u8`);
  });

  it('has one group for each audio variant and one entry for each of its tracks', () => {
    const tracks = [
      videoTrack(),
      audioTrack({ id: 1, language: 'en', publicName: 'English' }),
      audioTrack({ id: 2, language: 'de', publicName: 'Deutsch', channels: 6, bitrateConf: 384_000 }),
      audioTrack({ id: 3, variantName: 'opus', codec: AudioCodec.OPUS, codecString: 'opus', config: null, channels: 0 }),
    ];
    const result = render(tracks, [rendition(), rendition({ audioVariantName: 'opus' }), rendition({ audioIndexHint: 1 })]);
    expect(result?.media.map((media) => [media.get('GROUP-ID'), media.get('NAME'), media.get('DEFAULT'), media.get('CHANNELS')])).toEqual([
      ['audio', 'English', 'YES', '2'],
      ['audio', 'Deutsch', 'NO', '6'],
      ['opus', 'Audio_1', 'YES', '2'],
      ['audio_1', 'Deutsch', 'YES', '6'],
    ]);
    expect(result?.media[1]?.get('LANGUAGE')).toBe('de');
    expect(
      result?.variants.map(({ attributes }) => [attributes.get('AUDIO'), attributes.get('CODECS'), attributes.get('BANDWIDTH')]),
    ).toEqual([
      ['audio', 'avc1.64001f,mp4a.40.2', '2884000'],
      ['opus', 'avc1.64001f,opus', '2628000'],
      ['audio_1', 'avc1.64001f,mp4a.40.2', '2884000'],
    ]);
  });

  it('lists audio as the variant when there is no video', () => {
    const result = render([audioTrack()], [rendition()]);
    expect(result?.media).toEqual([]);
    expect(result?.text).toContain('#EXT-X-STREAM-INF:BANDWIDTH=128000,CODECS="mp4a.40.2"\nchunklist_1_audio_key_llhls.m3u8\n');
  });

  it('leaves out renditions that cannot be served, and is null when none is left', () => {
    const vp8 = videoTrack({ id: 4, variantName: 'vp8', codec: VideoCodec.VP8 });
    const result = render([videoTrack(), vp8, audioTrack()], [rendition({ videoVariantName: 'vp8' }), rendition()]);
    expect(result?.variants).toHaveLength(1);
    expect(render([vp8, audioTrack()], [rendition({ videoVariantName: 'vp8' })])).toBeNull();
    expect(render([videoTrack()], [rendition({ videoVariantName: 'nope' })])).toBeNull();
  });

  it('is complete when size and frame rate are unknown', () => {
    const unknown = render([videoTrack({ width: 0, height: 0, framerateConf: 0 })], [rendition()], 0, { rate: 0 });
    expect(unknown?.text).toContain('BANDWIDTH=1000000,FRAME-RATE=30.000,CODECS=');
    const measured = render([videoTrack({ framerateConf: 0 })], [rendition()], 0, { fps: 25 });
    expect(measured?.text).toContain('FRAME-RATE=25.000');
  });
});
