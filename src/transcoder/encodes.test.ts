/** The output of transcoder processes for a source. */
import { describe, expect, it } from 'vitest';
import { AUDIO, audio, image, SECONDS, setUpLabs, video } from '../../test/fakes/transcode-labs.ts';
import { audioConfig } from '../../test/fakes/transcode-run.ts';
import { until } from '../../test/harness/poll.ts';
import { encodeMedia } from '../../test/support/encoded-media.ts';
import { decodeComplaints, ffprobe } from '../../test/support/ffprobe.ts';
import type { AudioTrack, VideoTrack } from '../media/track.ts';

const { lab, media, open, tracks } = setUpLabs();

describe('a ladder', () => {
  it('has the expected properties in ffprobe, with keyframes at the same times', async () => {
    const run = open(
      [video(10), video(11, { height: 120 }), video(12, { height: 90, bitrate: 150_000 }), audio(13, { codec: 'opus' })],
      tracks(),
    );
    await run.feed(media.packets);
    for (const id of [10, 11, 12]) await run.makes(id, SECONDS * 30);
    await run.reaches(SECONDS - 0.1);
    const sizes = { 10: [320, 180], 11: [216, 120], 12: [160, 92] } as const;
    for (const [id, [width, height]] of Object.entries(sizes)) {
      const { streams, packets, complaints } = ffprobe(run.file(Number(id)));
      expect(complaints).toEqual([]);
      expect(streams[0]).toMatchObject({ codec_name: 'h264', profile: 'Constrained Baseline', width, height, has_b_frames: 0 });
      expect(packets.length).toBe(SECONDS * 30);
      expect(decodeComplaints(run.file(Number(id)))).toEqual([]);
      expect(run.track<VideoTrack>(Number(id))).toMatchObject({ id: Number(id), width, height, bypass: false, variantName: 'video' });
      expect(run.track<VideoTrack>(Number(id)).codecString).toMatch(/^avc1\.42c0/);
    }
    const keyframes = [10, 11, 12].map((id) =>
      run
        .made(id)
        .packets.filter(({ keyframe }) => keyframe)
        .map(({ pts }) => pts),
    );
    expect(keyframes[0]).toEqual([0, 90_000, 180_000, 270_000]);
    expect(keyframes[1]).toEqual(keyframes[0]);
    expect(keyframes[2]).toEqual(keyframes[0]);
    const sound = ffprobe(run.file(13));
    expect(sound.streams[0]).toMatchObject({ codec_name: 'opus', sample_rate: '48000', channels: 2 });
    expect(decodeComplaints(run.file(13))).toEqual([]);
  });

  it('keeps the time of every frame', async () => {
    const run = open([video(10, { height: 90 })], tracks());
    await run.feed(media.packets);
    await run.makes(10, SECONDS * 30);
    const sent = media.packets.filter(({ track }) => track.type === 'video').map(({ pts }) => pts);
    expect(run.made(10).packets.map(({ pts }) => pts)).toEqual(sent);
  });

  it('has one encoder per encode, under its name', async () => {
    const made = lab();
    const run = made.open([video(10, { name: 'a' }), video(11, { name: 'b', height: 90 })], tracks());
    await run.feed(media.packets);
    await run.reaches(SECONDS - 0.1);
    expect(run.track(10).variantName).toBe('a');
    expect(run.track(11).variantName).toBe('b');
    await until('the encoders are counted', async () => {
      const items = await made.supervisor.codecModules();
      return items.find(({ module }) => module === 'x264')?.metrics.active.encoder === 2;
    });
  });
});

describe('encodes', () => {
  it.each([
    ['H.265', video(10, { codec: 'h265', height: 90 }), 'hevc', SECONDS * 30],
    ['AV1', video(10, { codec: 'av1', height: 90 }), 'av1', SECONDS * 30],
    ['H.264 with B-frames', video(10, { bFrames: 2, height: 90 }), 'h264', SECONDS * 30],
    ['a lower frame rate', video(10, { framerate: 15, height: 90 }), 'h264', SECONDS * 15],
    ['a higher frame rate', video(10, { framerate: 60, height: 90 }), 'h264', SECONDS * 60 - 1],
    ['skipped frames', video(10, { skipFrames: 2, height: 90 }), 'h264', SECONDS * 10],
  ])('make %s', async (_name, request, codec, count) => {
    const run = open([request], tracks());
    await run.feed(media.packets);
    await run.reaches(SECONDS - 0.25);
    // A quarter of a second is many frames of a high frame rate.
    await run.makes(10, count - 3);
    const { streams, packets } = ffprobe(run.file(10));
    expect(run.made(10).failed).toBeNull();
    expect(streams[0]?.codec_name).toBe(codec);
    expect(Math.abs(packets.length - count)).toBeLessThanOrEqual(3);
    expect(decodeComplaints(run.file(10))).toEqual([]);
    expect(run.made(10).packets.every(({ pts, dts }) => pts >= dts && dts >= 0)).toBe(true);
  });

  it('make VP8 that ffprobe can read', async () => {
    const run = open([video(10, { codec: 'vp8', height: 90 })], tracks());
    await run.feed(media.packets);
    await run.makes(10, SECONDS * 30);
    const { packets } = run.made(10);
    const { streams, packets: probed } = ffprobe(
      ivf(
        run.track<VideoTrack>(10),
        packets.map(({ data }) => data),
      ),
    );
    expect(streams[0]).toMatchObject({ codec_name: 'vp8', width: 160, height: 92 });
    expect(probed.length).toBe(SECONDS * 30);
    expect(packets.filter(({ keyframe }) => keyframe).map(({ pts }) => pts)).toEqual([0, 90_000, 180_000, 270_000]);
  });

  it.each([
    ['jpeg', 'mjpeg'],
    ['png', 'png'],
    ['webp', 'webp'],
  ])('make %s frames', async (codec, name) => {
    const run = open([image(10, { codec, height: 90 })], tracks());
    await run.feed(media.packets);
    await run.makes(10, 4);
    const { packets } = run.made(10);
    expect(packets.map(({ pts }) => pts)).toEqual([0, 90_000, 180_000, 270_000]);
    for (const { data, keyframe } of packets) {
      expect(keyframe).toBe(true);
      expect(ffprobe(data).streams[0]).toMatchObject({ codec_name: name, width: 160, height: 92 });
    }
  });

  it.each([
    ['AAC at 44.1 kHz in mono', audioConfig({ samplerate: 44_100, channel: 1 }), { codec_name: 'aac', sample_rate: '44100', channels: 1 }],
    ['AAC like its source', audioConfig(), { codec_name: 'aac', sample_rate: '48000', channels: 2 }],
    [
      'Opus, always at 48 kHz',
      audioConfig({ codec: 'opus', samplerate: 44_100 }),
      { codec_name: 'opus', sample_rate: '48000', channels: 2 },
    ],
    ['MP3', audioConfig({ codec: 'mp3' }), { codec_name: 'mp3', sample_rate: '48000', channels: 2 }],
  ])('make %s', async (_name, encode, expected) => {
    const run = open([{ id: 10, sourceId: AUDIO, type: 'audio', encode }], tracks());
    await run.feed(media.packets);
    await run.reaches(SECONDS - 0.2);
    expect(ffprobe(run.file(10)).streams[0]).toMatchObject(expected);
    expect(decodeComplaints(run.file(10))).toEqual([]);
    expect(run.track<AudioTrack>(10).timebase.den).toBe(Number(expected.sample_rate));
  });

  it.each(['h264', 'h265', 'vp8'])('keep to their bitrate: %s', async (codec) => {
    const noisy = encodeMedia({
      video: 'libx264',
      audio: null,
      seconds: 6,
      extra: ['-bf', '0', '-preset', 'ultrafast', '-crf', '20', '-vf', 'noise=alls=20:allf=t'],
    });
    const bitrate = 600_000;
    const run = open([video(10, { codec, bitrate })], [noisy.video!]);
    await run.feed(noisy.packets);
    await run.makes(10, 175);
    const bits = run.made(10).packets.reduce((sum, { data }) => sum + data.length * 8, 0);
    const made = bits / (run.made(10).packets.length / 30);
    expect(Math.abs(made / bitrate - 1)).toBeLessThan(0.1);
  });

  it.each([
    ['H.265 and Opus', 'libx265', 'libopus', ['-preset', 'ultrafast']],
    ['VP9 and MP3', 'libvpx-vp9', 'libmp3lame', ['-deadline', 'realtime', '-cpu-used', '8']],
    ['AV1', 'libsvtav1', null, ['-preset', '12']],
  ])('support %s as their source', async (_name, videoEncoder, audioEncoder, extra) => {
    const source = encodeMedia({ video: videoEncoder, audio: audioEncoder, seconds: 2, extra });
    const all = [source.video!, ...(source.audio === null ? [] : [source.audio])];
    const run = open([video(10, { height: 90 }), ...(audioEncoder === null ? [] : [audio(11)])], all);
    await run.feed(source.packets);
    await run.makes(10, 55);
    expect(run.made(10).failed).toBeNull();
    expect(decodeComplaints(run.file(10))).toEqual([]);
    if (audioEncoder === null) return;
    await until('the audio is encoded', () => run.end(11) > 1.8);
    expect(decodeComplaints(run.file(11))).toEqual([]);
  });

  it('that cannot be made are reported, while the others run', async () => {
    const run = open([video(10, { height: 90 }), video(11, { codec: 'theora' })], tracks());
    await run.feed(media.packets);
    await run.makes(10, SECONDS * 30);
    expect(run.made(11)).toMatchObject({ failed: expect.stringMatching(/theora/), fault: 'encoder', facts: { errors: { count: 3 } } });
    expect(run.made(10).packets.length).toBe(SECONDS * 30);
  });

  it('fall back to software with a line in the log when a module is missing', async () => {
    const made = lab();
    const run = made.open([video(10, { modules: 'nilogan', height: 90 })], tracks());
    await run.feed(media.packets);
    await run.reaches(SECONDS - 0.1);
    expect(made.logger.lines.some(({ message }) => /falls back to libx264: module 'nilogan' is not available/.test(message))).toBe(true);
  });

  it('run without the missing hardware decoders, with a line in the log', async () => {
    const made = lab();
    const run = made.open([video(10, { height: 90 })], tracks(), { hardwareDecoding: { enable: true, modules: 'nilogan' } });
    await run.feed(media.packets);
    await run.reaches(SECONDS - 0.1);
    const said = made.logger.lines.map(({ message }) => message);
    expect(said).toContain("decoding of track 0 falls back to h264: module 'nilogan' is not available");
  });

  it('give a keyframe when asked', async () => {
    const run = open([video(10, { height: 90, keyFrameInterval: 10_000, keyFrameIntervalType: 'time' })], tracks());
    const half = media.packets.length / 2;
    await run.feed(media.packets.slice(0, half));
    await until('half is encoded', () => run.made(10).packets.length >= SECONDS * 15 - 5);
    run.session.requestKeyframe(10);
    await run.feed(media.packets.slice(half));
    await run.reaches(SECONDS - 0.1);
    expect(run.made(10).packets.filter(({ keyframe }) => keyframe).length).toBe(2);
  });

  it('of keyframes only read only keyframes from the source', async () => {
    const run = open([image(10, { framerate: 0 })], tracks(), { onlyKeyframes: true });
    await run.feed(media.packets);
    await run.reaches(SECONDS - 1.1);
    await until('four frames', () => run.made(10).packets.length === 4);
  });
});

describe('a source that changes', () => {
  it('in size is followed, and encodes with a configured size do not change', async () => {
    const other = encodeMedia({
      video: 'libx264',
      audio: null,
      seconds: 2,
      extra: ['-bf', '0', '-g', '30', '-vf', 'scale=640:480,setsar=1', '-preset', 'ultrafast'],
    });
    const large: VideoTrack = { ...other.video!, width: 640, height: 480 };
    const run = open([video(10), video(11, { width: 160, height: 90 })], tracks());
    await run.feed(media.packets.filter(({ track }) => track.type === 'video'));
    const shift = SECONDS * 90_000;
    run.session.setTracks([large]);
    await run.feed(other.packets.map((packet) => ({ ...packet, track: large, pts: packet.pts + shift, dts: packet.dts + shift })));
    await run.makes(10, (SECONDS + 2) * 30);
    expect(run.made(10).tracks.map((track) => track.type === 'video' && [track.width, track.height])).toEqual([
      [320, 180],
      [640, 480],
    ]);
    expect(run.made(11).tracks.map((track) => track.type === 'video' && [track.width, track.height])).toContainEqual([160, 90]);
    expect(run.made(10).packets.length).toBe((SECONDS + 2) * 30);
  });

  it('with a rotation is not rotated, and the log warns', async () => {
    const made = lab();
    const turned = encodeMedia({
      video: 'libx264',
      audio: null,
      seconds: 1,
      extra: ['-bf', '0', '-preset', 'ultrafast', '-bsf:v', 'h264_metadata=display_orientation=insert:rotate=90'],
    });
    const run = made.open([video(10, { height: 90 })], [turned.video!]);
    await run.feed(turned.packets);
    await run.makes(10, 28);
    expect(run.track<VideoTrack>(10)).toMatchObject({ width: 160, height: 92 });
    expect(made.logger.lines.map(({ message }) => message)).toContainEqual(expect.stringMatching(/turn the frame by (90|270)°/));
  });

  it('to garbage loses only the garbage', async () => {
    const made = lab();
    const run = made.open([video(10, { height: 90 }), audio(11)], tracks());
    let seed = 1;
    const random = (): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed;
    };
    const spoiled = media.packets.map((packet, index) => {
      if (index % 3 !== 0 || packet.keyframe === (packet.track.type === 'video')) return packet;
      const data = packet.data.slice();
      for (let count = 0; count < 20; count += 1) data[random() % data.length] = random() & 0xff;
      return { ...packet, data };
    });
    await run.feed(spoiled);
    await run.reaches(SECONDS - 1);
    expect(made.logger.lines.filter(({ message }) => /died/.test(message))).toEqual([]);
    expect(run.made(10).packets.length).toBeGreaterThan(SECONDS * 15);
  });
});

/** A file from which ffprobe reads VP8. */
function ivf(track: VideoTrack, frames: readonly Uint8Array[]): Uint8Array {
  const header = Buffer.alloc(32);
  header.write('DKIF', 0);
  header.writeUInt16LE(32, 6);
  header.write('VP80', 8);
  header.writeUInt16LE(track.width, 12);
  header.writeUInt16LE(track.height, 14);
  header.writeUInt32LE(30, 16);
  header.writeUInt32LE(1, 20);
  header.writeUInt32LE(frames.length, 24);
  return Buffer.concat([
    header,
    ...frames.flatMap((frame, index) => {
      const head = Buffer.alloc(12);
      head.writeUInt32LE(frame.length, 0);
      head.writeUInt32LE(index, 4);
      return [head, Buffer.from(frame)];
    }),
  ]);
}
