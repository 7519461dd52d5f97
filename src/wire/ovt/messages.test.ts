import { describe, expect, test } from 'vitest';
import { survivesHostileBytes } from '../../../test/support/hostile-bytes.ts';
import { describeContents, type OvtDescription, parseContents } from './description.ts';
import { parseRequest, parseResponse, serializeResponse } from './message.ts';
import { parseOvtUrl } from './ovt-url.ts';
import { PACKET_HEADER_LENGTH } from './packet.ts';
import { audioCodecOf, channelsOf, codecIdOf, layoutOf, videoCodecOf } from './wire-numbers.ts';

const utf8 = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

/** As the reference writes it. */
const CONTENTS = {
  version: 18,
  stream: {
    appName: '#default#app',
    streamName: 'stream',
    originStreamUUID: 'OvenMediaEngine_0b7c/default/#default#app/stream',
    playlists: [
      {
        name: 'llhls',
        fileName: 'abr',
        options: { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: false },
        renditions: [{ name: '720p', videoTrackName: 'video_720', videoIndexHint: 0, audioTrackName: 'aac_audio', audioIndexHint: -1 }],
      },
    ],
    tracks: [
      {
        id: 0,
        name: 'video_720',
        codecId: 1,
        mediaType: 0,
        timebaseNum: 1,
        timebaseDen: 90_000,
        bitrate: 2_000_000,
        startFrameTime: 0,
        lastFrameTime: 0,
        videoTrack: { framerate: 30, width: 1280, height: 720 },
        audioTrack: { samplerate: 0, sampleFormat: 0, layout: 0 },
        decoderConfig: 'AWQAH//hAA==',
      },
      {
        id: 1,
        name: 'aac_audio',
        codecId: 7,
        mediaType: 1,
        timebaseNum: 1,
        timebaseDen: 48_000,
        bitrate: 128_000,
        startFrameTime: 0,
        lastFrameTime: 0,
        videoTrack: { framerate: 0, width: 0, height: 0 },
        audioTrack: { samplerate: 48_000, sampleFormat: 8, layout: 3 },
        decoderConfig: 'EZA=',
      },
    ],
  },
};

type Json = { [key: string]: Json } | Json[] | string | number | boolean | null;

/** The description with another value at `path` of its stream; undefined leaves the member out. */
function changed(path: readonly (string | number)[], value: Json | undefined): unknown {
  const copy = structuredClone(CONTENTS);
  let at: unknown = copy.stream;
  for (const key of path.slice(0, -1)) at = (at as Record<string | number, unknown>)[key];
  (at as Record<string | number, unknown>)[path.at(-1)!] = value;
  return copy;
}

describe('descriptions', () => {
  test('that of the reference is read', () => {
    const description = parseContents(CONTENTS);
    expect(description).toMatchObject({
      appName: '#default#app',
      streamName: 'stream',
      originStreamUuid: 'OvenMediaEngine_0b7c/default/#default#app/stream',
      playlists: [
        {
          name: 'llhls',
          fileName: 'abr',
          webrtcAutoAbr: true,
          hlsChunklistPathDepth: -1,
          enableTsPackaging: false,
          renditions: [{ name: '720p', videoTrackName: 'video_720', videoIndexHint: 0, audioTrackName: 'aac_audio', audioIndexHint: -1 }],
        },
      ],
      tracks: [
        { id: 0, name: 'video_720', codecId: 1, mediaType: 0, timebase: { num: 1, den: 90_000 }, framerate: 30, width: 1280, height: 720 },
        { id: 1, codecId: 7, sampleRate: 48_000, layout: 3, config: Uint8Array.of(0x11, 0x90), publicName: '' },
      ],
    });
  });

  test('a written description has every required member, and is read back', () => {
    const description: OvtDescription = {
      ...parseContents(CONTENTS),
      tracks: parseContents(CONTENTS).tracks.map((track) => ({ ...track, publicName: 'Ton', language: 'de', characteristics: 'x' })),
    };
    const written = describeContents(description);
    expect(written).toMatchObject(CONTENTS);
    expect(parseContents(JSON.parse(JSON.stringify(written)))).toEqual(description);
  });

  test('missing playlists are read as an empty list, and members of later versions are ignored', () => {
    const later = changed(['playlists'], null) as { capabilities?: object };
    later.capabilities = {};
    expect(parseContents(later).playlists).toEqual([]);
  });

  test.each<[readonly (string | number)[], Json | undefined]>([
    [['appName'], undefined],
    [['streamName'], 5],
    [['tracks'], {}],
    [['tracks'], [null]],
    [['tracks'], new Array<Json>(300).fill({})],
    [['tracks', 0, 'id'], -1],
    [['tracks', 0, 'name'], null],
    [['tracks', 1, 'codecId'], 1.5],
    [['tracks', 0, 'timebaseDen'], 0],
    [['tracks', 0, 'timebaseNum'], 2 ** 32],
    [['tracks', 0, 'bitrate'], '5'],
    [['tracks', 0, 'audioTrack'], null],
    [['tracks', 1, 'videoTrack'], undefined],
    [['playlists'], 'x'],
    [['playlists', 0, 'options'], []],
    [['playlists', 0, 'fileName'], undefined],
    [['playlists', 0, 'renditions'], [[]]],
    [['playlists', 0, 'renditions', 0, 'audioTrackName'], undefined],
  ])('%j with the value %j is refused with the member', (path, value) => {
    const message = expect.stringContaining(`'${path.at(-1)}'`);
    expect(() => parseContents(changed(path, value))).toThrow(expect.objectContaining({ code: 'OVT_DESCRIPTION', message }));
  });

  test('an id that two tracks have is refused', () => {
    expect(() => parseContents(changed(['tracks', 1, 'id'], 0))).toThrow("'tracks' has an id twice");
  });

  test.each([null, undefined, 5, 'x', [], {}, { stream: null }])('%j is refused as a description', (contents) => {
    expect(() => parseContents(contents)).toThrow(expect.objectContaining({ code: 'OVT_DESCRIPTION' }));
  });
});

describe('messages', () => {
  test('a response has its members in the order of the reference', () => {
    const response = { id: 1, command: 'describe', code: 200, message: 'ok', contents: { version: 18 } };
    const bytes = serializeResponse(response, 0);
    expect(bytes[1]).toBe(20);
    const payload = bytes.subarray(PACKET_HEADER_LENGTH);
    expect(payload.toString()).toBe('{"id":1,"application":"describe","code":200,"message":"ok","contents":{"version":18}}');
    expect(parseResponse(payload)).toEqual(response);
  });

  test('commands are the same in upper and lower case', () => {
    expect(parseRequest(utf8({ id: 3, application: 'DESCRIBE', target: 'ovt://h/a/s' })).command).toBe('describe');
  });

  test.each([
    [undefined, undefined],
    [null, undefined],
    ['5', undefined],
    [{ 5: 5 }, undefined],
    [[], []],
    [[1, '5', null, -5], []],
    [[99, 5, 5], [5]],
  ])('codecs %j are read as %j', (codecs, taken) => {
    expect(parseRequest(utf8({ id: 3, application: 'play', target: 'ovt://h/a/s', codecs })).codecs).toEqual(taken);
  });

  test.each([
    ['id', { application: 'play', target: 'x' }],
    ['id', { id: -1, application: 'play', target: 'x' }],
    ['application', { id: 1, application: 5, target: 'x' }],
    ['target', { id: 1, application: 'play' }],
  ])("a request with an invalid '%s' is refused with the member", (key, json) => {
    expect(() => parseRequest(utf8(json))).toThrow(`'${key}'`);
  });

  test.each(['', '[]', 'null', '"x"', '{', '\u00ff'])('%j is refused as a message', (text) => {
    expect(() => parseRequest(Buffer.from(text, 'latin1'))).toThrow(expect.objectContaining({ code: 'OVT_MESSAGE' }));
  });

  test('survive hostile bytes', () => {
    survivesHostileBytes(
      (data) => {
        parseContents(parseResponse(data).contents);
      },
      [utf8({ id: 1, application: 'describe', code: 200, message: 'ok', contents: CONTENTS })],
    );
  });
});

test.each([
  ['ovts://origin:9443/app/stream', { isSecure: true, host: 'origin', port: 9443, app: 'app', stream: 'stream' }],
  ['ovtss://h/a/s', null],
  ['ovt://origin:9001/app/stream', { isSecure: false, host: 'origin', port: 9001, app: 'app', stream: 'stream' }],
  ['OVT://10.0.0.1/app/stream', { isSecure: false, host: '10.0.0.1', port: 9000, app: 'app', stream: 'stream' }],
  ['ovt://[::1]:9000/app/stream/master?x=/1', { isSecure: false, host: '::1', port: 9000, app: 'app', stream: 'stream' }],
  ['ovt://user:pw@h/a%20b/s%2', { isSecure: false, host: 'h', port: 9000, app: 'a b', stream: 's%2' }],
  ['ovt://h/app', null],
  ['ovt://h/app/', null],
  ['ovt:///app/stream', null],
  ['ovt://h:0/a/s', null],
  ['ovt://h:70000/a/s', null],
  ['rtsp://h/a/s', null],
  ['ovt://h/a/s t', null],
])('the URL %s', (text, expected) => {
  expect(parseOvtUrl(text)).toEqual(expected);
});

test('codecs and layouts have the numbers of the reference', () => {
  const named = ['H264', 'H265', 'VP8', 'VP9', 'AV1', 'AAC', 'MP3', 'OPUS', 'JPEG', 'PNG', 'WEBP', 'PCMU'] as const;
  expect(named.map(codecIdOf)).toEqual([1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, undefined]);
  expect([1, 2, 7, 99].map(videoCodecOf)).toEqual(['H264', 'H265', undefined, undefined]);
  expect([7, 9, 1].map(audioCodecOf)).toEqual(['AAC', 'OPUS', undefined]);
  expect([1, 2, 6, 8].map(layoutOf)).toEqual([0x4, 0x3, 0x60f, 0x63f]);
  for (let channels = 1; channels <= 8; channels += 1) expect(channelsOf(layoutOf(channels))).toBe(channels);
});
