import { describe, expect, it } from 'vitest';
import { ASC, AUDIO } from '../../../test/fixtures/bitstreams.ts';
import { adtsFrames } from '../../../test/support/adts-frames.ts';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { BitWriter } from '../../util/bit-writer.ts';
import { ADTS_HEADER_LENGTH, type AdtsFrame, configOfAdts, parseAdtsHeader, writeAdtsHeader } from './adts.ts';
import { aacCodecString, buildAudioSpecificConfig, parseAudioSpecificConfig } from './audio-specific-config.ts';

const bytes = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));

describe('parseAudioSpecificConfig', () => {
  it.each([
    ['LC 44.1 kHz stereo', bytes('1210'), { objectType: 2, sampleRate: 44_100, channels: 2, sbr: false, frameLength: 1024 }, 'mp4a.40.2'],
    ['LC by ffmpeg', ASC.stereo48, { objectType: 2, sampleRate: 48_000, channels: 2, sbr: false }, 'mp4a.40.2'],
    ['5.1', ASC.surround51, { channels: 6, channelConfiguration: 6 }, 'mp4a.40.2'],
    ['2.1 by a program config element', ASC.pce21, { channels: 3, channelConfiguration: 0 }, 'mp4a.40.2'],
    ['960 samples', new BitWriter().bits(2, 5).bits(3, 4).bits(2, 4).bits(0b100, 3).finish(), { frameLength: 960 }, 'mp4a.40.2'],
    [
      'an escaped frequency',
      new BitWriter().bits(2, 5).bits(15, 4).bits(44_056, 24).bits(1, 4).bits(0, 3).finish(),
      { sampleRate: 44_056 },
      'mp4a.40.2',
    ],
    [
      'explicit SBR',
      bytes('2b118800'),
      { objectType: 2, coreSampleRate: 24_000, sampleRate: 48_000, channels: 2, sbr: true, ps: false },
      'mp4a.40.5',
    ],
    [
      'explicit PS',
      bytes('eb098800'),
      { objectType: 2, channelConfiguration: 1, channels: 2, sbr: true, ps: true, sampleRate: 48_000 },
      'mp4a.40.29',
    ],
    ['SBR behind the config', bytes('131056e598'), { coreSampleRate: 24_000, sampleRate: 48_000, sbr: true, ps: false }, 'mp4a.40.5'],
    ['SBR and PS behind the config', bytes('130856e59d4880'), { channels: 2, sbr: true, ps: true }, 'mp4a.40.29'],
    ['an object type behind the escape', bytes('f94640'), { objectType: 42, sampleRate: 48_000, channels: 2 }, 'mp4a.40.42'],
    ['7.1', bytes('11b8'), { channels: 8 }, 'mp4a.40.2'],
  ] as const)('reads %s', (_name, data, expected, codecString) => {
    const config = parseAudioSpecificConfig(data);
    expect(config).toMatchObject(expected);
    expect(aacCodecString(config)).toBe(codecString);
  });

  it.each([
    ['object type 0', '0010'],
    ['a reserved frequency index', '1690'],
  ])('refuses %s', (_name, hex) => {
    expect(() => parseAudioSpecificConfig(bytes(hex))).toThrow(expect.objectContaining({ code: 'AAC_CONFIG' }));
  });

  it('survives hostile bytes', () => {
    survivesHostileBytes(parseAudioSpecificConfig, [...Object.values(ASC), bytes('130856e59d4880'), bytes('eb098800')]);
  });
});

describe('buildAudioSpecificConfig', () => {
  it.each([
    ['the usual two bytes', { objectType: 2, sampleRate: 44_100, channelConfiguration: 2 }, '1210'],
    ['an escaped frequency', { objectType: 2, sampleRate: 44_056, channelConfiguration: 1 }, '17805 60c08'.replace(' ', '')],
    ['an object type behind the escape', { objectType: 34, sampleRate: 48_000, channelConfiguration: 2 }, 'f84640'],
  ])('writes %s', (_name, config, hex) => {
    expect(Buffer.from(buildAudioSpecificConfig(config)).toString('hex')).toBe(hex);
    expect(parseAudioSpecificConfig(bytes(hex))).toMatchObject(config);
  });
});

describe('ADTS', () => {
  it('reads the frames of a stream up to a truncated frame', () => {
    const frames: AdtsFrame[] = [];
    expect(() => {
      for (const frame of adtsFrames(AUDIO.adts)) frames.push(frame);
    }).toThrow(expect.objectContaining({ code: 'ADTS' }));
    expect(frames.length).toBeGreaterThan(1);
    expect(frames[0]).toMatchObject({ offset: 0, headerLength: 7, objectType: 2, sampleRate: 44_100, channels: 2, rawDataBlocks: 1 });
    expect(Buffer.from(configOfAdts(frames[0]!)).toString('hex')).toBe('1210');
  });

  it('reads headers with a CRC', () => {
    expect(parseAdtsHeader(bytes('fff0508001bffc0000'))).toMatchObject({ headerLength: 9, frameLength: 13 });
  });

  it('writes the header that it reads', () => {
    const target = new Uint8Array(20);
    writeAdtsHeader(target, 3, parseAudioSpecificConfig(ASC.surround51), 500);
    expect(parseAdtsHeader(target, 3)).toMatchObject({
      offset: 3,
      frameLength: 507,
      objectType: 2,
      sampleRate: 48_000,
      channelConfiguration: 6,
    });
  });

  it('writes the core coder of HE-AAC as AAC-LC', () => {
    const target = new Uint8Array(ADTS_HEADER_LENGTH);
    writeAdtsHeader(target, 0, parseAudioSpecificConfig(bytes('2b118800')), 1);
    expect(parseAdtsHeader(target)).toMatchObject({ objectType: 2, sampleRate: 24_000 });
  });

  it('writes the nearest frequency and LC for values without an ADTS code', () => {
    const target = new Uint8Array(ADTS_HEADER_LENGTH);
    const config = parseAudioSpecificConfig(buildAudioSpecificConfig({ objectType: 23, sampleRate: 44_056, channelConfiguration: 2 }));
    writeAdtsHeader(target, 0, config, 1);
    expect(parseAdtsHeader(target)).toMatchObject({ objectType: 2, sampleRate: 44_100 });
  });

  it('refuses a frame longer than its length field can express', () => {
    expect(() => writeAdtsHeader(new Uint8Array(7), 0, parseAudioSpecificConfig(ASC.stereo48), 9000)).toThrow(
      expect.objectContaining({ code: 'ADTS' }),
    );
  });

  it('survives hostile bytes', () => {
    survivesHostileBytes((data) => [...adtsFrames(data)], [AUDIO.adts.subarray(0, 60)]);
    survivesHostileBytes((data) => parseAdtsHeader(Uint8Array.of(0xff, 0xf1, ...data)), []);
  });
});
