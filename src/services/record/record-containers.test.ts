import { beforeAll, describe, expect, it } from 'vitest';
import { videoTrack } from '../../../test/fakes/synthetic-media.ts';
import { type EncodedMedia, encodeMedia } from '../../../test/support/encoded-media.ts';
import { CLOSED, RecordingBench } from '../../../test/support/recording-bench.ts';
import { VideoCodec } from '../../media/codec.ts';

const bench = new RecordingBench();

const FAST = ['-cpu-used', '8'];
const PICTURES = [
  ['H264', 'libx264', []],
  ['H265', 'libx265', []],
  ['VP9', 'libvpx-vp9', FAST],
  ['AV1', 'libaom-av1', FAST],
] as const;
const SOUNDS = [
  ['AAC', 'aac'],
  ['MP3', 'libmp3lame'],
  ['OPUS', 'libopus'],
] as const;

describe('a container', () => {
  const made = new Map<string, EncodedMedia>();
  beforeAll(() => {
    for (const [codec, video, extra] of PICTURES)
      made.set(codec, encodeMedia({ seconds: 1, video, audio: null, size: '160x90', rate: 10, gop: 10, extra }));
    for (const [codec, audio] of SOUNDS) made.set(codec, encodeMedia({ seconds: 1, video: null, audio }));
  });

  /** Tracks and packets of a codec; VP8, which this ffmpeg writes into no MP4, is refused before its bytes matter. */
  const mediaOf = (codec: string): Pick<EncodedMedia, 'tracks' | 'packets'> => {
    const media = made.get(codec);
    if (media !== undefined) return media;
    const track = { ...videoTrack({ config: null }), codec: VideoCodec.VP8 };
    return { tracks: [track], packets: [] };
  };

  it.each([
    ...(['H264', 'H265', 'VP9', 'AV1', 'AAC', 'MP3', 'OPUS'] as const).map((codec) => ['mp4', codec] as const),
    ...(['H264', 'H265', 'AAC', 'MP3', 'OPUS'] as const).map((codec) => ['ts', codec] as const),
  ])('%s holds %s', async (extension, codec) => {
    const { tracks, packets } = mediaOf(codec);
    const { attached } = bench.stream(tracks);
    expect(await bench.record('c', { filePath: `/c.${extension}` })).toMatchObject({ state: 'recording' });
    bench.send(attached, packets);
    attached.close(CLOSED);
    await bench.publisher.stop();
    const [held] = bench.streams(`c.${extension}`);
    expect(held?.codec.toUpperCase().replace('HEVC', 'H265')).toBe(codec);
    expect(held?.packets).toBe(packets.length);
  });

  it.each([
    ['mp4', 'VP8'],
    ['ts', 'VP8'],
    ['ts', 'VP9'],
    ['ts', 'AV1'],
  ])('%s refuses %s with a reason, alone and with audio', async (extension, codec) => {
    const { tracks } = mediaOf(codec);
    const { tracks: sound } = mediaOf('AAC');
    const reason = `${extension.toUpperCase()} cannot hold Video_0 (${codec})`;
    const { attached } = bench.stream([...tracks, ...sound]);
    expect(await bench.record('both', { filePath: `/b.${extension}` })).toMatchObject({ state: 'error', reason });
    // A client that wants only the audio requests it.
    const alone = await bench.record('sound', { filePath: `/s.${extension}`, variantNames: ['audio'] });
    expect(alone).toMatchObject({ state: 'recording' });
    attached.close(CLOSED);
    bench.stream(tracks);
    expect(await bench.record('one', { filePath: `/o.${extension}` })).toMatchObject({
      state: 'error',
      reason: `no track fits into ${extension.toUpperCase()}: it cannot hold Video_0 (${codec})`,
    });
    await bench.publisher.stop();
    expect(bench.files()).toEqual([]);
  });

  it('holds HEVC and Opus', async () => {
    const modern = encodeMedia({ seconds: 2, video: 'libx265', audio: 'libopus', rate: 25, gop: 25 });
    await bench.record('m');
    await bench.record('t', { filePath: '/t.ts' });
    const { attached } = bench.stream(modern.tracks);
    bench.send(attached, modern.packets);
    attached.close(CLOSED);
    await bench.publisher.stop();
    for (const name of ['m_0.mp4', 't.ts']) {
      const { video, audio } = bench.probe(name);
      expect([video.length, audio.length > 90], name).toEqual([50, true]);
    }
  });

  it('leaves out unsupported tracks with a warning, and fails when no track is left', async () => {
    const av1 = encodeMedia({ seconds: 1, video: 'libaom-av1', audio: 'aac', rate: 10, gop: 10, extra: ['-cpu-used', '8'] });
    const plain = { ...videoTrack(), id: 7, publicName: 'Video_7', variantName: 'plain' };
    bench.stream([...av1.tracks, plain]);
    expect(await bench.record('w', { filePath: '/w.ts' })).toMatchObject({ state: 'recording' });
    expect(bench.logger.lines.some(({ level, message }) => level === 'warn' && message.includes('TS cannot hold Video_0 (AV1)'))).toBe(
      true,
    );
    expect(await bench.record('f', { filePath: '/f.ts', variantNames: ['video'] })).toMatchObject({
      state: 'error',
      reason: 'TS cannot hold Video_0 (AV1)',
    });
    // Audio alone would not match the request.
    expect(await bench.record('n', { filePath: '/n.ts', variantNames: ['video', 'audio'] })).toMatchObject({
      state: 'error',
      reason: 'TS cannot hold Video_0 (AV1)',
    });
    bench.stream(av1.tracks.filter(({ type }) => type === 'video'));
    expect(await bench.record('o', { filePath: '/o.ts' })).toMatchObject({
      state: 'error',
      reason: 'no track fits into TS: it cannot hold Video_0 (AV1)',
    });
  });
});
