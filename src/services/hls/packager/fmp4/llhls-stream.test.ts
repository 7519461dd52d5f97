import { describe, expect, it } from 'vitest';
import {
  audioPackets,
  audioTrack,
  constantFrames,
  interleave,
  videoPackets,
  videoTrack,
} from '../../../../../test/fakes/synthetic-media.ts';
import { DEFAULT_SETTINGS, LlhlsSimulation } from '../../../../../test/validator/llhls-simulation.ts';
import { findBox, readBoxes } from '../../../../containers/isobmff/box-reader.ts';
import { Urgency } from '../../../../core/urgency.ts';
import { VideoCodec } from '../../../../media/codec.ts';
import type { Packet } from '../../../../media/packet.ts';
import { MILLISECONDS } from '../../../../media/timebase.ts';
import type { DataTrack } from '../../../../media/track.ts';
import { LlhlsPublisher } from './llhls-publisher.ts';

const video = videoTrack();
const audio = audioTrack();
const data: DataTrack = {
  type: 'data',
  id: 9,
  publicName: 'Data_9',
  variantName: '',
  timebase: MILLISECONDS,
  bitrateConf: 0,
  language: '',
  characteristics: '',
  bypass: true,
};

function frames(seconds: number, from = 0): Packet[] {
  return videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds, from }));
}

function partBytes(simulation: LlhlsSimulation, name: string): Uint8Array {
  const track = simulation.watched.find((candidate) => [...candidate.parts.keys()].some((uri) => uri.startsWith(name)));
  const uri = [...(track?.parts.keys() ?? [])].find((candidate) => candidate.startsWith(name));
  return track?.parts.get(uri ?? '') ?? new Uint8Array();
}

describe('an LL-HLS stream', () => {
  it('puts ID3 tags in front of the part whose time holds them', () => {
    const simulation = new LlhlsSimulation([video, audio, data]);
    const tag = (time: number, text: string): Packet => ({
      track: data,
      pts: time,
      dts: time,
      duration: 0,
      keyframe: true,
      data: Buffer.from(text),
    });
    simulation.run(interleave(frames(4), audioPackets(audio, 4), [tag(1_100, 'ID3\u0004tag'), tag(1_200, 'not a tag')]));
    expect(simulation.problems).toEqual([]);
    const types = (name: string): string =>
      readBoxes(partBytes(simulation, name))
        .map((box) => box.type)
        .join();
    expect(types('part_0_0_2')).toBe('emsg,moof,mdat');
    expect(types('part_0_0_1')).toBe('moof,mdat');
    expect(types('part_1_0_2')).toBe('moof,mdat');
    const emsg = findBox(partBytes(simulation, 'part_0_0_2'), ['emsg'])?.body ?? new Uint8Array();
    expect(new DataView(emsg.buffer, emsg.byteOffset).getBigUint64(8)).toBe(99_000n);
  });

  it('starts with the first frame: earlier audio is left out', () => {
    const simulation = new LlhlsSimulation([video, audio]);
    simulation.run(interleave(frames(10, 0.9), audioPackets(audio, 10)));
    expect(simulation.problems).toEqual([]);
    const starts = simulation.watched.map((track) => track.playlist?.segments[0]?.programDateTime ?? 0);
    expect(Math.abs((starts[0] ?? 0) - (starts[1] ?? 0))).toBeLessThanOrEqual(22);
  });

  it('serves audio alone while there is no video, and video when it starts', () => {
    const simulation = new LlhlsSimulation([video, audio]);
    simulation.run(interleave(frames(30, 20), audioPackets(audio, 50)));
    expect(simulation.playableAt).toBeLessThan(14);
    expect(simulation.problems).toEqual([]);
    expect(simulation.delivery.get('llhls.m3u8').text).toContain('RESOLUTION');
  });

  it('moves negative decode times of B-frames up', () => {
    const simulation = new LlhlsSimulation([video]);
    const early = frames(10).map((packet) => ({ ...packet, dts: packet.dts - 6000 }));
    simulation.run(early);
    expect(simulation.problems).toEqual([]);
    const tfdt = findBox(partBytes(simulation, 'part_0_0_0'), ['moof', 'traf', 'tfdt'])?.body ?? new Uint8Array();
    expect(new DataView(tfdt.buffer, tfdt.byteOffset).getBigUint64(4)).toBe(84_000n);
  });

  it('numbers segments by the wall clock when the setting asks for it', () => {
    const simulation = new LlhlsSimulation([video, audio], { serverTimeBasedSegmentNumbering: true });
    simulation.run(interleave(frames(20), audioPackets(audio, 20)));
    expect(simulation.problems).toEqual([]);
    for (const track of simulation.watched) {
      expect(track.playlist?.mediaSequence).toBe(Math.floor(simulation.source.startedAt / 6000));
    }
  });

  it('stops serving a removed track and lets another track lead', () => {
    const simulation = new LlhlsSimulation([video, audio]);
    const packets = interleave(frames(20), audioPackets(audio, 60));
    simulation.run(packets.filter((packet) => packet.track === video || packet.dts < 20 * 48_000));
    const gone = simulation.watched.findIndex((track) => track.id === 0);
    const uri = simulation.watched.splice(gone, 1)[0]?.uri ?? '';
    const stored = simulation.delivery.feed.storedBytes;
    simulation.stream.onTracks([audio]);
    expect(simulation.delivery.get(uri).status).toBe(404);
    expect(simulation.delivery.feed.storedBytes).toBeLessThan(stored * 0.6);
    simulation.run(packets.filter((packet) => packet.track === audio && packet.dts >= 20 * 48_000));
    expect(simulation.problems).toEqual([]);
    expect(simulation.watched[0]?.end).toBeGreaterThan(59);
  });

  it('rolls its traffic up to the stream', () => {
    const simulation = new LlhlsSimulation([video]);
    const { request } = simulation.delivery.feed;
    const sessions = ['a', 'b', 'c'].map((id) => request.openSession?.({ id, onTerminate: () => undefined }));
    sessions[1]?.close();
    sessions[1]?.close();
    request.onBytesSent(1000);
    expect(simulation.source.viewers).toBe(2);
    expect(simulation.source.sessions.map(({ request: { id, kind } }) => [id, kind])).toEqual([
      ['a', 'llhls'],
      ['c', 'llhls'],
    ]);
    expect(simulation.source.bytes).toBe(1000);
  });

  it('needs low latency while a viewer may wait for the next part', () => {
    const { stream, delivery } = new LlhlsSimulation([video]);
    expect(stream.urgency).toBe(Urgency.LOW_LATENCY);
    delivery.feed.watched = false;
    expect(stream.urgency).toBe(Urgency.NONE);
  });

  it('ignores packets after its end', () => {
    const simulation = new LlhlsSimulation([video]);
    simulation.stream.close({ code: 'shutdown', detail: '' });
    simulation.stream.onTracks([video]);
    simulation.stream.onPacket(frames(1)[0] as Packet);
    simulation.stream.concludeHlsLive();
    expect(simulation.delivery.feed.updates).toHaveLength(1);
  });
});

describe('the default playlist', () => {
  const publisher = new LlhlsPublisher(new LlhlsSimulation([]).delivery);

  it('has the first video and audio that can be served', () => {
    const vp8 = videoTrack({ id: 5, codec: VideoCodec.VP8, variantName: 'vp8' });
    const playlist = publisher.defaultPlaylist([vp8, video, audio], DEFAULT_SETTINGS);
    expect(playlist).toMatchObject({ name: 'llhls_default', fileName: 'llhls', options: { hlsChunklistPathDepth: -1 } });
    expect(playlist?.renditions).toEqual([
      { name: 'default', videoVariantName: 'video', audioVariantName: 'audio', videoIndexHint: -1, audioIndexHint: -1 },
    ]);
  });

  it('is null without audio and video, or when it is switched off', () => {
    expect(publisher.defaultPlaylist([data], DEFAULT_SETTINGS)).toBeNull();
    expect(publisher.defaultPlaylist([video], { ...DEFAULT_SETTINGS, createDefaultPlaylist: false })).toBeNull();
  });
});
