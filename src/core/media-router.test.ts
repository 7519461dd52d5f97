import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accessUnit, audioPacket, audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import { AVCC } from '../../test/fixtures/bitstreams.ts';
import type { Packet } from '../media/packet.ts';
import { MPEG_90K } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { MediaRouter } from './media-router.ts';

/** No decoder configuration. */
const UNREADABLE = Buffer.from('0142001f', 'hex');

function routerWithOutput() {
  const packets: Packet[] = [];
  const announcements: (readonly Track[])[] = [];
  const router = new MediaRouter({ onTracks: (tracks) => announcements.push(tracks), onPacket: (packet) => packets.push(packet) });
  return { router, packets, announcements };
}

describe('MediaRouter', () => {
  it('describes the tracks by their configuration and adds a data track', () => {
    const { router, announcements } = routerWithOutput();
    router.setTracks([videoTrack(), audioTrack()]);
    expect(announcements.at(-1)).toMatchObject([
      { id: 0, type: 'video', codec: 'H264', width: 320, height: 180, codecString: 'avc1.42c00d', publicName: 'Video_0' },
      { id: 1, type: 'audio', codec: 'AAC', sampleRate: 48_000, channels: 2, codecString: 'mp4a.40.2', publicName: 'Audio_1' },
      { id: 2, type: 'data', publicName: 'Data_2' },
    ]);
  });

  it('starts at 0 with the first keyframe and leaves out earlier packets', () => {
    const { router, packets } = routerWithOutput();
    router.setTracks([videoTrack(), audioTrack()]);
    for (let index = 10; index < 40; index += 1) router.push(videoPacket(index, { startMs: 5000 }));
    expect(packets[0]).toMatchObject({ dts: 0, keyframe: true });
    expect(packets.length).toBe(10);
    expect(router.counters.discarded).toBe(20);
  });

  it('trusts two measured distances more than the announced frame rate', () => {
    const { router, packets } = routerWithOutput();
    router.setTracks([videoTrack({ framerateConf: 30 })]);
    for (let index = 0; index < 5; index += 1) router.push({ ...videoPacket(0), dts: index * 1000, pts: index * 1000 });
    expect(packets.map(({ duration }) => duration)).toEqual([3000, 46_500, 90_000, 90_000, 90_000]);
  });

  it('counts the samples of G.711 by its bytes', () => {
    const { router, packets, announcements } = routerWithOutput();
    router.setTracks([audioTrack({ codec: 'PCMU', format: 'raw', config: null, sampleRate: 8000, channels: 1 })]);
    for (const [index, length] of [160, 160, 80, 160].entries()) {
      router.push({ trackId: 1, pts: index * 20, dts: index * 20, keyframe: true, data: new Uint8Array(length) });
    }
    expect(announcements.at(-1)![0]).toMatchObject({ codec: 'PCMU', sampleRate: 8000, channels: 1, codecString: 'ulaw' });
    expect(packets.map(({ dts, duration }) => [dts, duration])).toEqual([
      [0, 160],
      [160, 160],
      [320, 80],
      [480, 160],
    ]);
  });

  it('keeps audio in step with the video that started the timeline', () => {
    const { router, packets } = routerWithOutput();
    router.setTracks([videoTrack(), audioTrack()]);
    router.push(audioPacket(0, { startMs: 1000 }));
    router.push(videoPacket(0, { startMs: 1040 }));
    for (let index = 1; index < 10; index += 1) router.push(audioPacket(index, { startMs: 1000 }));
    const audio = packets.filter(({ track }) => track.type === 'audio');
    expect(audio[0]?.dts).toBe(3 * 48);
    expect(audio.map(({ dts }, index) => dts - index * 1024)).toEqual(audio.map(() => 3 * 48));
  });

  it('continues with audio when no keyframe arrives for five seconds', () => {
    const { router, packets } = routerWithOutput();
    router.setTracks([videoTrack(), audioTrack()]);
    for (let index = 0; index < 300; index += 1) router.push(audioPacket(index));
    expect(packets.length).toBeGreaterThan(50);
    expect(packets[0]?.dts).toBe(0);
  });

  it('starts at once without video', () => {
    const { router, packets } = routerWithOutput();
    router.setTracks([audioTrack()]);
    for (let index = 0; index < 5; index += 1) router.push(audioPacket(index, { startMs: 77 }));
    expect(packets.map(({ dts }) => dts)).toEqual([0, 1024, 2048, 3072, 4096]);
  });

  it('gives video durations that follow its real frame rate', () => {
    const { router, packets } = routerWithOutput();
    router.setTracks([videoTrack({ framerateConf: 0 })]);
    for (let index = 0; index < 120; index += 1) {
      const dts = index * 40;
      router.push({ trackId: 0, pts: dts, dts, keyframe: index === 0, data: accessUnit(index === 0) });
    }
    expect(packets.at(-1)?.duration).toBe(3600);
  });

  it('keeps presentation order of B-frames relative to decoding order', () => {
    const { router, packets } = routerWithOutput();
    router.setTracks([videoTrack()]);
    const composition = [80, 160, 80, 0, 40];
    composition.forEach((offset, index) => {
      router.push({
        trackId: 0,
        pts: 1000 + index * 40 + offset,
        dts: 1000 + index * 40,
        keyframe: index === 0,
        data: accessUnit(index === 0),
      });
    });
    expect(packets.map(({ pts, dts }) => (pts - dts) / 90)).toEqual(composition);
  });

  it('follows new parameters announced by the source without leaving the timeline', () => {
    const { router, packets, announcements } = routerWithOutput();
    router.setTracks([videoTrack()]);
    for (let index = 0; index < 30; index += 1) router.push(videoPacket(index));
    router.setTracks([videoTrack({ config: AVCC.baseline360 })]);
    for (let index = 30; index < 60; index += 1) router.push(videoPacket(index));
    expect(announcements.at(-1)?.[0]).toMatchObject({ width: 640, height: 360 });
    expect(packets[29]?.track).not.toBe(packets[30]?.track);
    expect(packets[30]?.dts).toBe(90_000);
  });

  it('announces the full size of growing frames from the start, and a larger frame at its own size', () => {
    const { router, packets, announcements } = routerWithOutput();
    const fullSize = { width: 320, height: 180 };
    router.setTracks([videoTrack({ config: AVCC.baseline180, fullSize: { width: 640, height: 360 } })]);
    router.push(videoPacket(0));
    expect(announcements.at(-1)?.[0]).toMatchObject({ width: 640, height: 360 });
    router.setTracks([videoTrack({ config: AVCC.baseline360, fullSize })]);
    router.push(videoPacket(1));
    expect(packets.at(-1)?.track).toMatchObject({ width: 640, height: 360 });
  });

  it('continues with the other tracks when the parameters of a track are unreadable', () => {
    const { router, packets, announcements } = routerWithOutput();
    const fault = router.setTracks([videoTrack({ config: UNREADABLE }), audioTrack()]);
    expect(announcements.at(-1)).toMatchObject([{ id: 1, type: 'audio' }, { type: 'data' }]);
    router.push(audioPacket(0));
    expect(packets).toHaveLength(1);
    expect(router.counters).toMatchObject({ malformed: 1, firstFault: `${fault?.code}: ${fault?.message}` });
    expect(router.setTracks([videoTrack(), audioTrack()])).toBeNull();
    expect(announcements.at(-1)).toMatchObject([{ id: 0, type: 'video' }, { id: 1 }, { type: 'data' }]);
  });

  it('keeps a track unchanged when its new parameters are unreadable', () => {
    const { router, packets, announcements } = routerWithOutput();
    router.setTracks([videoTrack(), audioTrack()]);
    router.push(videoPacket(0));
    const before = announcements.at(-1);
    expect(router.setTracks([videoTrack({ config: UNREADABLE }), audioTrack()])?.code).toBeDefined();
    expect(announcements.at(-1)).toEqual(before);
    router.push(videoPacket(1));
    expect(packets.map(({ track }) => track)).toEqual([before?.[0], before?.[0]]);
    // The old configuration cannot be kept: packets of the new track have another timebase.
    router.setTracks([videoTrack({ config: UNREADABLE, timebase: MPEG_90K }), audioTrack()]);
    expect(announcements.at(-1)).toMatchObject([{ type: 'audio' }, { type: 'data' }]);
  });

  it('refuses an unreadable source, and accepts the next one', () => {
    const { router, packets, announcements } = routerWithOutput();
    expect(() => router.setTracks([videoTrack({ config: UNREADABLE })])).toThrow(ProtocolError);
    expect(announcements).toEqual([]);
    router.setTracks([videoTrack()]);
    router.push(videoPacket(0));
    expect(packets).toHaveLength(1);
  });

  it('follows parameter sets inside a keyframe', () => {
    const { router, packets } = routerWithOutput();
    router.setTracks([videoTrack({ config: AVCC.baseline180 })]);
    router.push(videoPacket(0));
    const sps = AVCC.baseline360.subarray(8, 8 + 25);
    const prefix = Buffer.alloc(4);
    prefix.writeUInt32BE(sps.length);
    router.push({ trackId: 0, pts: 33, dts: 33, keyframe: true, data: Buffer.concat([prefix, sps, accessUnit(true)]) });
    expect(packets[1]?.track).toMatchObject({ width: 640, height: 360 });
  });

  it('converts shorter NAL lengths and writes them into the configuration', () => {
    const config = Buffer.from(AVCC.baseline180);
    config[4] = 0xfd;
    const { router, packets, announcements } = routerWithOutput();
    router.setTracks([videoTrack({ config })]);
    router.push({ trackId: 0, pts: 0, dts: 0, keyframe: true, data: Buffer.from([0, 3, 0x65, 1, 2]) });
    expect(Buffer.from(packets[0]?.data ?? [])).toEqual(Buffer.from([0, 0, 0, 3, 0x65, 1, 2]));
    const track = announcements.at(-1)?.[0];
    expect(track?.type === 'video' && track.config?.[4]).toBe(0xff);
  });

  it('counts unreadable packets and reports the fault of the first', () => {
    const { router, packets } = routerWithOutput();
    router.setTracks([videoTrack()]);
    router.push(videoPacket(0));
    router.push({ ...videoPacket(1), data: Buffer.from('00000009aa', 'hex') });
    router.push({ ...videoPacket(2), data: Buffer.from('ff', 'hex') });
    router.push(videoPacket(3));
    expect(packets).toHaveLength(2);
    expect(router.counters).toMatchObject({ malformed: 2, firstFault: expect.stringMatching(/^[A-Z0-9_]+: .*9/) as string });
  });

  it('never throws and never decreases timestamps, for arbitrary packets', () => {
    const packet = fc.record({
      trackId: fc.integer({ min: 0, max: 3 }),
      pts: fc.integer(),
      dts: fc.integer(),
      keyframe: fc.option(fc.boolean()),
      data: fc.uint8Array({ maxLength: 64 }),
    });
    fc.assert(
      fc.property(fc.array(packet, { maxLength: 100 }), (sources) => {
        const { router, packets } = routerWithOutput();
        router.setTracks([videoTrack(), audioTrack()]);
        for (const source of sources) router.push(source);
        // A violation of the format is a fault of the source; any other exception would be an internal fault.
        expect(router.counters.firstFault ?? 'NONE: ').toMatch(/^[A-Z0-9_]+: /);
        const last = new Map<number, number>();
        for (const { track, dts } of packets) {
          if (track.type === 'data') expect(dts).toBeGreaterThanOrEqual(last.get(track.id) ?? 0);
          else expect(dts).toBeGreaterThan(last.get(track.id) ?? -1);
          last.set(track.id, dts);
        }
      }),
    );
  });
});
