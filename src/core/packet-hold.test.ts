import { describe, expect, it } from 'vitest';
import { audioPackets, audioTrack, constantFrames, videoPackets, videoTrack } from '../../test/fakes/synthetic-media.ts';
import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';
import { PacketHold } from './packet-hold.ts';

const video = (seconds: number, from = 0) => videoPackets(videoTrack(), constantFrames({ rate: 30, gop: 30, seconds, from }));

function drain(hold: PacketHold): Packet[] {
  const packets: Packet[] = [];
  for (let packet = hold.shift(); packet !== undefined; packet = hold.shift()) packets.push(packet);
  return packets;
}

describe('PacketHold', () => {
  it('gives packets in the order of their decoding times after sorting, each track in its own order', () => {
    const hold = new PacketHold();
    const sent = [...audioPackets(audioTrack(), 1), ...video(1)];
    for (const packet of sent) hold.push(packet);
    hold.sort();
    const packets = drain(hold);
    const times = packets.map(({ dts, track }) => toSeconds(dts, track.timebase));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    for (const type of ['video', 'audio']) {
      const order = (list: readonly Packet[]) => list.filter(({ track }) => track.type === type);
      expect(order(packets)).toEqual(order(sent));
    }
    expect(hold.size).toBe(0);
  });

  it('is full after five seconds of media, not counting gaps', () => {
    const hold = new PacketHold();
    for (const packet of video(4.9)) hold.push(packet);
    expect(hold.full).toBe(false);
    for (const packet of video(0.1, 5)) hold.push(packet);
    expect(hold.full).toBe(true);
  });

  it('is full after 4000 packets or 64 MiB', () => {
    const [packet] = video(1);
    if (packet === undefined) throw new Error('no packet');
    const many = new PacketHold();
    for (let count = 0; count < 3999; count += 1) many.push(packet);
    expect(many.full).toBe(false);
    many.push(packet);
    expect(many.full).toBe(true);
    const large = new PacketHold();
    const data = new Uint8Array(8 * 1024 * 1024);
    for (let count = 0; count < 7; count += 1) large.push({ ...packet, data });
    expect(large.full).toBe(false);
    large.push({ ...packet, data });
    expect(large.full).toBe(true);
    large.shift();
    expect(large.full).toBe(false);
  });

  it('starts again when it is empty or cleared', () => {
    const hold = new PacketHold();
    for (const packet of video(6)) hold.push(packet);
    drain(hold);
    expect([hold.size, hold.full]).toEqual([0, false]);
    for (const packet of video(6)) hold.push(packet);
    hold.clear();
    expect([hold.size, hold.full, hold.shift()]).toEqual([0, false, undefined]);
  });
});
