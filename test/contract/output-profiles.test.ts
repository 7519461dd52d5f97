/** Output profiles from ingest to delivery: the core, the publishers and real HTTP, with a transcoder that returns its input. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readApplication, readVirtualHost } from '../../src/config/index.ts';
import type { IngestStream } from '../../src/core/ingest.ts';
import { Orchestrator } from '../../src/core/orchestrator.ts';
import { QueueRegistry } from '../../src/core/queue-registry.ts';
import { DeliveryPool } from '../../src/delivery/pool/delivery-pool.ts';
import { VIEWS } from '../../src/delivery-views.ts';
import { streamInformation } from '../../src/monitoring/stream-info.ts';
import { LlhlsPublisher } from '../../src/services/hls/packager/fmp4/llhls-publisher.ts';
import { ThumbnailPublisher } from '../../src/services/thumbnail/thumbnail-publisher.ts';
import { systemClock } from '../../src/util/clock.ts';
import { FakeTranscoder } from '../fakes/fake-transcoder.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { accessUnit, audioPacket, audioTrack, videoPacket, videoTrack } from '../fakes/source.ts';
import { AVCC } from '../fixtures/bitstreams.ts';
import { MemoryStore } from './harness.ts';

const LADDER = {
  name: 'ladder',
  outputStreamName: '${OriginStreamName}_out',
  encodes: {
    videos: [
      { name: 'source', bypass: true },
      { name: 'small', codec: 'h264', bitrate: 300_000, height: 90 },
    ],
    audios: [{ name: 'aac', bypass: true }],
    images: [{ name: 'picture', codec: 'jpeg', width: 160, framerate: 1 }],
  },
  playlists: [
    {
      name: 'abr',
      fileName: 'abr',
      renditions: [
        { name: 'small', video: 'small', audio: 'aac' },
        { name: 'source', video: 'source', audio: 'aac' },
      ],
    },
  ],
};

let pool: DeliveryPool;
let orchestrator: Orchestrator;
let transcoder: FakeTranscoder;
let base: string;

beforeEach(async () => {
  const logger = new RecordingLogger();
  pool = new DeliveryPool({ threads: 1, views: VIEWS, clock: systemClock, logger });
  transcoder = new FakeTranscoder();
  const publishers = [new LlhlsPublisher(pool), new ThumbnailPublisher(pool)] as const;
  orchestrator = new Orchestrator({
    clock: systemClock,
    logger,
    queues: new QueueRegistry(systemClock),
    store: new MemoryStore(),
    publishers: new Map(publishers.map((publisher) => [publisher.kind, publisher])),
    transcoder,
    onHostsChanged: (hosts) => pool.setHosts(hosts.map(({ name, hostNames }) => ({ name, hostNames }))),
  });
  await pool.start();
  const { port } = await pool.listen({ host: '127.0.0.1', port: 0, tls: false });
  base = `http://127.0.0.1:${port}/app`;
  const vhost = readVirtualHost({ name: 'v', host: { names: ['127.0.0.1'] } });
  await orchestrator.createVirtualHost({ name: 'v', config: vhost.typed, echo: vhost.echo }, [application({})]);
});

afterEach(async () => {
  await orchestrator.close({ code: 'shutdown', detail: 'end of the test' });
  await pool.stop();
});

function application(members: object) {
  const { typed, echo } = readApplication({
    name: 'app',
    type: 'live',
    providers: { rtmp: {} },
    publishers: { llhls: { chunkDuration: 0.2, segmentDuration: 1 }, thumbnail: { crossDomains: { urls: ['*'] } } },
    outputProfiles: { outputProfile: [LADDER] },
    ...members,
  });
  return { name: typed.name, config: typed, echo };
}

function publish(closes: string[] = []): IngestStream {
  const ingest = orchestrator.openIngest(
    { host: '127.0.0.1', app: 'app' },
    { streamName: 's', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1', onClose: ({ code }) => closes.push(code) },
  );
  ingest.setTracks([videoTrack(), audioTrack()]);
  return ingest;
}

/** Sends whole seconds of media from `from` to `to`. */
async function send(ingest: IngestStream, from: number, to: number): Promise<void> {
  for (let second = from; second < to; second += 1) {
    for (let index = second * 30; index < (second + 1) * 30; index += 1) ingest.push(videoPacket(index));
    for (let index = Math.ceil(second * 46.875); index < (second + 1) * 46.875; index += 1) ingest.push(audioPacket(index));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

describe('an output profile with encodes', () => {
  test('is listed in the stream information with the parameters of its tracks', async () => {
    await send(publish(), 0, 4);
    const stream = orchestrator.application('v', 'app')?.stream('s');
    if (stream === undefined) throw new Error('no stream');
    const { session } = transcoder;
    session.announce(session.encode('small').id, { width: 160, height: 92, bitrateConf: 300_000, framerateConf: 30 });
    session.announce(session.encode('picture').id, { width: 160, height: 90, framerateConf: 1 });
    const [output] = streamInformation(stream, { masked: false }).outputs;
    expect(output?.name).toBe('s_out');
    expect(output?.playlists.map(({ fileName, renditions }) => [fileName, renditions.map(({ name }) => name)])).toEqual([
      ['abr', ['small', 'source']],
      ['llhls', ['default']],
    ]);
    expect(JSON.stringify(output?.tracks.find(({ name }) => name === 'small'))).toContain('"keyFrameIntervalConf":{"value":30}');
    expect(output?.tracks).toMatchObject([
      { id: 0, name: 'source', type: 'Video', video: { bypass: true, codec: 'H264', width: 320, height: 180 } },
      { id: 1, name: 'small', video: { bypass: false, codec: 'H264', width: 160, height: 92, bitrate: '300000', bitrateConf: '300000' } },
      { id: 2, name: 'aac', type: 'Audio', audio: { bypass: true, codec: 'AAC', samplerate: 48_000, channel: 2 } },
      { id: 3, name: 'picture', type: 'Video', video: { bypass: false, codec: 'JPEG', width: 160, height: 90 } },
      { id: 4, name: 'Data', type: 'Data' },
    ]);
  });

  test('serves its ladder in the order of its playlist', async () => {
    const ingest = publish();
    await send(ingest, 0, 6);
    const master = await (await fetch(`${base}/s_out/abr.m3u8`)).text();
    expect(master.match(/chunklist_\d_video/g)).toEqual(['chunklist_1_video', 'chunklist_0_video']);
    for (const uri of master.match(/\/app\/s_out\/chunklist_\d_video\S+/g) ?? []) {
      expect(await (await fetch(new URL(uri, base))).text()).toContain('#EXT-X-MAP:URI="init_');
    }
  });

  test('follows a source that changes its frame size: the bypassed rendition continues after a discontinuity', async () => {
    const ingest = publish();
    await send(ingest, 0, 4);
    ingest.setTracks([videoTrack({ config: AVCC.baseline360 }), audioTrack()]);
    for (let index = 120; index < 240; index += 1) {
      const dts = Math.round((index * 1000) / 30);
      ingest.push({ trackId: 0, pts: dts, dts, keyframe: index % 30 === 0, data: accessUnit(index % 30 === 0) });
    }
    for (let index = 188; index < 375; index += 1) ingest.push(audioPacket(index));
    await new Promise<void>((resolve) => setImmediate(resolve));
    const master = await (await fetch(`${base}/s_out/abr.m3u8`)).text();
    expect(master).toContain('RESOLUTION=640x360');
    const uri = master.match(/\/app\/s_out\/chunklist_0_video\S+/)?.[0] ?? '';
    const chunklist = await (await fetch(new URL(uri, base))).text();
    expect(chunklist.match(/^#EXT-X-DISCONTINUITY$/gm)).toHaveLength(1);
    expect(new Set(chunklist.match(/#EXT-X-MAP:\S+/g)).size).toBe(2);
  });

  test('serves frames with the headers of the reference server', async () => {
    await send(publish(), 0, 1);
    const get = () => fetch(`${base}/s_out/thumb.jpg`, { headers: { origin: 'https://player.example' } });
    // The frame reaches the delivery thread a little later.
    await expect.poll(async () => (await get()).status).toBe(200);
    const jpeg = await get();
    const { date: _date, connection: _connection, 'keep-alive': _keepAlive, ...headers } = Object.fromEntries(jpeg.headers);
    expect(headers).toEqual({
      server: 'Millrace',
      vary: 'Origin',
      'access-control-allow-credentials': 'true',
      'access-control-allow-methods': 'GET',
      'access-control-allow-origin': '*',
      'cache-control': 'no-cache, no-store',
      'content-length': '64',
      'content-type': 'image/jpeg',
    });
    expect(Buffer.from(await jpeg.arrayBuffer()).equals(accessUnit(false))).toBe(true);
    const png = await fetch(`${base}/s_out/thumb.png`);
    expect([png.status, await png.text()]).toEqual([404, 'There is no thumbnail image: the output profile has no image encode for png']);
    expect((await fetch(`${base}/s_out/thumb.jpg`, { method: 'HEAD' })).headers.get('content-length')).toBe('64');
    expect((await fetch(`${base}/nope/thumb.jpg`)).status).toBe(404);
    const { meter } = orchestrator;
    await expect.poll(() => meter.out.total).toBeGreaterThan(64);
    // One address with one player is one session, however many requests; the API lists it with its bytes.
    await expect.poll(() => meter.sessions.thumbnail).toBe(1);
    const sessions = orchestrator.application('v', 'app')?.stream('s')?.sessions;
    await expect.poll(() => sessions?.all.map(({ kind, out }) => [kind, out.total >= 128])).toEqual([['thumbnail', true]]);
    expect((await fetch(`${base}/s_out/thumb.jpg`, { headers: { 'user-agent': 'another' } })).status).toBe(200);
    await expect.poll(() => meter.sessions.thumbnail).toBe(2);
    for (const { id } of sessions?.all ?? []) sessions?.terminate(id, 'sent away');
    await expect.poll(async () => (await fetch(`${base}/s_out/thumb.jpg`)).status).toBe(401);
    expect(meter.sessions.thumbnail).toBe(0);
  });
});

describe('a changed application', () => {
  const REPLACED = { ...LADDER, name: 'other', outputStreamName: '${OriginStreamName}_new' };

  test('drops its publishers, transcoders and viewers; later streams use the new profiles', async () => {
    const closes: string[] = [];
    const ingest = publish(closes);
    await send(ingest, 0, 2);
    const { session } = transcoder;
    const waiting = fetch(`${base}/s_out/thumb.jpg`);
    expect((await waiting).status).toBe(200);
    const before = orchestrator.application('v', 'app');
    before?.stream('s')?.meter.connect('llhls', 3);

    await orchestrator.replaceApplication('v', 'app', () => application({ outputProfiles: { outputProfile: [LADDER, REPLACED] } }));

    expect(closes).toEqual(['application-restart']);
    expect(ingest.closed).toBe(true);
    expect(session.closed).toBe(true);
    expect(orchestrator.meter).toMatchObject({ totalSessions: 0, ingests: { rtmp: 0 } });
    await expect.poll(async () => (await fetch(`${base}/s_out/thumb.jpg`)).status).toBe(404);
    expect(orchestrator.queues.statuses()).toEqual([]);
    // Packets in transit from the old connection are dropped.
    await send(ingest, 2, 3);
    expect(transcoder.sessions.length).toBe(1);

    await send(publish(), 0, 2);
    const after = orchestrator.application('v', 'app');
    expect(after?.stream('s')?.outputs.map(({ name }) => name)).toEqual(['s_out', 's_new']);
    expect(after?.meter).not.toBe(before?.meter);
    for (const name of ['s_out', 's_new']) expect((await fetch(`${base}/${name}/thumb.jpg`)).status).toBe(200);
    // The two profiles need the same encodes, which are made only once.
    expect(transcoder.sessions.length).toBe(2);
    expect(transcoder.session.job.encodes.map(({ encode }) => encode.name)).toEqual(['small', 'picture']);
  });

  test('can lose its profiles', async () => {
    await send(publish(), 0, 1);
    await orchestrator.replaceApplication('v', 'app', () => application({ outputProfiles: {} }));
    await send(publish(), 0, 1);
    expect(orchestrator.application('v', 'app')?.stream('s')?.outputs).toEqual([]);
    await expect.poll(async () => (await fetch(`${base}/s_out/thumb.jpg`)).status).toBe(404);
  });
});
