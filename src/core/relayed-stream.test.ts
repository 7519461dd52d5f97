/** Streams that pass as they are, with the names and playlists of their source. */
import { expect, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import { AVCC } from '../../test/fixtures/bitstreams.ts';
import { readApplication } from '../config/index.ts';
import type { Track } from '../media/track.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { Application } from './application.ts';
import { PublisherKind } from './kinds.ts';
import type { Playlist } from './playlist.ts';
import type { Publisher } from './publishing.ts';
import { QueueRegistry } from './queue-registry.ts';
import { TrafficMeter } from './traffic-meter.ts';

const OPTIONS = { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: false, enableSubtitles: true };
const HD = videoTrack({ id: 4, variantName: 'hd' });
const SD = videoTrack({ id: 6, variantName: 'sd', config: AVCC.baseline360 });
const AUDIO = audioTrack({ id: 9, variantName: 'aac' });

function playlist(fileName: string, ...videos: string[]): Playlist {
  const renditions = videos.map((name) => ({
    name,
    videoVariantName: name,
    audioVariantName: 'aac',
    videoIndexHint: -1,
    audioIndexHint: -1,
  }));
  return { name: `of the source`, fileName, options: OPTIONS, renditions };
}

function setUp(passthrough: boolean) {
  const clock = new ManualClock();
  const announced: (readonly Track[])[] = [];
  const publisher: Publisher = {
    kind: PublisherKind.LLHLS,
    defaultPlaylist: () => ({ ...playlist('llhls', 'hd'), name: 'default of the publisher' }),
    attach: () => ({ onTracks: (tracks) => announced.push(tracks), onPacket: () => undefined, close: () => undefined }),
  };
  const encodes = { videos: [{ name: 'own', bypass: true }], audios: [{ name: 'sound', bypass: true }] };
  const profile = { name: 'p', outputStreamName: '${OriginStreamName}_own', encodes };
  const { typed, echo } = readApplication({
    name: 'app',
    type: 'live',
    providers: { ovt: {} },
    publishers: { llhls: {} },
    outputProfiles: { outputProfile: [profile] },
  });
  const application = new Application('v', { name: 'app', config: typed, echo }, new TrafficMeter(clock, null), {
    clock,
    logger: new RecordingLogger(),
    queues: new QueueRegistry(clock),
    publishers: new Map([[publisher.kind, publisher]]),
    transcoder: null,
    nextStreamId: () => 1,
  });
  const request = {
    streamName: 's',
    provider: 'ovt',
    sourceType: 'Ovt',
    sourceUrl: 'ovt://o/app/s',
    passthrough,
    onClose: () => undefined,
  } as const;
  const stream = application.openPulled(request);
  return { stream, announced, output: () => stream.outputs[0]! };
}

test('tracks keep their names, and playlists of the source precede default playlists', () => {
  const { stream, output } = setUp(true);
  stream.setTracks([HD, SD, AUDIO], [playlist('abr', 'hd', 'sd')]);
  expect(output().name).toBe('s');
  expect(output().tracks.map(({ variantName }) => variantName)).toEqual(['hd', 'sd', 'aac', '']);
  expect(output().playlists.map(({ fileName, name }) => [fileName, name])).toEqual([
    ['abr', 'of the source'],
    ['llhls', 'default of the publisher'],
  ]);
  stream.close({ code: 'peer-left', detail: '' });
});

test('a playlist of the source replaces a default playlist with the same file name', () => {
  const { stream, output } = setUp(true);
  stream.setTracks([HD, AUDIO], [playlist('llhls', 'hd')]);
  expect(output().playlists.map(({ name }) => name)).toEqual(['of the source']);
  stream.close({ code: 'peer-left', detail: '' });
});

test('new playlists are announced although the tracks are unchanged', () => {
  const { stream, announced, output } = setUp(true);
  stream.setTracks([HD, SD, AUDIO], [playlist('abr', 'hd')]);
  stream.setTracks([HD, SD, AUDIO], [playlist('abr', 'hd')]);
  expect(announced).toHaveLength(1);
  stream.setTracks([HD, SD, AUDIO], [playlist('abr', 'hd', 'sd')]);
  expect(announced).toHaveLength(2);
  expect(output().playlists[0]?.renditions).toHaveLength(2);
  stream.close({ code: 'peer-left', detail: '' });
});

test('playlists of unreadable tracks are not adopted', () => {
  const { stream } = setUp(true);
  stream.setTracks([HD, AUDIO], [playlist('abr', 'hd')]);
  const unreadable = videoTrack({ id: 5, config: Buffer.of(1, 2) });
  expect(() => stream.setTracks([unreadable], [playlist('other', 'hd')])).toThrow(ProtocolError);
  expect(stream.playlists.map(({ fileName }) => fileName)).toEqual(['abr']);
  stream.close({ code: 'peer-left', detail: '' });
});

test('a renamed track counts as another track in playlists', () => {
  const { stream, output } = setUp(true);
  stream.setTracks([HD, AUDIO]);
  for (let index = 0; index < 3; index += 1) stream.push({ ...videoPacket(index), trackId: HD.id });
  stream.setTracks([{ ...HD, variantName: 'uhd' }, AUDIO]);
  expect(output().tracks[0]).toMatchObject({ id: 0, variantName: 'uhd' });
  stream.close({ code: 'peer-left', detail: '' });
});

test('without passthrough the profiles of the application decide', () => {
  const { stream, output } = setUp(false);
  stream.setTracks([HD, AUDIO], [playlist('abr', 'hd')]);
  expect(output().name).toBe('s_own');
  expect(output().tracks.map(({ variantName }) => variantName)).toEqual(['own', 'sound', '']);
  expect(output().playlists.map(({ fileName }) => fileName)).toEqual(['llhls']);
  expect(stream.tracks.map(({ variantName }) => variantName)).toEqual(['hd', 'aac', '']);
  stream.close({ code: 'peer-left', detail: '' });
});
