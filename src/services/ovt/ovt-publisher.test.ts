import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  AAC,
  ABR,
  closing,
  GONE,
  HD,
  LiveStream,
  listen,
  media,
  origin,
  pull,
  RawEdge,
  SD,
  serve,
  setUpOrigin,
  TRACKS,
  until,
  url,
} from '../../../test/fakes/ovt-publishing.ts';
import { packetsOf, recordedOvt } from '../../../test/fakes/recorded-ovt.ts';
import { dataTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { AVCC } from '../../../test/fixtures/bitstreams.ts';
import { Urgency } from '../../core/urgency.ts';
import type { Packet } from '../../media/packet.ts';
import type { TimedEvent } from '../../media/timed-event.ts';
import type { Track } from '../../media/track.ts';
import { parseContents } from '../../wire/ovt/description.ts';
import { serializeRequest, serializeResponse } from '../../wire/ovt/message.ts';
import { OvtPublisher } from './ovt-publisher.ts';

setUpOrigin();

describe('events', () => {
  const [, , , , data] = TRACKS as readonly [Track, Track, Track, Track, Track];
  const event = (pts: number, bytes: string, timed?: TimedEvent): Packet => ({
    ...{ track: data, pts, dts: 0, duration: 0, keyframe: true, data: Buffer.from(bytes) },
    ...(timed !== undefined && { event: timed }),
  });
  const all: readonly TimedEvent[] = [
    { format: 'id3v2', target: 'video' },
    { format: 'cue', target: 'all' },
    { format: 'scte35', target: 'all' },
    { format: 'amf', target: 'audio' },
    { format: 'conclusion', target: 'all' },
  ];

  test('are relayed with their time, purpose and target, except for SEI, which is part of the frames', async () => {
    await listen();
    const { served } = serve();
    const { sink } = await pull();
    for (const [index, timed] of all.entries()) served.onPacket(event(90_000 * index, `bytes ${index}`, timed));
    served.onPacket(event(0, 'sei', { format: 'sei', target: 'video' }));
    served.onPacket(event(45_000, 'ID3 of the source'));
    served.onPacket(event(45_000, 'something else of the source'));
    const [frame] = media(1);
    if (frame !== undefined) served.onPacket(frame);
    await sink.until(({ packets }) => packets.length === 2);
    expect(sink.events.map(({ data: bytes, ...rest }) => ({ ...rest, text: Buffer.from(bytes).toString() }))).toEqual(
      all.map((timed, at) => ({ ...timed, at, settled: true, text: `bytes ${at}` })),
    );
    expect(sink.packets[0]).toMatchObject({ trackId: 4, pts: 45_000, data: Buffer.from('ID3 of the source') });
  });

  test('are not sent to an edge that does not support them', async () => {
    await listen();
    const { served } = serve();
    const edge = new RawEdge();
    edge.ask('play', url());
    await edge.answer(1);
    served.onPacket(event(0, 'ID3', { format: 'id3v2', target: 'all' }));
    const [frame] = media(1);
    if (frame !== undefined) served.onPacket(frame);
    await until(() => edge.media.length > 0);
    expect(edge.media).toEqual([0]);
  });
});

describe('a relayed stream', () => {
  test('arrives with its tracks, playlists and every byte', async () => {
    await listen();
    const { stream, served } = serve();
    const { sink } = await pull();
    expect(sink.tracks).toMatchObject([
      [
        { id: 0, type: 'video', codec: 'H264', variantName: 'hd', config: HD.config, framerateConf: 30, timebase: HD.timebase },
        { id: 1, type: 'video', variantName: 'sd', config: SD.config, bitrateConf: 800_000, width: 640 },
        { id: 2, type: 'audio', codec: 'AAC', config: AAC.config, language: 'de', publicName: 'Deutsch', channels: 2, sampleRate: 48_000 },
        { id: 3, type: 'audio', codec: 'OPUS', variantName: 'opus', channels: 2 },
        { id: 4, type: 'data', variantName: 'Data' },
      ],
    ]);
    expect(sink.playlists).toEqual([ABR]);
    expect(stream.viewers).toBe(1);

    const sent = media(2);
    for (const packet of sent) served.onPacket(packet);
    await sink.until(({ packets }) => packets.length === sent.length);
    expect(sink.packets.map(({ trackId, pts, dts }) => [trackId, pts, dts])).toEqual(
      sent.map(({ track, pts, dts }) => [track.id, pts, dts]),
    );
    for (const [index, packet] of sent.entries()) {
      const { data, keyframe } = sink.packets[index]!;
      expect(keyframe).toBe(packet.keyframe);
      // Frames end with their original bytes, behind start codes and parameter sets.
      const body = packet.track.type === 'video' ? packet.data.subarray(4) : packet.data;
      expect(Buffer.compare(data.subarray(data.length - body.length), body)).toBe(0);
      if (packet.track.type === 'audio') expect(data.length).toBe(body.length);
    }
    await until(() => sink.bytes >= stream.bytes);
    expect(stream.bytes).toBeGreaterThan(sent.reduce((sum, { data }) => sum + data.length, 0));
  });

  test('begins in the middle: audio at once, each frame track with its keyframe', async () => {
    await listen();
    const { served } = serve();
    const { sink } = await pull();
    const sent = media(2).filter(({ dts, track, keyframe }) => dts > 0 && !(keyframe && track === SD));
    for (const packet of sent) served.onPacket(packet);
    const last = sent.filter(({ track }) => track !== SD).at(-1)!;
    await sink.until(({ packets }) => packets.some(({ trackId, pts }) => trackId === last.track.id && pts === last.pts));
    const firstOf = (id: number) => sink.packets.find(({ trackId }) => trackId === id);
    expect(firstOf(AAC.id)?.pts).toBe(1024);
    expect(firstOf(HD.id)).toMatchObject({ pts: 90_000, keyframe: true });
    expect(firstOf(SD.id)).toBeUndefined();
  });

  test('ends at the edge when it ends at the origin, and when its tracks change', async () => {
    await listen();
    const { stream, served } = serve();
    const first = await pull();
    served.onTracks(TRACKS.map((track) => (track === HD ? { ...HD, config: AVCC.main1080 } : track)));
    expect(stream.viewers).toBe(1);
    served.onTracks([HD, AAC]);
    await first.sink.until(({ reason }) => reason !== null);
    expect(first.sink.reason).toEqual({ code: 'peer-left', detail: 'the origin stopped: its tracks have changed' });
    expect(stream.viewers).toBe(0);
    const second = await pull();
    served.close(GONE);
    await second.sink.until(({ reason }) => reason !== null);
    expect(second.sink.reason?.detail).toContain('the encoder left');
    await until(() => origin.publisher.connections === 0);
    await expect(pull()).rejects.toThrow('404');
  });

  test('is a session per edge with an id and a byte count, and can be disconnected', async () => {
    await listen();
    const { stream, served } = serve();
    const [one, two] = [await pull(), await pull()];
    const [packet] = media(1).filter(({ track }) => track === AAC);
    served.onPacket(packet!);
    expect(new Set(stream.sessions.map(({ request }) => request.id)).size).toBe(2);
    expect(stream.sessions.map(({ bytes }) => bytes * 2)).toEqual([stream.bytes, stream.bytes]);
    stream.sessions[0]!.request.onTerminate('sent away');
    await one.sink.until(({ reason }) => reason !== null);
    expect(one.sink.reason?.detail).toBe('the origin stopped: sent away');
    expect([stream.viewers, two.sink.reason, stream.ends]).toEqual([1, null, ['sent away']]);
  });

  test('is left when the edge closes it, and by an edge that disappears', async () => {
    await listen();
    const { stream, served } = serve();
    expect(served.urgency).toBe(Urgency.NONE);
    const { close } = await pull();
    expect(served.urgency).toBe(Urgency.REAL_TIME);
    close();
    await until(() => stream.viewers === 0 && origin.publisher.connections === 0);
    expect(served.urgency).toBe(Urgency.NONE);
    const edge = new RawEdge();
    edge.ask('play', url());
    await edge.answer(1);
    expect(stream.viewers).toBe(1);
    edge.socket.destroy();
    await until(() => stream.viewers === 0 && origin.publisher.connections === 0);
  });

  test('leaves out and counts packets that it cannot serialize', async () => {
    await listen();
    const { served } = serve();
    const { sink } = await pull();
    const [packet] = media(1).filter(({ track }) => track === HD);
    served.onPacket({ ...packet!, data: Uint8Array.of(0, 0, 0, 9, 1) });
    served.onPacket({ ...packet!, track: dataTrack(4) });
    served.onPacket(packet!);
    await sink.until(({ packets }) => packets.length === 1);
    expect(served.malformed).toBe(1);
  });
});

describe('requests', () => {
  test('one connection may play several streams and stop one of them', async () => {
    await listen();
    const one = serve('one', 7);
    const two = serve('two', 8);
    const edge = new RawEdge();
    edge.ask('DESCRIBE', url('one'), 1);
    expect(await edge.answer(1)).toMatchObject({ id: 1, command: 'describe', code: 200, message: 'ok' });
    edge.ask('play', url('one'), 2);
    edge.ask('play', url('two'), 3);
    expect(await edge.answer(3)).toMatchObject({ id: 3, command: 'play', code: 200, contents: undefined });
    edge.ask('play', url('two'), 4);
    expect(await edge.answer(4)).toMatchObject({ id: 4, code: 404 });
    const [packet] = media(1);
    one.served.onPacket(packet!);
    two.served.onPacket({ ...packet!, track: SD });
    await until(() => edge.media.length === 2);
    expect(edge.media).toEqual([0, 1]);
    edge.ask('stop', url('one'), 5);
    expect(await edge.answer(5)).toMatchObject({ id: 5, command: 'stop', code: 200 });
    expect([one.stream.viewers, two.stream.viewers]).toEqual([0, 1]);
    edge.ask('stop', url('one'), 6);
    expect(await edge.answer(6)).toMatchObject({ id: 6, command: 'stop', code: 200 });
    expect([one.stream.viewers, two.stream.viewers]).toEqual([0, 1]);
    edge.ask('stop', url('three'), 7);
    expect(await edge.answer(7)).toMatchObject({ id: 7, command: 'stop', code: 404 });
    two.served.close(GONE);
    expect(await edge.answer(8)).toMatchObject({ id: 0, command: 'stop', code: 200 });
    await until(() => edge.socket.closed);
  });

  test.each([
    ['an unknown stream', 'describe', 'ovt://127.0.0.1/app/none', 'There is no such stream (#default#app/none)'],
    ['a stream that cannot be played', 'play', 'ovt://127.0.0.1/app/none', 'There is no such stream (#default#app/none)'],
    ['an unknown application', 'play', 'ovt://127.0.0.1/none/live', 'There is no such app (#default#none)'],
    ['an unknown host', 'describe', 'ovt://elsewhere/app/live', 'There is no such stream (#elsewhere#app/live)'],
    ['a text that is not a URL', 'play', 'live', 'There is no such stream (live)'],
    ['an unknown request', 'record', 'ovt://127.0.0.1/app/live', 'Unknown application'],
  ])('%s is 404', async (_name, command, target, message) => {
    await listen();
    serve();
    const edge = new RawEdge();
    edge.ask(command, target, 9);
    expect(await edge.answer(1)).toMatchObject({ id: 9, command, code: 404, message });
  });

  test('the answer repeats an unknown command', async () => {
    await listen();
    const edge = new RawEdge();
    edge.ask('Dance', url(), 9);
    await edge.answer(1);
    expect(edge.texts).toEqual(['{"id":9,"application":"Dance","code":404,"message":"Unknown application"}']);
  });

  test('a stream that has not started is awaited for a limited time', async () => {
    await listen({ startWait: 50 });
    const stream = new LiveStream(7, 'live');
    const served = origin.publisher.attach(stream);
    const edge = new RawEdge();
    edge.ask('describe', url());
    expect(await edge.answer(1)).toMatchObject({ code: 202 });
    edge.ask('describe', url());
    edge.ask('play', url(), 2);
    served.onTracks(TRACKS);
    expect(await edge.answer(3)).toMatchObject({ id: 2, code: 200 });
    const late = origin.publisher.attach(new LiveStream(8, 'late'));
    edge.ask('play', url('late'), 3);
    late.close(GONE);
    expect((await edge.answer(4)).code).toBeGreaterThan(200);
    served.close(GONE);
  });

  test('an internal fault closes only the connection that caused it', async () => {
    await listen();
    const { served } = serve();
    let fault: Error | null = null;
    const described = served.description.bind(served);
    served.description = (codecs) => {
      if (fault !== null) throw fault;
      return described(codecs);
    };
    const before = await pull();
    fault = new TypeError('made up');
    await expect(pull()).rejects.toThrow('500 Server Internals Error');
    expect(origin.logger.matching('OVT connection failed inside the server').map(({ fields }) => fields['err'])).toEqual([fault]);
    expect(before.sink.reason).toBeNull();
    expect(served.sessions).toBe(1);
  });

  test('a malformed request is answered with 404', async () => {
    await listen();
    const edge = new RawEdge();
    const bytes = serializeRequest({ id: 1, command: 'play', target: 'x' }, 0);
    bytes[18] = 0x21;
    edge.socket.write(bytes);
    expect(await edge.answer(1)).toMatchObject({ id: 0, command: 'unknown', code: 404 });
  });

  test.each([
    ['another version', Buffer.alloc(18, 0xff)],
    ['media', Buffer.from('601e0000000000000000000000000000000000010a', 'hex')],
    ['a response', serializeResponse({ id: 1, command: 'play', code: 200, message: '', contents: undefined }, 0)],
    [
      'a request of many megabytes',
      Buffer.concat(
        Array.from({ length: 3 }, () =>
          Buffer.concat([
            Buffer.from('400a000000000000000000000000000000007fee', 'hex').subarray(0, 16),
            Buffer.from('7fee', 'hex'),
            Buffer.alloc(32_750),
          ]),
        ),
      ),
    ],
    [
      'too many requests at once',
      Buffer.concat(
        Array.from({ length: 40 }, () => serializeRequest({ id: 1, command: 'play', target: 'ovt://127.0.0.1/app/starting' }, 0)),
      ),
    ],
  ])('%s ends the connection with 500', async (_name, bytes) => {
    await listen();
    const starting = origin.publisher.attach(new LiveStream(8, 'starting'));
    const edge = new RawEdge();
    edge.socket.write(bytes);
    expect(await edge.answer(1)).toMatchObject({ id: 0, command: 'unknown', code: 500, message: 'Server Internals Error' });
    await until(() => edge.socket.closed && origin.publisher.connections === 0);
    starting.close(GONE);
  });
});

test('packets of unknown types are skipped, whole and in pieces', async () => {
  await listen();
  serve();
  const edge = new RawEdge();
  const request = serializeRequest({ id: 5, command: 'describe', target: 'ovt://127.0.0.1/app/live' }, 0);
  // Longer than any message may be.
  const unknown = Array.from({ length: 4 }, () => Buffer.concat([Buffer.from(`6063${'00'.repeat(14)}7fee`, 'hex'), Buffer.alloc(32_750)]));
  edge.socket.write(Buffer.concat([...unknown, request, unknown[0]!.subarray(0, 10)]));
  expect(await edge.answer(1)).toMatchObject({ id: 5, code: 200 });
  edge.socket.write(Buffer.concat([unknown[0]!.subarray(10), request]));
  expect(await edge.answer(2)).toMatchObject({ id: 5, code: 200 });
});

test('looks up a missing stream, and serves it when it starts', async () => {
  const wanted: object[] = [];
  const find = (target: { stream: string }): Promise<boolean> | null => {
    wanted.push(target);
    if (target.stream !== 'far') return null;
    return delay(20).then(() => {
      serve('far', 9);
      return true;
    });
  };
  await origin.publisher.stop();
  origin.publisher = new OvtPublisher({ ...origin, finder: { find } });
  await listen();
  const { sink } = await pull(url('far'));
  expect(sink.tracks[0]).toHaveLength(TRACKS.length);
  await expect(pull(url('nowhere'))).rejects.toThrow('404');
  // The next station gets the path of the request.
  const via = [expect.any(String)];
  expect(wanted).toEqual(
    ['far', 'nowhere'].map((stream) => ({ vhost: 'default', app: 'app', stream, query: '', client: '127.0.0.1', via })),
  );
});

describe('a real OvenMediaEngine as the edge', () => {
  test('gets answers with the ids of its requests, and media of each track', async () => {
    await listen();
    const { stream, served } = serve();
    const edge = new RawEdge();
    const [describing, play, stop] = packetsOf(recordedOvt('edge-requests')).map(({ bytes }) => bytes);
    edge.socket.write(describing!);
    expect(await edge.answer(1)).toMatchObject({ id: 1, command: 'describe', code: 200, message: 'ok' });
    edge.socket.write(play!);
    expect(await edge.answer(2)).toMatchObject({ id: 2, command: 'play', code: 200, message: 'ok' });
    for (const packet of media(1)) served.onPacket(packet);
    await until(() => new Set(edge.media).size === 4);
    edge.socket.write(stop!);
    expect(await edge.answer(3)).toMatchObject({ id: 3, command: 'stop', code: 200 });
    expect(stream.viewers).toBe(0);
  });

  test('gets only configured playlists, and makes its default playlists itself', async () => {
    await listen();
    const { stream } = serve();
    stream.playlists = [ABR, { ...ABR, fileName: 'llhls', publisherDefault: true }];
    const { sink } = await pull();
    expect(sink.playlists).toEqual([ABR]);
  });

  test.each([
    ['is told of no AV1, with which it would never be ready', undefined, ['hd', 'aac'], ['high'], [0, 2]],
    ['that says it takes AV1 gets that too', [5, 99], ['hd', 'av1', 'aac'], ['high', 'tiny'], [0, 1, 2]],
  ] as const)('%s', async (_name, codecs, names, renditions, ids) => {
    await listen();
    const stream = new LiveStream(7, 'live');
    const av1 = videoTrack({ id: 1, variantName: 'av1', codec: 'AV1', config: null });
    stream.tracks = [HD, av1, AAC];
    const [high] = ABR.renditions;
    const tiny = { ...high!, name: 'tiny', videoVariantName: 'av1' };
    stream.playlists = [
      { ...ABR, renditions: [high!, tiny] },
      { ...ABR, fileName: 'only-av1', renditions: codecs === undefined ? [tiny] : [] },
    ];
    const served = origin.publisher.attach(stream);
    closing.push(() => served.close(GONE));
    served.onTracks(stream.tracks);
    const edge = new RawEdge();
    edge.ask('describe', url(), 1, codecs);
    const { tracks, playlists } = parseContents((await edge.answer(1)).contents);
    expect(tracks.map(({ name }) => name)).toEqual(names);
    expect(playlists.map(({ fileName, renditions }) => [fileName, renditions.map(({ name }) => name)])).toEqual([['abr', renditions]]);
    edge.ask('play', url(), 2, codecs);
    await edge.answer(2);
    const [packet] = media(1);
    served.onPacket({ ...packet!, track: av1, data: Buffer.from([0x12, 0]) });
    served.onPacket({ ...packet!, track: HD });
    served.onPacket({ ...packet!, track: AAC, data: Buffer.alloc(10) });
    await until(() => edge.media.includes(2));
    expect(edge.media.toSorted()).toEqual(ids);
  });
});

test('registers a stream in the directory when edges can fetch it, removes it at its end, and never registers a relayed stream', async () => {
  const told: string[] = [];
  const directory = {
    add: ({ name }: { name: string }): void => void told.push(`+${name}`),
    remove: ({ name }: { name: string }): void => void told.push(`-${name}`),
  };
  await origin.publisher.stop();
  origin.publisher = new OvtPublisher({ ...origin, directory });
  const early = origin.publisher.attach(new LiveStream(8, 'early'));
  early.close(GONE);
  const { served } = serve('live');
  served.onTracks(TRACKS);
  const relayed = origin.publisher.attach(Object.assign(new LiveStream(9, 'relayed'), { fromOriginMap: true }));
  relayed.onTracks(TRACKS);
  relayed.close(GONE);
  expect(told).toEqual(['+live']);
  served.close(GONE);
  served.close(GONE);
  served.onTracks(TRACKS);
  expect(told).toEqual(['+live', '-live']);
});
