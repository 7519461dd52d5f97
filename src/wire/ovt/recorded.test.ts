/** The bytes of a real OvenMediaEngine through the parsers. */
import { expect, test } from 'vitest';
import { packetsOf, recordedOvt } from '../../../test/fakes/recorded-ovt.ts';
import { describeContents, parseContents } from './description.ts';
import { type OvtMediaPacket, parseMediaPacket } from './media-packet.ts';
import { parseRequest, parseResponse, serializeRequest } from './message.ts';
import { OvtPayloadType } from './packet.ts';
import { OvtReader } from './reader.ts';

interface Exchange {
  readonly messages: Uint8Array[];
  readonly media: OvtMediaPacket[];
}

/** Read in pieces of this size. */
function read(bytes: Buffer, piece: number): Exchange {
  const exchange: Exchange = { messages: [], media: [] };
  const reader = new OvtReader({ message: 65_536, media: 65_536 });
  for (let at = 0; at < bytes.length; at += piece) {
    reader.push(bytes.subarray(at, at + piece), (type, payload) => {
      if (type === OvtPayloadType.MEDIA) exchange.media.push(parseMediaPacket(payload));
      else exchange.messages.push(payload);
    });
  }
  return exchange;
}

function jsonOf(payload: Uint8Array): Record<string, unknown> {
  return JSON.parse(new TextDecoder().decode(payload)) as Record<string, unknown>;
}

/** Paths of all members that are no objects, with their type; the items of a list are one. */
function shapeOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((item) => shapeOf(item, `${path}[]`)))];
  if (typeof value !== 'object' || value === null) return [`${path}: ${typeof value}`];
  return Object.entries(value).flatMap(([key, member]) => shapeOf(member, `${path}.${key}`));
}

const RECORDINGS = ['origin-ladder', 'origin-h265'] as const;

test.each(RECORDINGS)('%s parses to the same messages in pieces of any size', (file) => {
  const bytes = recordedOvt(file);
  const whole = read(bytes, bytes.length);
  expect(whole.messages.map((message) => parseResponse(message)).map(({ id, command, code }) => [id, command, code])).toEqual([
    [1, 'describe', 200],
    [2, 'play', 200],
    [3, 'stop', 200],
  ]);
  for (const piece of [7, 40_000]) expect(read(bytes, piece)).toEqual(whole);
});

test('a ladder is described with its tracks, configurations, playlists and options', () => {
  const [message] = read(recordedOvt('origin-ladder'), 1e6).messages;
  const described = parseContents(parseResponse(message!).contents);
  expect(described).toMatchObject({
    appName: '#default#ladder',
    streamName: 'small',
    tracks: [
      { id: 0, name: 'bypass_video', codecId: 1, mediaType: 0, timebase: { num: 1, den: 1000 }, width: 160, height: 90, framerate: 10 },
      { id: 1, name: 'v240', codecId: 1, mediaType: 0, timebase: { num: 1, den: 90_000 }, width: 96, height: 56 },
      { id: 2, name: 'bypass_audio', codecId: 7, mediaType: 1, timebase: { num: 1, den: 1000 }, sampleRate: 48_000, layout: 3 },
      { id: 3, name: 'opus', codecId: 9, mediaType: 1, timebase: { num: 1, den: 48_000 }, layout: 3, config: null },
      { id: 4, name: 'Data', codecId: 0, mediaType: 2 },
    ],
    playlists: [
      {
        name: 'abr playlist',
        fileName: 'abr',
        webrtcAutoAbr: false,
        hlsChunklistPathDepth: 0,
        enableTsPackaging: true,
        renditions: [
          { name: 'full', videoTrackName: 'bypass_video', audioTrackName: 'bypass_audio', videoIndexHint: -1, audioIndexHint: -1 },
          { name: 'small', videoTrackName: 'v240', audioTrackName: 'bypass_audio' },
        ],
      },
      { name: 'rtc playlist', fileName: 'rtc', webrtcAutoAbr: true, renditions: [{ videoTrackName: 'v240', audioTrackName: 'opus' }] },
    ],
  });
  expect(described.tracks.slice(0, 3).map(({ config }) => config?.[0])).toEqual([1, 1, 0x11]);
});

test('a stream without playlists is described without playlists', () => {
  const [message] = read(recordedOvt('origin-h265'), 1e6).messages;
  const described = parseContents(parseResponse(message!).contents);
  expect(described.playlists).toEqual([]);
  expect(described.tracks.map(({ codecId, mediaType }) => [codecId, mediaType])).toEqual([
    [0, 2],
    [2, 0],
    [7, 1],
  ]);
});

test('a written description has every member that OvenMediaEngine writes, with the same type', () => {
  const [message] = read(recordedOvt('origin-ladder'), 1e6).messages;
  const { contents } = jsonOf(message!);
  const ours = shapeOf(JSON.parse(JSON.stringify(describeContents(parseContents(contents)))));
  expect(shapeOf(contents).length).toBeGreaterThan(10);
  expect(shapeOf(contents).filter((member) => !ours.includes(member))).toEqual([]);
});

test('requests of OvenMediaEngine equal those of the client', () => {
  const requests = packetsOf(recordedOvt('edge-requests'));
  const target = 'ovt://127.0.0.1:29101/app/live';
  const commands = ['describe', 'play', 'stop'];
  expect(read(recordedOvt('edge-requests'), 1e6).messages.map(parseRequest)).toEqual(
    commands.map((command, index) => ({ id: index + 1, command, target })),
  );
  const ours = commands.map((command, index) => serializeRequest({ id: index + 1, command, target }, 0));
  expect(requests.map(({ bytes }) => bytes.subarray(0, 4))).toEqual(ours.map((bytes) => bytes.subarray(0, 4)));
  expect(requests.map(({ bytes }) => bytes.subarray(12, 18))).toEqual(ours.map((bytes) => bytes.subarray(12, 18)));
  expect(requests.map(({ bytes }) => jsonOf(bytes.subarray(18)))).toEqual(ours.map((bytes) => jsonOf(bytes.subarray(18))));
});
