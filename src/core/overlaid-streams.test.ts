/** The encodes that get the images of an overlay map. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { FakeTranscoder } from '../../test/fakes/fake-transcoder.ts';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioPacket, audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import { readApplication } from '../config/index.ts';
import { Application } from './application.ts';
import type { IngestStream } from './ingest.ts';
import type { OverlayRule } from './overlay-files.ts';
import { QueueRegistry } from './queue-registry.ts';
import { TrafficMeter } from './traffic-meter.ts';
import type { OverlayRequest } from './transcoding.ts';

const profile = (name: string, outputStreamName: string) => ({
  ...{ name, outputStreamName },
  encodes: {
    videos: [
      { name: 'source', bypass: true },
      { name: 'low', codec: 'h264', bitrate: 100_000, height: 360 },
      { name: 'high', codec: 'h264', bitrate: 200_000, height: 720 },
    ],
    audios: [{ name: 'a', bypass: true }],
    images: [{ name: 'picture', codec: 'jpeg', framerate: 1 }],
  },
});
const logo = (imageId: string, more: Partial<OverlayRequest> = {}): OverlayRequest => ({
  ...{ url: `${imageId}.png`, image: Uint8Array.of(0x89), imageId, left: '0', top: '0', width: '100', height: '100', opacity: 1 },
  ...more,
});
const everywhere = (...overlays: OverlayRequest[]): OverlayRule => ({ streamName: '*', variantNames: [], overlays });

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

function start(profiles: readonly object[], overlays: object = { enable: true, path: '/maps/overlays.xml' }) {
  const clock = new ManualClock();
  const logger = new RecordingLogger();
  const transcoder = new FakeTranscoder();
  const read: string[] = [];
  let rules = Promise.withResolvers<readonly OverlayRule[]>();
  const { typed } = readApplication({
    ...{ name: 'app', type: 'live', providers: { rtmp: {} }, publishers: { llhls: {} } },
    outputProfiles: { outputProfile: profiles, mediaOptions: { overlays } },
  });
  let lastId = 0;
  const application = new Application('v', { name: 'app', config: typed, echo: {} }, new TrafficMeter(clock, null), {
    ...{ clock, logger, queues: new QueueRegistry(clock), transcoder, publishers: new Map() },
    readOverlays: (path) => {
      read.push(path);
      return rules.promise;
    },
    nextStreamId: () => (lastId += 1),
  });
  onTestFinished(() => application.close({ code: 'shutdown', detail: '' }));
  const publish = (streamName: string): IngestStream => {
    const onClose = (): void => {};
    const ingest = application.openIngest({ streamName, provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1', onClose });
    ingest.setTracks([videoTrack(), audioTrack()]);
    return ingest;
  };
  /** Ids of the images of each video encode that was asked for, by its height. */
  const images = () =>
    transcoder.sessions.flatMap(({ job }) =>
      job.encodes.flatMap((request) =>
        request.type === 'video' ? [[request.encode.height, ...(request.overlays ?? []).map(({ imageId }) => imageId)]] : [],
      ),
    );
  return {
    ...{ application, transcoder, read, logger, publish, images },
    resolve: async (found: readonly OverlayRule[]) => {
      rules.resolve(found);
      await settle();
    },
    again: () => {
      rules = Promise.withResolvers<readonly OverlayRule[]>();
    },
  };
}

/** A second of the stream. */
function send(ingest: IngestStream, from = 0): void {
  for (let index = from * 30; index < (from + 1) * 30; index += 1) ingest.push(videoPacket(index));
  for (let index = from * 47; index < (from + 1) * 47; index += 1) ingest.push(audioPacket(index));
}

describe('streams of an application with overlays', () => {
  test('wait for the map, which is read again for each stream', async () => {
    const { publish, read, transcoder, images, resolve, again } = start([profile('p', '${OriginStreamName}')]);
    send(publish('one'));
    await settle();
    expect([read, transcoder.sessions.length]).toEqual([['/maps/overlays.xml'], 0]);
    await resolve([everywhere(logo('a'))]);
    expect(images()).toEqual([
      [360, 'a'],
      [720, 'a'],
    ]);
    again();
    send(publish('two'));
    await resolve([]);
    expect([read.length, images().slice(2)]).toEqual([2, [[360], [720]]]);
  });

  test('get the images for their name and their encodes, and no others', async () => {
    const { publish, images, resolve } = start([profile('p', '${OriginStreamName}'), profile('q', '${OriginStreamName}_two')]);
    send(publish('s'));
    await resolve([
      { streamName: '${SourceStream}_two', variantNames: ['l*', 'none'], overlays: [logo('b')] },
      everywhere(logo('a')),
      { streamName: 'other', variantNames: [], overlays: [logo('c')] },
    ]);
    // Equal encodes are made once: the high encode is shared, the low one is not.
    expect(images()).toEqual([
      [360, 'a'],
      [720, 'a'],
      [360, 'b', 'a'],
    ]);
  });

  test('log that no overlay applies to a bypassed video', async () => {
    const { publish, logger, resolve } = start([profile('p', '${OriginStreamName}')]);
    send(publish('s'));
    await resolve([everywhere(logo('a'))]);
    expect(logger.matching('no overlay lies over source: the video passes as it is')).toHaveLength(1);
  });

  test('start without images when reading the map takes longer than packets can be held', async () => {
    const { publish, logger, images } = start([profile('p', '${OriginStreamName}')]);
    const ingest = publish('s');
    for (let second = 0; second < 52; second += 1) {
      send(ingest, second);
      await settle();
    }
    expect(images()).toEqual([[360], [720]]);
    expect(logger.matching('the overlay map could not be read in time: the stream has no overlays')).toHaveLength(1);
  });

  test.each([{ enable: false, path: '/m' }, { enable: true }])('do not read a map with %j', async (overlays) => {
    const { publish, read, images } = start([profile('p', '${OriginStreamName}')], overlays);
    send(publish('s'));
    await settle();
    expect([read, images()]).toEqual([[], [[360], [720]]]);
  });
});
