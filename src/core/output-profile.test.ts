import { describe, expect, it } from 'vitest';
import { audioTrack, videoTrack } from '../../test/fakes/synthetic-media.ts';
import { readOutputProfile } from '../config/index.ts';
import { MILLISECONDS } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import { needsFramerate, planOutput } from './output-profile.ts';

const VIDEO = videoTrack({ id: 3, width: 1280, height: 720, framerateConf: 30 });
const AUDIO = audioTrack({ id: 5 });
const DATA: Track = {
  type: 'data',
  id: 7,
  publicName: 'Data_7',
  variantName: '',
  timebase: MILLISECONDS,
  bitrateConf: 0,
  language: '',
  characteristics: '',
  bypass: false,
};

function plan(encodes: object, inbound: readonly Track[] = [VIDEO, AUDIO, DATA]) {
  return planOutput(readOutputProfile({ name: 'p', outputStreamName: 'o', encodes }).typed, inbound);
}

/** The result of the rule for one video. */
function videoKind(encode: object, source: object = {}) {
  return plan({ videos: [{ codec: 'h264', bitrate: 1, ...encode }] }, [{ ...VIDEO, ...source } as Track])[0]?.kind;
}

function audioKind(encode: object, source: object = {}) {
  return plan({ audios: [{ codec: 'aac', bitrate: 1, ...encode }] }, [{ ...AUDIO, ...source } as Track])[0]?.kind;
}

describe('an image that the source has already', () => {
  const jpeg = videoTrack({ id: 4, codec: 'JPEG', width: 640, height: 360, framerateConf: 1 });
  const kindOf = (encode: object, source: Track = jpeg) => plan({ images: [{ codec: 'jpeg', ...encode }] }, [source])[0]?.kind;

  it.each([
    ['the codec', { bypassIfMatch: { codec: 'eq' } }, 'bypass'],
    ['codec and size', { width: 640, height: 360, bypassIfMatch: { codec: 'eq', width: 'eq', height: 'lte' } }, 'bypass'],
    ['another size', { width: 320, bypassIfMatch: { codec: 'eq', width: 'lte' } }, 'image'],
    ['another codec', { codec: 'png', bypassIfMatch: { width: 'gte' } }, 'image'],
    ['no rule', {}, 'image'],
  ])('%s', (_name, encode, kind) => {
    expect(kindOf(encode)).toBe(kind);
  });

  it('is encoded from video under any bypass rule', () => {
    expect(kindOf({ width: 1280, bypassIfMatch: { width: 'eq' } }, VIDEO)).toBe('image');
  });

  it('waits for the frame rate when the rule needs it', () => {
    const asks = (images: object[]) => needsFramerate(readOutputProfile({ name: 'p', outputStreamName: 'o', encodes: { images } }).typed);
    expect([asks([{ codec: 'jpeg', framerate: 1, bypassIfMatch: { framerate: 'eq' } }]), asks([{ codec: 'jpeg' }])]).toEqual([true, false]);
  });
});

describe('planOutput', () => {
  it('makes every encode of every track of its kind: videos, audios, images, data', () => {
    const second = videoTrack({ id: 9 });
    const planned = plan(
      {
        videos: [
          { name: 'b', bypass: true },
          { codec: 'h264', bitrate: 1 },
        ],
        audios: [{ name: 'a', bypass: true }],
        images: [{ codec: 'jpeg' }],
      },
      [DATA, VIDEO, AUDIO, second],
    );
    expect(planned.map(({ variantName, source, kind }) => [variantName, source.id, kind])).toEqual([
      ['b', 3, 'bypass'],
      ['b', 9, 'bypass'],
      ['video_0', 3, 'video'],
      ['video_0', 9, 'video'],
      ['a', 5, 'bypass'],
      ['image_0', 3, 'image'],
      ['image_0', 9, 'image'],
      ['', 7, 'bypass'],
    ]);
    expect(new Set(planned.map(({ key }) => key)).size).toBe(planned.length);
  });

  it.each([
    [{ codec: 'eq' }, {}, 'bypass'],
    [{ codec: 'eq' }, { codec: 'H265' }, 'video'],
    [{ width: 'eq' }, {}, 'bypass'],
    [{ width: 'eq' }, { width: 1281 }, 'video'],
    [{ width: 'lte' }, { width: 640 }, 'bypass'],
    [{ width: 'lte' }, { width: 1920 }, 'video'],
    [{ width: 'gte' }, { width: 640 }, 'video'],
    [{ height: 'lte' }, { height: 721 }, 'video'],
    [{ height: 'GTE' }, { height: 721 }, 'bypass'],
    [{ framerate: 'lte' }, { framerateConf: 25 }, 'bypass'],
    [{ framerate: 'lte' }, { framerateConf: 60 }, 'video'],
    [{ sAR: 'eq' }, { width: 640, height: 360 }, 'bypass'],
    [{ sAR: 'eq' }, { width: 640, height: 480 }, 'video'],
    [{ codec: 'eq', width: 'lte' }, { width: 1920 }, 'video'],
    [{ codec: 'eq', width: 'lte', height: 'lte', framerate: 'lte' }, {}, 'bypass'],
    [{}, {}, 'video'],
  ])('video: under %j, a source with %j becomes %s', (bypassIfMatch, source, expected) => {
    expect(videoKind({ width: 1280, height: 720, framerate: 30, bypassIfMatch }, source)).toBe(expected);
  });

  it('compares the codec without the encoder', () => {
    expect(videoKind({ codec: 'h264_x264', bypassIfMatch: { codec: 'eq' } })).toBe('bypass');
  });

  it.each([
    [{ codec: 'eq' }, {}, 'bypass'],
    [{ codec: 'eq' }, { codec: 'OPUS' }, 'audio'],
    [{ samplerate: 'eq' }, { sampleRate: 44_100 }, 'audio'],
    [{ samplerate: 'lte' }, { sampleRate: 44_100 }, 'bypass'],
    [{ channel: 'eq' }, { channels: 6 }, 'audio'],
    [{ channel: 'lte' }, { channels: 1 }, 'bypass'],
    [{ codec: 'eq', samplerate: 'eq', channel: 'eq' }, {}, 'bypass'],
  ])('audio: under %j, a source with %j becomes %s', (bypassIfMatch, source, expected) => {
    expect(audioKind({ samplerate: 48_000, channel: 2, bypassIfMatch }, source)).toBe(expected);
  });
});
