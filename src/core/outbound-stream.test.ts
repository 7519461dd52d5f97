import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { RecordingLogger } from '../../test/fakes/recording-logger.ts';
import { audioPackets, audioTrack, constantFrames, interleave, videoPackets, videoTrack } from '../../test/fakes/synthetic-media.ts';
import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import { PublisherKind } from './kinds.ts';
import { OutboundStream } from './outbound-stream.ts';
import { QueueRegistry } from './queue-registry.ts';
import { SessionRegistry } from './session-registry.ts';
import { TrafficMeter } from './traffic-meter.ts';

const HIGH = videoTrack({ id: 0, variantName: 'high' });
const LOW = videoTrack({ id: 1, variantName: 'low' });
const AUDIO = audioTrack({ id: 2 });
const PICTURE = videoTrack({ id: 3, variantName: 'picture', codec: 'JPEG' });

function setUp(tracks: readonly Track[], attended?: boolean) {
  const clock = new ManualClock();
  const queues = new QueueRegistry(clock);
  const meter = new TrafficMeter(clock, null);
  const stream = new OutboundStream({
    id: 1,
    vhost: 'v',
    app: 'app',
    name: 's',
    sourceName: 'source',
    meter,
    sessions: new SessionRegistry(clock, meter),
    queues,
    logger: new RecordingLogger(),
    requestKeyframe: () => undefined,
    fromOriginMap: false,
    attend: () => undefined,
  });
  const events: (Packet | readonly Track[])[] = [];
  const served = {
    ...(attended !== undefined && { attended }),
    onTracks: (announced: readonly Track[]) => events.push(announced),
    onPacket: (packet: Packet) => events.push(packet),
    close: () => undefined,
  };
  const publisher = { kind: PublisherKind.LLHLS, defaultPlaylist: () => null, attach: () => served };
  stream.attach({ publisher, settings: {} });
  stream.setTracks(tracks, []);
  events.length = 0;
  return { stream, events, queues, served, packets: () => events.filter((event): event is Packet => 'pts' in event) };
}

const frames = (rate: number, gop: number, seconds: number, from = 0) => constantFrames({ rate, gop, seconds, from });

describe('OutboundStream', () => {
  it('tells what its publishers warn of', () => {
    const { stream, served } = setUp([HIGH]);
    expect(stream.warnings).toEqual([]);
    Object.assign(served, { warnings: ['no sound'] });
    expect(stream.warnings).toEqual(['no sound']);
  });

  it('drops a full queue and lets every video track go on with its own keyframe', () => {
    const { stream, packets, queues } = setUp([HIGH, LOW, AUDIO, PICTURE]);
    // 600 packets without a turn: the queue of 500 overflows in the middle of both GOPs.
    for (const packet of videoPackets(HIGH, frames(60, 1000, 10))) stream.push(packet);
    stream.drain();
    expect(packets().length).toBe(0);
    const rest = interleave(
      videoPackets(HIGH, frames(30, 1000, 2, 10.5)),
      videoPackets(LOW, frames(30, 1000, 2, 11)),
      videoPackets(LOW, frames(30, 1000, 0.5, 10)).map((packet) => ({ ...packet, keyframe: false })),
      videoPackets(PICTURE, frames(1, 1, 3, 10)),
      audioPackets(AUDIO, 3, 10),
    );
    for (const packet of rest) stream.push(packet);
    stream.drain();
    const got = packets();
    const first = (id: number) => got.find(({ track }) => track.id === id);
    // The picture at 10 s stands alone and opens nothing.
    expect(got[0]).toMatchObject({ track: HIGH, keyframe: true });
    expect(first(1)).toMatchObject({ keyframe: true });
    expect(first(0)?.keyframe).toBe(true);
    expect(got.filter(({ track }) => track === HIGH).length).toBe(60);
    expect(got.filter(({ track }) => track === LOW).length).toBe(60);
    const [status] = queues.statuses();
    expect(status?.drop).toBe(600 + rest.length - got.length);
  });

  it('is attended to while a publisher does not say that nobody is there', () => {
    const { stream } = setUp([AUDIO]);
    expect(stream.attended).toBe(true);
    const { stream: lonely, served } = setUp([AUDIO], false);
    expect(lonely.attended).toBe(false);
    served.attended = true;
    expect(lonely.attended).toBe(true);
  });

  it('goes on at once after a drop when there is no video', () => {
    const { stream, packets } = setUp([AUDIO]);
    const sound = audioPackets(AUDIO, 12);
    for (const packet of sound) stream.push(packet);
    stream.drain();
    expect(packets().length).toBe(sound.length - 501);
  });

  it('hands over what was pushed before it tells that tracks have changed', () => {
    const { stream, events } = setUp([HIGH]);
    const [packet] = videoPackets(HIGH, frames(30, 30, 1));
    if (packet === undefined) throw new Error('no packet');
    stream.push(packet);
    const changed = [{ ...HIGH, width: 640 }];
    stream.setTracks(changed, []);
    expect(events).toEqual([packet, changed]);
  });
});
