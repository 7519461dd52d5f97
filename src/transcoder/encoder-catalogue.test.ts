import { describe, expect, it } from 'vitest';
import { DECODER_MODULES, ENCODER_MODULES } from '../config/ineffective-values.ts';
import { AudioCodec, VideoCodec } from '../media/codec.ts';
import { codecModules } from './codec-modules.ts';
import { CodecModule, chooseDecoders, chooseEncoders, ENCODERS, encodeCodec, HARDWARE_DECODERS } from './encoder-catalogue.ts';

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
      ['h264_nvenc', 'h264_qsv', 'h264_vaapi', 'h264_amf', 'libx264'],
      [],
    ],
    [
      'software when the hardware that is on is missing, and says so',
      { modules: '', hardware: { enable: true, modules: 'xma, vaapi:0' } },
      SOFTWARE,
      ['libx264'],
      ['xma', 'vaapi'],
    ],
    ['x264 for the encoder of the reference server', { modules: 'openh264', hardware: off }, ALL, ['libx264'], []],
    ['nothing where no encoder works', { modules: '', hardware: off }, new Set<string>(), [], []],
  ])('selects %s', (_name, wanted, working, names, unavailable) => {
    const choice = chooseEncoders(VideoCodec.H264, wanted, working);
    expect(choice.candidates.map(({ name }) => name)).toEqual(names);
    expect(choice.unavailable).toEqual(unavailable);
  });
});

it('does not look for hardware for audio and images', () => {
  const wanted = { modules: '', hardware: { enable: true, modules: 'nv' } };
  for (const codec of [AudioCodec.AAC, VideoCodec.JPEG]) expect(chooseEncoders(codec, wanted, ALL).unavailable).toEqual([]);
});

describe('chooseDecoders', () => {
  const working = new Set(['h264', 'h264_cuvid', 'h264_qsv', 'hevc_qsv']);
  it.each([
    ['none when hardware is off', VideoCodec.H264, { enable: false, modules: 'nv' }, [], []],
    ['all decoders when no module is named', VideoCodec.H264, { enable: true, modules: '' }, ['h264_cuvid', 'h264_qsv'], []],
    [
      'the decoders of named modules, in their order',
      VideoCodec.H264,
      { enable: true, modules: 'qsv:0,nvenc' },
      ['h264_qsv', 'h264_cuvid'],
      [],
    ],
    ['the decoders of the codec, and reports missing modules', VideoCodec.H265, { enable: true, modules: 'nv,qsv' }, ['hevc_qsv'], ['nv']],
  ])('selects %s', (_name, codec, hardware, names, unavailable) => {
    const choice = chooseDecoders(codec, hardware, working);
    expect(choice.candidates.map(({ name }) => name)).toEqual(names);
    expect(choice.unavailable).toEqual(unavailable);
  });
});

describe('a device number after the name of a module', () => {
  const devices = (modules: string, hardware: { enable: boolean; modules: string } = off) =>
    chooseEncoders(VideoCodec.H264, { modules, hardware }, ALL).candidates.map(({ name, device }) => [name, device]);

  it('selects one of several devices, counted from 0', () => {
    expect(devices('nv:1')).toEqual([
      ['h264_nvenc', 1],
      ['libx264', undefined],
    ]);
    expect(devices('', { enable: true, modules: 'NV:2, nv:0,qsv,vaapi:1' })).toEqual([
      ['h264_nvenc', 2],
      ['h264_nvenc', 0],
      ['h264_qsv', undefined],
      ['h264_vaapi', 1],
      ['libx264', undefined],
    ]);
  });

  it('is not retried without a number, and is ignored for software', () => {
    expect(devices('nv:1,x264:1', { enable: true, modules: 'nv' })).toEqual([
      ['h264_nvenc', 1],
      ['libx264', undefined],
    ]);
    expect(devices('nv:x')).toEqual([
      ['h264_nvenc', undefined],
      ['libx264', undefined],
    ]);
  });

  it('counts for decoders, too', () => {
    const found = new Set(['h264_cuvid', 'h264_qsv']);
    expect(chooseDecoders(VideoCodec.H264, { enable: true, modules: 'nv:1,qsv' }, found).candidates).toEqual([
      { name: 'h264_cuvid', device: 1 },
      { name: 'h264_qsv' },
    ]);
  });
});

describe('the names of modules that the configuration knows', () => {
  const found = (name: string) =>
    Object.values(VideoCodec)
      .concat(Object.values(AudioCodec) as never[])
      .some((codec) => chooseEncoders(codec, { modules: name, hardware: off }, ALL).unavailable.length === 0);

  it.each(ENCODER_MODULES)('%s is a module', (name) => {
    expect(found(name)).toBe(true);
  });

  it('include every module', () => {
    expect(Object.values(CodecModule).filter((name) => !ENCODER_MODULES.includes(name))).toEqual([]);
    expect(['xma', 'nilogan'].filter(found)).toEqual([]);
    const decoding = new Set(HARDWARE_DECODERS.map(({ module }) => module as string));
    expect([...decoding].filter((name) => !DECODER_MODULES.includes(name))).toEqual([]);
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

  it('lists the found modules, software before hardware, with their active codecs in all processes', () => {
    const items = codecModules(hello, [
      { encoders: { libx264: 2, aac: 1 }, decoders: { h264: 1 }, queues: [] },
      { encoders: { libx264: 1, h264_nvenc: 4 }, decoders: { h264: 1 }, queues: [] },
    ]);
    expect(items.map(({ id, mediaType, module, name, metrics }) => [id, mediaType, name, module, metrics.active])).toEqual([
      [0, 'Video', 'default:0', 'default', { decoder: 2, encoder: 0 }],
      [1, 'Video', 'x264:0', 'x264', { decoder: 0, encoder: 3 }],
      [2, 'Video', 'nv:0', 'nv', { decoder: 0, encoder: 4 }],
      [3, 'Audio', 'default:1', 'default', { decoder: 0, encoder: 1 }],
      [4, 'Audio', 'libopus:0', 'libopus', { decoder: 0, encoder: 0 }],
    ]);
    expect(items[2]).toMatchObject({ isHwAccel: true, isDefault: false, isEncoder: true, isDecoder: false, supportedCodecs: ['H264'] });
    expect(items[0]).toMatchObject({ isHwAccel: false, isDecoder: true, isEncoder: true, supportedCodecs: ['H264', 'PNG'] });
  });

  it('knows modules that decode in hardware, and that encode and decode in it', () => {
    const found = {
      version: '8',
      encoders: ['libx264', 'h264_qsv', 'h264_vaapi'],
      decoders: ['h264', 'h264_cuvid', 'hevc_cuvid', 'h264_qsv'],
    };
    const buses = new Map([[CodecModule.QSV, '0000:00:02.0']]);
    const items = codecModules(found, [{ encoders: { h264_vaapi: 1 }, decoders: { h264_cuvid: 2 }, queues: [] }], buses);
    expect(items.map(({ module, busId }) => [module, busId])).toEqual([
      ['default', '-'],
      ['x264', '-'],
      ['nv', '-'],
      ['qsv', '0000:00:02.0'],
      ['vaapi', '-'],
    ]);
    const hardware = items.filter(({ isHwAccel }) => isHwAccel);
    expect(hardware.map(({ name, isDecoder, isEncoder, isDefault }) => [name, isDecoder, isEncoder, isDefault])).toEqual([
      ['nv:0', true, false, false],
      ['qsv:0', true, true, false],
      ['vaapi:0', false, true, false],
    ]);
    expect(hardware.map(({ supportedCodecs }) => supportedCodecs)).toEqual([['H264', 'H265'], ['H264'], ['H264']]);
    expect(hardware.map(({ metrics }) => metrics.active)).toEqual([
      { decoder: 2, encoder: 0 },
      { decoder: 0, encoder: 0 },
      { decoder: 0, encoder: 1 },
    ]);
  });
});
