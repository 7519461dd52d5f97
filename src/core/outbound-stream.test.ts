import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioPackets, audioTrack, constantFrames, interleave, videoPackets, videoTrack } from '../../test/fakes/synthetic-media.ts';
import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import type { CloseReason } from './ingest.ts';
import { PublisherKind } from './kinds.ts';
import { OutboundStream } from './outbound-stream.ts';
import type { PublisherStream } from './publishing.ts';
import { SessionRegistry } from './session-registry.ts';
import { TrafficMeter } from './traffic-meter.ts';
import { Urgency } from './urgency.ts';

const HIGH = videoTrack({ id: 0, variantName: 'high' });
const AUDIO = audioTrack({ id: 2 });

function setUp(tracks: readonly Track[], urgency?: Urgency, wake: () => unknown = () => undefined) {
  const clock = new ManualClock();
  const meter = new TrafficMeter(clock, null);
  const logger = new RecordingLogger();
  const stream = new OutboundStream({
    id: 1,
    vhost: 'v',
    app: 'app',
    name: 's',
    sourceName: 'source',
    meter,
    sessions: new SessionRegistry(clock, meter),
    logger,
    requestKeyframe: () => undefined,
    fromOriginMap: false,
    wake,
  });
  const events: (Packet | readonly Track[])[] = [];
  const served = {
    ...(urgency !== undefined && { urgency }),
    onTracks: (announced: readonly Track[]) => events.push(announced),
    onPacket: (packet: Packet) => events.push(packet),
    close: () => undefined,
  };
  const publisher = { kind: PublisherKind.LLHLS, defaultPlaylist: () => null, attach: () => served };
  stream.attach({ publisher, settings: {} });
  stream.setTracks(tracks, []);
  events.length = 0;
  return { stream, events, served, logger, packets: () => events.filter((event): event is Packet => 'pts' in event) };
}

function attach(stream: OutboundStream, served: PublisherStream): void {
  stream.attach({ publisher: { kind: PublisherKind.HLS, defaultPlaylist: () => null, attach: () => served }, settings: {} });
}

const frames = (rate: number, gop: number, seconds: number, from = 0) => constantFrames({ rate, gop, seconds, from });

describe('OutboundStream', () => {
  it('collects the warnings of its publishers', () => {
    const { stream, served } = setUp([HIGH]);
    expect(stream.warnings).toEqual([]);
    Object.assign(served, { warnings: ['no audio'] });
    expect(stream.warnings).toEqual(['no audio']);
  });

  it('keeps all packets of one turn, in any number', () => {
    const { stream, packets } = setUp([HIGH, AUDIO]);
    const sent = interleave(videoPackets(HIGH, frames(60, 60, 20)), audioPackets(AUDIO, 20));
    for (const packet of sent) stream.push(packet);
    stream.drain();
    expect(packets()).toEqual(sent);
  });

  it('passes each packet to all publishers at once, and signals the end of each turn with packets', () => {
    const { stream } = setUp([HIGH]);
    const calls: string[] = [];
    const named = (name: string) => ({
      onTracks: () => undefined,
      onPacket: ({ dts }: Packet) => calls.push(`${name} ${dts}`),
      onDrained: () => calls.push(`${name} drained`),
      close: () => undefined,
    });
    for (const name of ['a', 'b']) attach(stream, named(name));
    const [first, second] = videoPackets(HIGH, frames(30, 30, 1));
    if (first === undefined || second === undefined) throw new Error('no packets');
    stream.drain();
    stream.push(first);
    expect(calls).toEqual(['a 0', 'b 0']);
    stream.push(second);
    stream.drain();
    stream.drain();
    expect(calls.slice(2)).toEqual(['a 3000', 'b 3000', 'a drained', 'b drained']);
  });

  it.each(['onTracks', 'onPacket', 'onDrained'] as const)('closes a publisher that throws in %s, only for that stream', (method) => {
    const { stream, packets, logger } = setUp([HIGH]);
    const calls: string[] = [];
    const closed: string[] = [];
    const fail = (): never => {
      throw new Error('made up');
    };
    const broken = {
      onTracks: () => undefined,
      onPacket: () => undefined,
      onDrained: () => undefined,
      [method]: fail,
      close: ({ detail }: CloseReason) => {
        closed.push(detail);
        throw new Error('made up again');
      },
    };
    attach(stream, broken);
    const behind = {
      onTracks: () => undefined,
      onPacket: () => calls.push('packet'),
      onDrained: () => calls.push('drained'),
      close: () => undefined,
    };
    attach(stream, behind);
    stream.setTracks([HIGH], []);
    const sent = videoPackets(HIGH, frames(30, 30, 1));
    for (const packet of sent) {
      stream.push(packet);
      stream.drain();
    }
    expect(packets()).toEqual(sent);
    expect(calls).toEqual(sent.flatMap(() => ['packet', 'drained']));
    expect(closed).toEqual(['publisher failed']);
    expect(logger.lines.filter(({ level }) => level === 'error').length).toBe(1);
  });

  it('has the urgency of its most urgent publisher, and real time for publishers without one', () => {
    const { stream } = setUp([AUDIO]);
    expect(stream.urgency).toBe(Urgency.REAL_TIME);
    const { stream: lonely, served } = setUp([AUDIO], Urgency.NONE);
    const other = { urgency: Urgency.NONE as Urgency, onTracks: () => undefined, onPacket: () => undefined, close: () => undefined };
    attach(lonely, other);
    expect(lonely.urgency).toBe(Urgency.NONE);
    served.urgency = Urgency.LOW_LATENCY;
    expect(lonely.urgency).toBe(Urgency.LOW_LATENCY);
    other.urgency = Urgency.REAL_TIME;
    expect(lonely.urgency).toBe(Urgency.REAL_TIME);
    served.urgency = Urgency.NONE;
    other.urgency = Urgency.LOW_LATENCY;
    expect(lonely.urgency).toBe(Urgency.LOW_LATENCY);
  });

  it('needs packets at the earliest time of its publishers that cannot wait for a batch', () => {
    const { stream } = setUp([AUDIO], Urgency.NONE);
    expect(stream.neededAt).toBe(Number.POSITIVE_INFINITY);
    const silent = { onTracks: () => undefined, onPacket: () => undefined, close: () => undefined };
    attach(stream, { ...silent, urgency: Urgency.NONE, neededAt: 1000 });
    attach(stream, { ...silent, urgency: Urgency.BATCHED });
    attach(stream, { ...silent, urgency: Urgency.LOW_LATENCY, neededAt: 3000 });
    attach(stream, { ...silent, urgency: Urgency.LOW_LATENCY, neededAt: 2000 });
    expect(stream.neededAt).toBe(2000);
    attach(stream, { ...silent, urgency: Urgency.LOW_LATENCY });
    expect(stream.neededAt).toBe(Number.NEGATIVE_INFINITY);
  });

  it('passes queued packets on before it announces changed tracks', () => {
    const { stream, events } = setUp([HIGH]);
    const [packet] = videoPackets(HIGH, frames(30, 30, 1));
    if (packet === undefined) throw new Error('no packet');
    stream.push(packet);
    const changed = [{ ...HIGH, width: 640 }];
    stream.setTracks(changed, []);
    expect(events).toEqual([packet, changed]);
  });

  it('passes tracks, packets and its end to a tap as to a publisher, until the tap leaves', () => {
    const { stream, packets } = setUp([HIGH], Urgency.NONE);
    const calls: string[] = [];
    const tap = {
      urgency: Urgency.LOW_LATENCY,
      onTracks: (tracks: readonly Track[]) => calls.push(`tracks ${tracks.length}`),
      onPacket: ({ dts }: Packet) => calls.push(`packet ${dts}`),
      close: ({ detail }: CloseReason) => calls.push(`closed ${detail}`),
    };
    expect(stream.tapped).toBe(false);
    const leave = stream.tap('a tap', tap);
    expect([stream.tapped, stream.urgency, calls]).toEqual([true, Urgency.LOW_LATENCY, ['tracks 1']]);
    const [first, second] = videoPackets(HIGH, frames(30, 30, 1));
    if (first === undefined || second === undefined) throw new Error('no packets');
    stream.push(first);
    leave();
    leave();
    stream.push(second);
    expect([stream.tapped, stream.urgency]).toEqual([false, Urgency.NONE]);
    stream.tap('another tap', { ...tap, onTracks: () => undefined });
    stream.close({ code: 'peer-left', detail: 'over' });
    expect(calls).toEqual(['tracks 1', 'packet 0', 'closed over']);
    expect(packets()).toHaveLength(2);
  });

  it('passes every packet to the others when a tap leaves during a packet', () => {
    const { stream } = setUp([HIGH]);
    const seen: number[] = [];
    const silent = { onTracks: () => undefined, close: () => undefined };
    const leave = stream.tap('a tap', { ...silent, onPacket: () => leave() });
    attach(stream, { ...silent, onPacket: ({ dts }) => seen.push(dts) });
    for (const packet of videoPackets(HIGH, frames(30, 30, 1)).slice(0, 3)) stream.push(packet);
    expect(seen).toEqual([0, 3000, 6000]);
  });

  it('asks its source for resting packets when a tap is added', () => {
    const watched: string[] = [];
    const { stream } = setUp([HIGH], Urgency.NONE, () => watched.push('woken'));
    stream.tap('a tap', { onTracks: () => undefined, onPacket: () => undefined, close: () => undefined });
    expect(watched).toEqual(['woken']);
  });
});
