import { describe, expect, it } from 'vitest';
import { FakeStream } from '../../test/fakes/fake-stream.ts';
import { audioTrack, videoTrack } from '../../test/fakes/synthetic-media.ts';
import { readOutputProfile } from '../config/index.ts';
import type { Track } from '../media/track.ts';
import { buildPlaylist } from './playlist-builder.ts';

const HIGH = videoTrack({ id: 0, variantName: 'high', width: 1920, height: 1080, bitrateConf: 5_000_000, bypass: true });
const LOW = videoTrack({ id: 1, variantName: 'low', width: 640, height: 360, bitrateConf: 800_000, framerateConf: 15, bypass: false });
const AAC = audioTrack({ id: 2, variantName: 'aac' });
const OPUS = audioTrack({ id: 3, variantName: 'opus', codec: 'OPUS', channels: 1, bypass: false });
const PICTURE = videoTrack({ id: 4, variantName: 'picture', codec: 'JPEG', width: 320, height: 180, bypass: false });
const TRACKS = [HIGH, LOW, AAC, OPUS, PICTURE];
const ENCODES = {
  videos: [
    { name: 'high', bypass: true },
    { name: 'low', codec: 'h264', bitrate: 800_000 },
  ],
  audios: [
    { name: 'aac', bypass: true },
    { name: 'opus', codec: 'opus', bitrate: 96_000 },
  ],
};

function build(playlist: object, tracks: readonly Track[] = TRACKS) {
  const { playlists } = readOutputProfile({
    name: 'p',
    outputStreamName: 'o',
    encodes: ENCODES,
    playlists: [{ fileName: 'abr', ...playlist }],
  }).typed;
  const [rules] = playlists;
  const stream = new FakeStream();
  if (rules === undefined) throw new Error('no playlist');
  return buildPlaylist(rules, tracks, (id) => stream.figures(id));
}

function templated(template: object, tracks?: readonly Track[]) {
  const made = build({ rendition_templates: [{ name: 'r', ...template }] }, tracks);
  return made?.renditions.map(({ name, videoVariantName, audioVariantName }) => `${name}: ${videoVariantName}+${audioVariantName}`);
}

describe('buildPlaylist', () => {
  it('lists the renditions in the order of the profile', () => {
    const made = build({
      name: 'ladder',
      options: { webrtcAutoAbr: false, hlsChunklistPathDepth: 0, enableTsPackaging: true },
      renditions: [
        { name: 'small', video: 'low', audio: 'opus' },
        { name: 'large', video: 'high', audio: 'aac', videoIndexHint: 0 },
        { name: 'sound', audio: 'aac' },
      ],
    });
    expect(made).toMatchObject({
      name: 'ladder',
      fileName: 'abr',
      options: { webrtcAutoAbr: false, hlsChunklistPathDepth: 0, enableTsPackaging: true, enableSubtitles: true },
    });
    expect(made?.renditions).toEqual([
      { name: 'small', videoVariantName: 'low', audioVariantName: 'opus', videoIndexHint: -1, audioIndexHint: -1 },
      { name: 'large', videoVariantName: 'high', audioVariantName: 'aac', videoIndexHint: 0, audioIndexHint: -1 },
      { name: 'sound', videoVariantName: '', audioVariantName: 'aac', videoIndexHint: -1, audioIndexHint: -1 },
    ]);
  });

  it('leaves out renditions whose tracks are missing, and a playlist without any', () => {
    const renditions = [
      { name: 'small', video: 'low', audio: 'aac' },
      { name: 'large', video: 'high', audio: 'aac' },
    ];
    expect(build({ renditions }, [HIGH, AAC])?.renditions.map(({ name }) => name)).toEqual(['large']);
    expect(build({ renditions }, [HIGH])).toBeNull();
  });

  it.each<[object, string[]]>([
    [{ name: '${Height}p', video_template: {}, audio_template: { variant_name: 'aac' } }, ['1080p: high+aac', '360p: low+aac']],
    [{ video_template: {}, audio_template: {} }, ['r: high+aac', 'r_1: high+opus', 'r_2: low+aac', 'r_3: low+opus']],
    [{ video_template: { encoding_type: 'bypassed' } }, ['r: high+']],
    [{ video_template: { encoding_type: 'encoded' } }, ['r: low+']],
    [{ video_template: { variant_name: 'l*' } }, ['r: low+']],
    [{ video_template: { max_height: 720 } }, ['r: low+']],
    [{ video_template: { min_width: 641 } }, ['r: high+']],
    [{ video_template: { maxFPS: 20 } }, ['r: low+']],
    [{ video_template: { min_bitrate: 1_000_000 } }, ['r: high+']],
    [{ audio_template: { max_channel: 1 } }, ['r: +opus']],
    [{ audio_template: { min_samplerate: 48_000, variant_name: 'a?c' } }, ['r: +aac']],
    [
      {
        name: '${Width}x${Height}@${Framerate} ${Samplerate}/${Channel} ${Bitrate} ${Other}',
        video_template: { max_width: 640 },
        audio_template: { variant_name: 'aac' },
      },
      ['640x360@15 48000/2 928000 ${Other}: low+aac'],
    ],
  ])('makes renditions of the template %j', (template, expected) => {
    expect(templated(template)).toEqual(expected);
  });

  it('distinguishes tracks of one encode by their order', () => {
    const twin = videoTrack({ id: 8, variantName: 'high', width: 1280, height: 720 });
    const made = build({ rendition_templates: [{ name: '${Height}p', video_template: { variant_name: 'high' } }] }, [HIGH, twin, AAC]);
    expect(made?.renditions.map(({ name, videoIndexHint }) => [name, videoIndexHint])).toEqual([
      ['1080p', 0],
      ['720p', 1],
    ]);
  });

  it('offers no images as video', () => {
    expect(templated({ video_template: {} }, [PICTURE])).toBeUndefined();
  });
});
