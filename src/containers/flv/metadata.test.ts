import { describe, expect, test } from 'vitest';
import { parseMetadata } from './metadata.ts';

function fields(values: Record<string, unknown>): Map<string, unknown> {
  return new Map(Object.entries(values));
}

describe('onMetaData', () => {
  test('of OBS', () => {
    const metadata = parseMetadata(
      fields({
        duration: 0,
        width: 1920,
        height: 1080,
        videocodecid: 7,
        videodatarate: 2500,
        framerate: 30,
        audiocodecid: 10,
        audiodatarate: 160,
        audiosamplerate: 48_000,
        audiochannels: 2,
        stereo: true,
        encoder: 'obs-output module (libobs version 30.0.0)',
      }),
    );
    expect([...metadata.video]).toEqual([[0, { codec: 'H264', width: 1920, height: 1080, framerate: 30, bitrate: 2_500_000 }]]);
    expect([...metadata.audio]).toEqual([[0, { codec: 'AAC', sampleRate: 48_000, channels: 2, bitrate: 160_000 }]]);
    expect(metadata.encoder).toBe('obs-output module (libobs version 30.0.0)');
  });

  test.each([
    { value: 7, codec: 'H264' },
    { value: 'avc1', codec: 'H264' },
    { value: 'H264Avc', codec: 'H264' },
    { value: 12, codec: 'H265' },
    { value: 0x6876_6331, codec: 'H265' },
    { value: 0x6176_3031, codec: 'AV1' },
    { value: 0x7670_3039, codec: 'VP9' },
    { value: 2, codec: undefined },
    { value: 0, codec: undefined },
    { value: Number.NaN, codec: undefined },
    { value: null, codec: undefined },
  ])('videocodecid $value means $codec', ({ value, codec }) => {
    expect(parseMetadata(fields({ videocodecid: value })).video.get(0)?.codec).toBe(codec);
  });

  test.each([
    { value: 10, codec: 'AAC' },
    { value: 'mp4a', codec: 'AAC' },
    { value: 0x4f70_7573, codec: 'OPUS' },
    { value: 2, codec: 'MP3' },
    { value: 11, codec: undefined },
  ])('audiocodecid $value means $codec', ({ value, codec }) => {
    expect(parseMetadata(fields({ audiocodecid: value })).audio.get(0)?.codec).toBe(codec);
  });

  test('other names and wrong types', () => {
    const metadata = parseMetadata(
      fields({
        videocodecid: 7,
        videoframerate: '25',
        maxBitrate: '3000',
        width: 'wide',
        audiocodecid: 10,
        stereo: false,
        videodevice: 'Camera',
        encoder: 1,
      }),
    );
    expect(metadata.video.get(0)).toEqual({ codec: 'H264', width: 0, height: 0, framerate: 25, bitrate: 3_000_000 });
    expect(metadata.audio.get(0)).toEqual({ codec: 'AAC', sampleRate: 0, channels: 1, bitrate: 0 });
    expect(metadata.encoder).toBe('Camera');
  });

  test('further tracks of a multitrack publisher', () => {
    const metadata = parseMetadata(
      fields({
        videocodecid: 0x6176_6331,
        videoTrackIdInfoMap: {
          fields: fields({ 1: { fields: fields({ videocodecid: 0x6876_6331, width: 1280 }) }, x: { fields: new Map() }, 2: 5 }),
        },
        audioTrackIdInfoMap: { fields: fields({ 1: { fields: fields({ audiocodecid: 0x6d70_3461, channels: 6, samplerate: 44_100 }) } }) },
      }),
    );
    expect([...metadata.video.keys()]).toEqual([0, 1]);
    expect(metadata.video.get(1)).toMatchObject({ codec: 'H265', width: 1280 });
    expect(metadata.audio.get(1)).toMatchObject({ codec: 'AAC', channels: 6, sampleRate: 44_100 });
  });
});
