import { describe, expect, onTestFinished, test } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioPacket, audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import { readApplication, readOutputProfiles } from '../config/index.ts';
import type { Packet } from '../media/packet.ts';
import { Application } from './application.ts';
import type { CloseReason, IngestRequest, IngestStream } from './ingest.ts';
import { PublisherKind } from './kinds.ts';
import type { Advice, AdvisedStream } from './profile-advice.ts';
import type { Publisher } from './publishing.ts';
import { QueueRegistry } from './queue-registry.ts';
import { TrafficMeter } from './traffic-meter.ts';

const LOCAL = {
  name: 'local',
  outputStreamName: '${OriginStreamName}',
  encodes: { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }] },
};
const WEBHOOK = { enable: true, controlServerUrl: 'http://127.0.0.1:1/transcode', secretKey: 's' };

const immediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await immediate();
}

/** A request, and the function that answers it. */
interface Asked {
  readonly stream: AdvisedStream;
  readonly signal: AbortSignal;
  readonly answer: (advice: Advice) => void;
}

function start(more: object = {}) {
  const clock = new ManualClock();
  const logger = new RecordingLogger();
  const asked: Asked[] = [];
  const packets = new Map<string, Packet[]>();
  let closed = 0;
  const publisher: Publisher = {
    kind: PublisherKind.LLHLS,
    defaultPlaylist: () => null,
    attach: ({ name }) => {
      const mine: Packet[] = [];
      packets.set(name, mine);
      return { onTracks: () => undefined, onPacket: (packet) => mine.push(packet), close: () => undefined };
    },
  };
  const { typed } = readApplication({
    ...{ name: 'app', type: 'live', providers: { rtmp: {}, rtspPull: {} }, publishers: { llhls: {} } },
    ...{ outputProfiles: { outputProfile: [LOCAL] }, transcodeWebhook: WEBHOOK },
    ...more,
  });
  let lastId = 0;
  const application = new Application('v', { name: 'app', config: typed, echo: {} }, new TrafficMeter(clock, null), {
    ...{ clock, logger, queues: new QueueRegistry(clock), transcoder: null },
    publishers: new Map([[publisher.kind, publisher]]),
    adviserOf: () => ({
      advise: (stream, signal) => new Promise((answer) => asked.push({ stream, signal, answer })),
      close: () => {
        closed += 1;
      },
    }),
    nextStreamId: () => (lastId += 1),
  });
  onTestFinished(() => application.close({ code: 'shutdown', detail: '' }));
  const closes: CloseReason[] = [];
  const publish = (streamName: string, request: Partial<IngestRequest> = {}): IngestStream => {
    const onClose = (reason: CloseReason): void => void closes.push(reason);
    const sourceUrl = 'TCP://127.0.0.1:1';
    const ingest = application.openIngest({ streamName, provider: 'rtmp', sourceType: 'Rtmp', sourceUrl, onClose, ...request });
    ingest.setTracks([videoTrack(), audioTrack()]);
    return ingest;
  };
  return { application, asked, packets, publish, closes, logger, closed: () => closed };
}

/** A second of the stream. */
function send(ingest: IngestStream, from = 0): void {
  for (let index = from * 30; index < (from + 1) * 30; index += 1) ingest.push(videoPacket(index));
  for (let index = from * 47; index < (from + 1) * 47; index += 1) ingest.push(audioPacket(index));
}

function profiles(...outputProfile: object[]): Advice {
  return { kind: 'profiles', outputProfiles: readOutputProfiles({ outputProfile }).typed };
}

describe('a stream whose output profiles a control server chooses', () => {
  test('is held until the answer without loss, and does not delay other streams', async () => {
    const { asked, packets, publish, application } = start();
    const [one, two] = [publish('one'), publish('two')];
    send(one);
    send(two);
    await settle();
    expect(asked.map(({ stream }) => [stream.stream, stream.vhost, stream.tracks.map(({ type }) => type)])).toEqual([
      ['one', 'v', ['video', 'audio', 'data']],
      ['two', 'v', ['video', 'audio', 'data']],
    ]);
    expect(packets.size).toBe(0);
    asked[1]?.answer(profiles({ ...LOCAL, name: 'theirs', outputStreamName: '${OriginStreamName}_theirs' }));
    await settle();
    expect([...packets.keys()]).toEqual(['two_theirs']);
    send(two, 1);
    await settle();
    expect(packets.get('two_theirs')).toHaveLength(2 * 77);
    asked[0]?.answer({ kind: 'local', reason: 'it is away' });
    await settle();
    expect(packets.get('one')).toHaveLength(77);
    expect(packets.get('one')?.[0]?.keyframe).toBe(true);
    expect(application.outbound('two_theirs')?.tracks.map(({ variantName }) => variantName)).toEqual(['v', 'a', '']);
  });

  test('logs the source of its profiles', async () => {
    const { asked, publish, logger } = start();
    for (const name of ['one', 'two']) send(publish(name));
    await settle();
    asked[0]?.answer(profiles({ ...LOCAL, name: 'theirs' }));
    asked[1]?.answer({ kind: 'local', reason: 'it is away' });
    await settle();
    expect(logger.matching('output profiles of the control server: theirs')).toHaveLength(1);
    expect(logger.matching('the output profiles of the configuration are used: it is away')).toHaveLength(1);
  });

  test.each<[string, Advice, string]>([
    ['it is refused', { kind: 'refused', reason: 'not today' }, 'not today'],
    ['there are no profiles', profiles(), 'the control server gives no output profile'],
  ])('ends with the reason when %s', async (_what, advice, reason) => {
    const { asked, packets, publish, closes, logger, application } = start({ sourceLoss: { keepStreamMs: 60_000 } });
    const ingest = publish('s');
    send(ingest);
    await settle();
    asked[0]?.answer(advice);
    await settle();
    expect(closes).toEqual([{ code: 'denied', detail: reason }]);
    expect(ingest.closed).toBe(true);
    expect([application.hasStream('s'), packets.size]).toEqual([false, 0]);
    expect(logger.matching(`stream refused: ${reason}`)).toHaveLength(1);
    expect(logger.matching(`stream closed: ${reason}`)).toHaveLength(1);
  });

  test('ends when there are no profiles to fall back to', async () => {
    const { asked, publish, closes } = start({ outputProfiles: { outputProfile: [] } });
    send(publish('s'));
    await settle();
    asked[0]?.answer({ kind: 'local', reason: 'it is away' });
    await settle();
    expect(closes).toEqual([{ code: 'denied', detail: 'it is away' }]);
  });

  test('is no longer delayed when the held packets reach their limit', async () => {
    const { asked, publish } = start();
    const ingest = publish('s');
    for (let second = 0; second < 52; second += 1) {
      send(ingest, second);
      await immediate();
    }
    await settle();
    expect(asked[0]?.signal.aborted).toBe(true);
    expect(asked).toHaveLength(1);
  });

  test('cancels the request when it ends', async () => {
    const { asked, publish, application, packets, closed } = start();
    const ingest = publish('s');
    send(ingest);
    await settle();
    ingest.close({ code: 'peer-left', detail: 'bye' });
    expect(asked[0]?.signal.aborted).toBe(true);
    asked[0]?.answer(profiles(LOCAL));
    await settle();
    expect(packets.size).toBe(0);
    application.close({ code: 'deleted', detail: '' });
    expect(closed()).toBe(1);
  });

  test('is asked about again when another source replaces it', async () => {
    const { asked, application, packets, closes } = start();
    const request = { streamName: 's', provider: 'rtsppull', sourceType: 'RtspPull', sourceUrl: 'rtsp://a' } as const;
    const refusals: CloseReason[] = [];
    const onUnusable = (reason: CloseReason): void => void refusals.push(reason);
    const stream = application.openPulled({ ...request, onClose: (reason) => closes.push(reason), onUnusable });
    stream.setTracks([videoTrack(), audioTrack()]);
    send(stream);
    await settle();
    asked[0]?.answer({ kind: 'refused', reason: 'not this one' });
    await settle();
    expect([refusals, closes]).toEqual([[{ code: 'denied', detail: 'not this one' }], []]);
    stream.moveTo('rtsp://b');
    stream.changeSource();
    stream.setTracks([videoTrack(), audioTrack()]);
    send(stream, 1);
    await settle();
    expect(asked.map(({ stream: { sourceUrl } }) => sourceUrl)).toEqual(['rtsp://a', 'rtsp://b']);
    asked[1]?.answer({ kind: 'local', reason: 'fine' });
    await settle();
    expect(packets.get('s')).toHaveLength(77);
  });

  test('is asked about again when another source replaces it before the answer', async () => {
    const { asked, application, packets, closes } = start();
    const request = { streamName: 's', provider: 'rtsppull', sourceType: 'RtspPull', sourceUrl: 'rtsp://a' } as const;
    const refusals: CloseReason[] = [];
    const onUnusable = (reason: CloseReason): void => void refusals.push(reason);
    const stream = application.openPulled({ ...request, onClose: (reason) => closes.push(reason), onUnusable });
    stream.setTracks([videoTrack(), audioTrack()]);
    send(stream);
    await settle();
    stream.moveTo('rtsp://b');
    stream.changeSource();
    stream.setTracks([videoTrack(), audioTrack()]);
    asked[0]?.answer({ kind: 'refused', reason: 'not that one' });
    await settle();
    expect([asked.map(({ stream: { sourceUrl } }) => sourceUrl), refusals, closes]).toEqual([['rtsp://a', 'rtsp://b'], [], []]);
    asked[1]?.answer({ kind: 'local', reason: 'fine' });
    await settle();
    expect(packets.get('s')).toHaveLength(77);
  });

  test('is not delayed when it passes through unchanged', async () => {
    const { asked, publish, packets } = start();
    send(publish('s', { passthrough: true }));
    await settle();
    expect([asked.length, packets.get('s')?.length]).toEqual([0, 77]);
  });
});

test('a disabled webhook is not asked', async () => {
  const { asked, publish, packets } = start({ transcodeWebhook: { ...WEBHOOK, enable: false } });
  send(publish('s'));
  await settle();
  expect([asked.length, packets.get('s')?.length]).toEqual([0, 77]);
});
