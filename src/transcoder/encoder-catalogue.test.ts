import { describe, expect, it } from 'vitest';
import { AudioCodec, VideoCodec } from '../media/codec.ts';
import { codecModules } from './codec-modules.ts';
import { chooseEncoders, ENCODERS, encodeCodec } from './encoder-catalogue.ts';

const SOFTWARE = new Set(ENCODERS.filter(({ hardware }) => !hardware).map(({ name }) => name));
const ALL = new Set(ENCODERS.map(({ name }) => name));
const off = { enable: false, modules: '' };

describe('chooseEncoders', () => {
  it.each([
    ['software by default', { modules: '', hardware: off }, ALL, ['libx264'], []],
    ['the named module, then software', { modules: 'nv:0,qsv', hardware: off }, ALL, ['h264_nvenc', 'h264_qsv', 'libx264'], []],
    ['software when the named module is missing, and says so', { modules: 'nv', hardware: off }, SOFTWARE, ['libx264'], ['nv']],
    ['hardware when it is on', { modules: '', hardware: { enable: true, modules: 'qsv' } }, ALL, ['h264_qsv', 'libx264'], []],
    [
      'any hardware when none is named',
      { modules: '', hardware: { enable: true, modules: '' } },
      ALL,
      ['h264_nvenc', 'h264_qsv', 'h264_amf', 'libx264'],
      [],
    ],
    ['x264 for the encoder of the reference server', { modules: 'openh264', hardware: off }, ALL, ['libx264'], []],
    ['nothing where nothing is', { modules: '', hardware: off }, new Set<string>(), [], []],
  ])('takes %s', (_name, wanted, working, names, unavailable) => {
    const choice = chooseEncoders(VideoCodec.H264, wanted, working);
    expect(choice.candidates.map(({ name }) => name)).toEqual(names);
    expect(choice.unavailable).toEqual(unavailable);
  });
});

describe('encodeCodec', () => {
  it.each([
    ['h264', { codec: VideoCodec.H264, module: '' }],
    ['H265_nvenc', { codec: VideoCodec.H265, module: 'nvenc' }],
    ['opus', { codec: AudioCodec.OPUS, module: '' }],
    ['theora', null],
    ['', null],
  ])('reads %j', (name, expected) => {
    expect(encodeCodec(name)).toEqual(expected);
  });
});

describe('codecModules', () => {
  const hello = { version: '8', encoders: ['libx264', 'h264_nvenc', 'aac', 'libopus', 'png'], decoders: ['h264', 'aac'] };

  it('lists what was found, software before hardware, with what is at work everywhere', () => {
    const items = codecModules(hello, [
      { encoders: { libx264: 2, aac: 1 }, decoders: { h264: 1 }, queues: [] },
      { encoders: { libx264: 1, h264_nvenc: 4 }, decoders: { h264: 1 }, queues: [] },
    ]);
    expect(items.map(({ id, mediaType, module, name, metrics }) => [id, mediaType, name, module, metrics.active])).toEqual([
      [0, 'Video', 'default:0', 'default', { decoder: 2, encoder: 0 }],
      [1, 'Video', 'x264:0', 'x264', { decoder: 0, encoder: 3 }],
      [2, 'Video', 'nv:0', 'nv', { decoder: 0, encoder: 4 }],
      [3, 'Audio', 'default:0', 'default', { decoder: 0, encoder: 1 }],
      [4, 'Audio', 'libopus:0', 'libopus', { decoder: 0, encoder: 0 }],
    ]);
    expect(items[2]).toMatchObject({ isHwAccel: true, isDefault: false, isEncoder: true, isDecoder: false, supportedCodecs: ['H264'] });
    expect(items[0]).toMatchObject({ isHwAccel: false, isDecoder: true, isEncoder: true, supportedCodecs: ['H264', 'PNG'] });
  });
});
