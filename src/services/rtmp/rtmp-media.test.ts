import { describe, expect, test } from 'vitest';
import { RtmpPublisher } from '../../../test/fakes/rtmp-publisher.ts';
import { AAC_CONFIG, AAC_FRAME, cleanUp, publishing } from '../../../test/support/rtmp-bench.ts';
import type { AmfObject } from '../../wire/rtmp/amf.ts';
import { MessageType } from '../../wire/rtmp/message.ts';

const AVC_CONFIG = '1700000000 0142001f'.replaceAll(' ', '');
const AVC_KEY = '1701000000 00000001 65'.replaceAll(' ', '');
const AVC_INTER = '2701000028 00000001 41'.replaceAll(' ', '');
const BOTH = { videocodecid: 7, audiocodecid: 10, width: 640, height: 360, framerate: 25 };

describe('media', () => {
  test('starts when every announced track has its sequence header, and keeps the order', async () => {
    const { publisher, stream, logger } = await publishing();
    publisher.metadata(BOTH);
    publisher.video(0, AVC_CONFIG);
    publisher.video(0, AVC_KEY);
    publisher.video(40, AVC_INTER);
    publisher.audio(5, AAC_CONFIG);
    publisher.audio(21, AAC_FRAME);
    await stream.until((it) => it.packets.length === 3);
    expect(stream.trackSets).toHaveLength(1);
    expect(stream.tracks).toEqual([
      {
        type: 'video',
        id: 0,
        timebase: { num: 1, den: 1000 },
        codec: 'H264',
        format: 'length-prefixed',
        config: Buffer.from('0142001f', 'hex'),
        bitrateConf: 0,
        framerateConf: 25,
        width: 640,
        height: 360,
      },
      {
        type: 'audio',
        id: 1,
        timebase: { num: 1, den: 1000 },
        codec: 'AAC',
        format: 'aac-raw',
        config: Buffer.from('1190', 'hex'),
        bitrateConf: 0,
        sampleRate: 48_000,
        channels: 2,
      },
    ]);
    expect(stream.packets.map((p) => [p.trackId, p.dts, p.pts, p.keyframe, Buffer.from(p.data).toString('hex')])).toEqual([
      [0, 0, 0, true, '0000000165'],
      [0, 40, 80, false, '0000000141'],
      [1, 21, 21, true, '21aa'],
    ]);
    expect((await logger.line('RTMP stream started')).fields).toMatchObject({ app: 'app', stream: 'stream', tracks: ['0:H264', '1:AAC'] });
  });

  test('starts without tracks that are late, and adds them when they arrive', async () => {
    const { publisher, stream } = await publishing({ timeouts: { trackWait: 50 } });
    publisher.metadata(BOTH);
    publisher.video(0, AVC_CONFIG);
    publisher.video(0, AVC_KEY);
    await stream.until((it) => it.packets.length === 1);
    expect(stream.tracks.map((track) => track.id)).toEqual([0]);
    publisher.audio(100, AAC_CONFIG);
    publisher.audio(100, AAC_FRAME);
    await stream.until((it) => it.packets.length === 2);
    expect(stream.tracks.map((track) => track.id)).toEqual([0, 1]);
  });

  test('starts when one track has filled its buffer', async () => {
    const { publisher, stream } = await publishing({ timeouts: { trackWait: 3_600_000 }, limits: { heldPackets: 10 } });
    publisher.metadata(BOTH);
    publisher.video(0, AVC_CONFIG);
    for (let i = 0; i < 10; i += 1) publisher.video(i * 40, i === 0 ? AVC_KEY : AVC_INTER);
    await stream.until((it) => it.packets.length === 10);
    expect(stream.packets.map((packet) => packet.dts)).toEqual([0, 40, 80, 120, 160, 200, 240, 280, 320, 360]);
  });

  test('a changed sequence header announces the tracks again, a repeated one does not', async () => {
    const { publisher, stream } = await publishing();
    publisher.metadata({ videocodecid: 7 });
    publisher.video(0, AVC_CONFIG);
    publisher.video(0, AVC_KEY);
    publisher.video(40, AVC_CONFIG);
    publisher.video(40, AVC_INTER);
    publisher.video(80, '17000000000164002a');
    publisher.video(80, AVC_KEY);
    await stream.until((it) => it.packets.length === 3);
    expect(stream.trackSets.map((tracks) => tracks.map((t) => (t.type === 'video' ? Buffer.from(t.config!).toString('hex') : '')))).toEqual(
      [['0142001f'], ['0164002a']],
    );
  });

  test('timestamps continue past the 32-bit wrap, on one clock for all tracks', async () => {
    const { publisher, stream } = await publishing();
    publisher.metadata(BOTH);
    publisher.video(0xffff_ffe0, AVC_CONFIG);
    publisher.audio(0xffff_ffe0, AAC_CONFIG);
    publisher.video(0xffff_fff0, AVC_KEY);
    publisher.audio(5, AAC_FRAME);
    publisher.video(0x18, AVC_INTER);
    publisher.audio(0xffff_fffb, AAC_FRAME);
    await stream.until((it) => it.packets.length === 4);
    expect(stream.packets.map((packet) => packet.dts - 2 ** 32)).toEqual([-16, 5, 24, -5]);
  });

  test('Enhanced RTMP that is off is not offered, and its tracks are left out with a log line', async () => {
    const { publisher, stream, logger, port } = await publishing({ enhanced: false });
    const fourCc = (text: string) => Buffer.from(text, 'latin1').toString('hex');
    publisher.video(0, `90${fourCc('avc1')}0142001f`);
    publisher.audio(0, `90${fourCc('mp4a')}1190`);
    publisher.metadata(BOTH);
    publisher.video(0, AVC_CONFIG);
    publisher.audio(0, AAC_CONFIG);
    publisher.video(0, AVC_KEY);
    publisher.audio(0, AAC_FRAME);
    await stream.until((it) => it.packets.length === 2);
    expect(stream.tracks.map((track) => (track.type === 'data' ? '' : track.codec))).toEqual(['H264', 'AAC']);
    for (const what of ['video', 'audio']) {
      const line = `the ${what} is left out: it needs Enhanced RTMP, which is off (Modules/ERTMP)`;
      expect(logger.matching(line)).toHaveLength(1);
    }
    const other = await RtmpPublisher.open(port);
    cleanUp(() => other.close());
    other.connect({ tcUrl: 'rtmp://media.example/app', fourCcList: ['*'] });
    expect(((await other.command('_result')).args[0] as AmfObject).get('fourCcList')).toBeUndefined();
  });

  test('Enhanced RTMP: HEVC, AV1 and Opus tracks of a multitrack publisher', async () => {
    const { publisher, stream } = await publishing();
    const fourCc = (text: string) => Buffer.from(text, 'latin1').toString('hex');
    const track = (body: string) => (body.length / 2).toString(16).padStart(6, '0') + body;
    const [hvcC, av1C, opusHead] = ['0101', '81000c00', `${fourCc('OpusHead')}0102380180bb0000000000`];
    publisher.metadata({ videocodecid: 0x6876_6331, audiocodecid: 0x4f70_7573 });
    publisher.video(0, `9620${fourCc('hvc1')}00${track(hvcC)}${fourCc('av01')}03${track(av1C)}`);
    publisher.audio(0, `90${fourCc('Opus')}${opusHead}`);
    publisher.audio(0, `9501${fourCc('Opus')}01fc`);
    publisher.video(0, `9621${fourCc('hvc1')}00${track('000021aabb')}${fourCc('av01')}03${track('12000a01cc')}`);
    publisher.audio(1, `91${fourCc('Opus')}fcfd`);
    await stream.until((it) => it.packets.length === 4);
    expect(stream.tracks.map((t) => [t.id, t.type === 'data' ? '' : t.codec, t.type === 'data' ? '' : t.format])).toEqual([
      [0, 'H265', 'length-prefixed'],
      [1, 'OPUS', 'raw'],
      [103, 'AV1', 'obu'],
      [201, 'OPUS', 'raw'],
    ]);
    expect(stream.tracks[1]).toMatchObject({ sampleRate: 48_000, channels: 2, config: Buffer.from(opusHead, 'hex') });
    expect(stream.tracks[3]).toMatchObject({ sampleRate: 48_000, channels: 2 });
    expect(stream.packets.map((p) => [p.trackId, p.pts - p.dts, Buffer.from(p.data).toString('hex')])).toEqual([
      [201, 0, 'fc'],
      [0, 33, 'aabb'],
      [103, 0, '0a01cc'],
      [1, 0, 'fcfd'],
    ]);
  });

  test('aggregate messages', async () => {
    const { publisher, stream } = await publishing();
    publisher.metadata({ videocodecid: 7 });
    const inner = (timestamp: number, tag: string) => {
      const size = (tag.length / 2).toString(16).padStart(6, '0');
      return `09${size}${timestamp.toString(16).padStart(6, '0')}00000000${tag}00000000`;
    };
    const payload = Buffer.from(inner(500, AVC_CONFIG) + inner(500, AVC_KEY) + inner(540, AVC_INTER), 'hex');
    publisher.send({ chunkStreamId: 6, typeId: MessageType.AGGREGATE, streamId: 1, timestamp: 1000, payload });
    await stream.until((it) => it.packets.length === 2);
    expect(stream.packets.map((packet) => packet.dts)).toEqual([1000, 1040]);
  });

  test('unusable messages are counted, and the counters are logged at the end', async () => {
    const { publisher, stream, logger } = await publishing();
    publisher.metadata({ videocodecid: 7 });
    publisher.video(0, AVC_KEY);
    publisher.video(0, AVC_CONFIG);
    publisher.video(0, '1709000000');
    publisher.audio(0, 'b200');
    publisher.audio(0, '');
    publisher.send({ chunkStreamId: 4, typeId: MessageType.DATA_AMF0, streamId: 1, timestamp: 0, payload: Buffer.from('ff', 'hex') });
    publisher.video(0, AVC_KEY);
    await stream.until((it) => it.packets.length === 1);
    publisher.close();
    expect((await logger.line('RTMP connection closed')).fields).toMatchObject({
      code: 'peer-left',
      messages: 6,
      undecodable: 1,
      malformed: 1,
      unsupported: 1,
      malformedData: 1,
      firstFault: expect.stringContaining('FLV_PACKET_TYPE') as string,
    });
  });
});
