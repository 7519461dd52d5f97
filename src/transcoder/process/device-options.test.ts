import { describe, expect, test } from 'vitest';
import { VideoCodec } from '../../media/codec.ts';
import { CodecModule } from '../encoder-catalogue.ts';
import { deviceOptions } from './device-options.ts';
import { Decoder } from './engine/decoder.ts';
import { Encoder } from './engine/encoder.ts';
import { FramePool } from './engine/frame-pool.ts';

test.each([
  [CodecModule.NV, 1, { options: { gpu: '1' }, node: null }],
  [CodecModule.NV, 0, { options: { gpu: '0' }, node: null }],
  [CodecModule.NV, undefined, { options: {}, node: null }],
  [CodecModule.VAAPI, 0, { options: {}, node: '/dev/dri/renderD128' }],
  [CodecModule.QSV, 2, { options: {}, node: '/dev/dri/renderD130' }],
  [CodecModule.X264, 1, { options: {}, node: null }],
])('device of %s: %s', (module, device, expected) => {
  expect(deviceOptions(module, device)).toEqual(expected);
});

/** The library's error without the device: an unknown option would be reported before it. */
describe('options for the library', () => {
  const encoding = {
    format: {
      width: 640,
      height: 360,
      pixelFormat: 0,
      sarNum: 1,
      sarDen: 1,
      colorSpace: 2,
      colorRange: 0,
      colorPrimaries: 2,
      colorTransfer: 2,
    },
    ...{
      pixelFormat: 'nv12',
      framerate: 30,
      bitrate: 1_000_000,
      bufferBits: 0,
      bFrames: 0,
      gop: 30,
      threads: 1,
      offThread: false,
      uploads: false,
    },
  };
  const NOWHERE = 9999;

  test('the GPU of an encoder and of a decoder of NVIDIA, by an option they have', () => {
    const { options } = deviceOptions(CodecModule.NV, NOWHERE);
    const encoder = (more: object) => () => Encoder.forFrames({ ...encoding, name: 'h264_nvenc', options: { ...options, ...more } });
    expect(encoder({})).toThrow(/^encoder h264_nvenc: (?!option)/);
    expect(encoder({ 'no-such-option': '1' })).toThrow('encoder h264_nvenc: option no-such-option=1');
    const source = { codec: VideoCodec.H264, timebase: { num: 1, den: 90_000 }, config: null, threads: 1, offThread: false };
    const decoder = (more: object) => () =>
      new Decoder({ ...source, name: 'h264_cuvid', options: { ...options, ...more } }, new FramePool());
    expect(decoder({ 'no-such-option': '1' })).toThrow('decoder h264_cuvid: option no-such-option=1');
    try {
      decoder({})().close();
    } catch (error) {
      expect(String(error)).toMatch(/decoder h264_cuvid: (?!option)/);
    }
  });

  test('the render node of VA-API and of QSV', () => {
    const device = deviceOptions(CodecModule.VAAPI, NOWHERE).node;
    expect(() => Encoder.forFrames({ ...encoding, name: 'h264_vaapi', options: {}, uploads: true, device })).toThrow(
      'VA-API device /dev/dri/renderD10127',
    );
    expect(() => Encoder.forFrames({ ...encoding, name: 'h264_qsv', options: {}, device })).toThrow('QSV device /dev/dri/renderD10127');
    const source = { codec: VideoCodec.H264, timebase: { num: 1, den: 90_000 }, config: null, threads: 1, offThread: false };
    expect(() => new Decoder({ ...source, name: 'h264_qsv', device }, new FramePool())).toThrow('QSV device /dev/dri/renderD10127');
  });
});
