import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FakeIngestGate, type FakeIngestStream } from '../../../test/fakes/fake-ingest-gate.ts';
import { parseMetadata } from '../../containers/flv/metadata.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { PublishFeed } from './publish-feed.ts';
import { DEFAULT_RTMP_LIMITS, DEFAULT_RTMP_TIMEOUTS, type RtmpLimits } from './rtmp-options.ts';

const AVC_CONFIG = '17000000000142001f';
const AVC_KEY = '17010000000000000165';
const AAC_CONFIG = 'af001190';
const AAC_FRAME = 'af0121aa';

function fourCc(text: string): string {
  return Buffer.from(text, 'latin1').toString('hex');
}

function feeding(limits: Partial<RtmpLimits> = {}) {
  const gate = new FakeIngestGate();
  const request = { streamName: 's', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: '', onClose: () => undefined } as const;
  const stream = gate.openIngest({ host: 'h', app: 'a' }, request) as FakeIngestStream;
  const feed = new PublishFeed({
    stream,
    limits: { ...DEFAULT_RTMP_LIMITS, ...limits },
    timeouts: { ...DEFAULT_RTMP_TIMEOUTS, trackWait: 1000 },
    onStarted: () => undefined,
  });
  return {
    feed,
    stream,
    describe: (fields: Record<string, unknown>) => feed.describe(parseMetadata(new Map(Object.entries(fields)))),
    video: (timestamp: number, tag: string) => feed.pushVideo(Buffer.from(tag, 'hex'), timestamp),
    audio: (timestamp: number, tag: string) => feed.pushAudio(Buffer.from(tag, 'hex'), timestamp),
  };
}

describe('PublishFeed', () => {
  test('without metadata one video and one audio track are expected', () => {
    const { feed, stream, video, audio } = feeding();
    video(0, AVC_CONFIG);
    video(0, AVC_KEY);
    feed.checkStart(0);
    feed.checkStart(999);
    expect(feed.started).toBe(false);
    audio(0, AAC_CONFIG);
    expect(feed.started).toBe(false);
    audio(10, AAC_FRAME);
    expect(stream.packets.map((packet) => packet.trackId)).toEqual([0, 1]);
  });

  test('without metadata a lone track starts when the wait is over', () => {
    const { feed, stream, audio } = feeding();
    feed.checkStart(0);
    audio(0, AAC_CONFIG);
    audio(0, AAC_FRAME);
    feed.checkStart(5000);
    feed.checkStart(5999);
    expect(feed.started).toBe(false);
    feed.checkStart(6000);
    expect(stream.packets).toHaveLength(1);
  });

  test('an announced codec without support is not awaited', () => {
    const { stream, describe: announce, video } = feeding();
    announce({ videocodecid: 7, audiocodecid: 11 });
    video(0, AVC_CONFIG);
    video(0, AVC_KEY);
    expect(stream.packets).toHaveLength(1);
  });

  test('every track of the multitrack maps is waited for', () => {
    const { stream, describe: announce, video } = feeding();
    announce({ videocodecid: 7, videoTrackIdInfoMap: { fields: new Map([['1', { fields: new Map([['videocodecid', 'hvc1']]) }]]) } });
    video(0, AVC_CONFIG);
    video(0, AVC_KEY);
    expect(stream.trackSets).toHaveLength(0);
    video(0, `9600${fourCc('hvc1')}010101`);
    video(40, AVC_KEY);
    expect(stream.tracks.map((track) => track.id)).toEqual([0, 101]);
    expect(stream.packets).toHaveLength(2);
  });

  test('held packets end at the byte limit too', () => {
    const { feed, video } = feeding({ heldBytes: 12 });
    video(0, AVC_CONFIG);
    video(0, AVC_KEY);
    video(40, AVC_KEY);
    expect(feed.started).toBe(false);
    video(80, AVC_KEY);
    expect(feed.started).toBe(true);
  });

  test('packets held under a sequence header that changed are dropped', () => {
    const { feed, stream, video, audio } = feeding();
    video(0, AVC_CONFIG);
    video(0, AVC_KEY);
    audio(0, AAC_CONFIG);
    video(40, '1700000000014d001f');
    video(40, AVC_KEY);
    expect(stream.packets.map((packet) => packet.dts)).toEqual([40]);
    expect(stream.tracks[0]).toMatchObject({ config: Buffer.from('014d001f', 'hex') });
    expect(feed.undecodable).toBe(1);
  });

  test('frees the held bytes of packets that were dropped with their sequence header', () => {
    const { feed, video } = feeding({ heldBytes: 12, heldPackets: 3 });
    video(0, AVC_CONFIG);
    video(0, AVC_KEY);
    video(40, AVC_KEY);
    video(80, '1700000000014d001f');
    video(80, AVC_KEY);
    video(120, AVC_KEY);
    expect(feed).toMatchObject({ started: false, undecodable: 2 });
    video(160, AVC_KEY);
    expect(feed.started).toBe(true);
  });

  test('metadata of a running stream does not change its tracks', () => {
    const { feed, stream, describe: announce, video } = feeding();
    announce({ videocodecid: 7, audiocodecid: 10 });
    video(0, AVC_CONFIG);
    feed.checkStart(0);
    feed.checkStart(1000);
    announce({ videocodecid: 7 });
    expect(stream.trackSets).toHaveLength(1);
    video(40, '1700000000014d001f');
    expect(stream.trackSets).toHaveLength(2);
  });

  test('a change of codec waits for the new sequence header', () => {
    const { feed, stream, describe: announce, video } = feeding();
    announce({ videocodecid: 7 });
    video(0, AVC_CONFIG);
    video(0, AVC_KEY);
    video(40, `93${fourCc('hvc1')}aabb`);
    expect(feed.undecodable).toBe(1);
    video(80, `90${fourCc('hvc1')}0101`);
    video(80, `93${fourCc('hvc1')}aabb`);
    expect(stream.tracks).toMatchObject([{ id: 0, codec: 'H265' }]);
    expect(stream.packets.map((packet) => packet.dts)).toEqual([0, 80]);
  });

  test('Opus without an ID header gets a generated header with the announced channel count', () => {
    const { stream, describe: announce, audio } = feeding();
    announce({ audiocodecid: 0x4f70_7573 });
    audio(0, `90${fourCc('Opus')}`);
    audio(0, `94${fourCc('Opus')}0106000000ff`);
    audio(0, `91${fourCc('Opus')}fcfd`);
    expect(stream.tracks).toMatchObject([{ codec: 'OPUS', sampleRate: 48_000, channels: 6 }]);
  });

  test.each([
    { name: 'the sequence header', header: 'af001208', shape: { sampleRate: 44_100, channels: 1 } },
    {
      name: 'the sequence header with its extension: what a decoder puts out',
      header: 'af002b118800',
      shape: { sampleRate: 48_000, channels: 2 },
    },
    { name: 'the metadata when the header cannot be read', header: 'af000190', shape: { sampleRate: 32_000, channels: 6 } },
  ])('sample rate and channels of AAC are read from $name', ({ header, shape }) => {
    const { stream, describe, audio } = feeding();
    describe({ audiocodecid: 10, audiosamplerate: 32_000, audiochannels: 6 });
    audio(0, header);
    audio(0, AAC_FRAME);
    expect(stream.tracks).toMatchObject([{ codec: 'AAC', ...shape }]);
  });

  test('a stream starts only after a readable packet', () => {
    const { feed, stream, describe: announce, video } = feeding();
    stream.fault = new ProtocolError('AVCC', 'made up');
    announce({ videocodecid: 7 });
    video(0, AVC_CONFIG);
    video(0, AVC_KEY);
    feed.checkStart(0);
    feed.checkStart(1000);
    expect([feed.started, feed.malformed, feed.firstFault]).toEqual([false, 2, 'AVCC: made up']);
    stream.fault = null;
    video(40, AVC_KEY);
    expect([feed.started, stream.packets.map(({ dts }) => dts)]).toEqual([true, [40]]);
  });

  test('a sequence header without content is malformed', () => {
    const { feed, video } = feeding();
    video(0, '1700000000');
    expect(feed).toMatchObject({ malformed: 1, firstFault: expect.stringContaining('FLV_CONFIG') as string });
  });

  test('tracks beyond the limit, or with numbers beyond 99, are counted and ignored', () => {
    const { feed, stream, video } = feeding({ tracks: 1 });
    video(0, AVC_CONFIG);
    video(0, `9600${fourCc('hvc1')}010101`);
    video(0, `9600${fourCc('hvc1')}c80101`);
    video(0, AVC_KEY);
    feed.checkStart(0);
    feed.checkStart(1000);
    expect(stream.tracks.map((track) => track.id)).toEqual([0]);
    expect(feed.unsupported).toBe(2);
  });

  test('arbitrary payloads never make it throw', () => {
    const tags = fc.array(
      fc.record({
        kind: fc.constantFrom('video' as const, 'audio' as const),
        head: fc.constantFrom(
          '',
          '1700',
          '1701',
          'af00',
          'af01',
          '90',
          '91',
          '93',
          '95',
          '96',
          `90${fourCc('hvc1')}`,
          `91${fourCc('Opus')}`,
        ),
        tail: fc.uint8Array({ maxLength: 40 }),
        timestamp: fc.integer({ min: 0, max: 0xffff_ffff }),
      }),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(tags, (messages) => {
        const { feed, stream } = feeding({ heldPackets: 5, tracks: 4 });
        for (const { kind, head, tail, timestamp } of messages) {
          const payload = Buffer.concat([Buffer.from(head, 'hex'), tail]);
          if (kind === 'video') feed.pushVideo(payload, timestamp);
          else feed.pushAudio(payload, timestamp);
        }
        feed.checkStart(0);
        feed.checkStart(1000);
        const known = new Set(stream.tracks.map((track) => track.id));
        expect(stream.packets.every((packet) => known.has(packet.trackId) && packet.data.length > 0)).toBe(true);
        expect(known.size).toBeLessThanOrEqual(4);
      }),
      { numRuns: 500 },
    );
  });
});
