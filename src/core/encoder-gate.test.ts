import { expect, it, vi } from 'vitest';
import { audioPacket, audioTrack, videoPacket, videoTrack } from '../../test/fakes/source.ts';
import { EventFormat } from '../media/timed-event.ts';
import { EncoderGate } from './encoder-gate.ts';
import type { SourcePacket } from './ingest.ts';
import type { GatedStream } from './stand-in.ts';
import { Urgency } from './urgency.ts';

function setUp() {
  const pushed: SourcePacket[] = [];
  const calls = { setTracks: vi.fn(), heard: vi.fn(), heardTracks: vi.fn(), dismiss: vi.fn(), askKeyframe: vi.fn() };
  const stream: GatedStream = {
    ...{ vhost: 'v', name: 's', closed: false, urgency: Urgency.NONE, neededAt: 5, countBytes: () => undefined },
    push: (packet) => pushed.push(packet),
    pushEvent: () => true,
    pushCue: () => true,
    ...calls,
  };
  const gate = new EncoderGate({ stream, now: () => 0, onReady: () => false });
  return { pushed, calls, gate };
}

const EVENT = { format: EventFormat.ID3, target: 'all', data: new Uint8Array(4), at: null } as const;
const CUE = { at: 0, duration: 1000, settings: '', text: 'x' };

it('passes neither packets nor events nor cues while it is shut, and reports that the encoder is connected', () => {
  const { pushed, calls, gate } = setUp();
  const tracks = [videoTrack(), audioTrack()];
  gate.setTracks(tracks);
  expect([gate.pushEvent(EVENT), gate.pushCue('en', CUE), calls.setTracks.mock.calls.length]).toEqual([true, true, 1]);
  gate.shut();
  gate.setTracks(tracks);
  gate.push(audioPacket(0));
  expect([gate.pushEvent(EVENT), gate.pushCue('en', CUE), pushed]).toEqual([false, false, []]);
  expect([calls.setTracks.mock.calls.length, calls.heardTracks.mock.calls, calls.heard.mock.calls.length]).toEqual([1, [[tracks]], 1]);
  gate.open();
  expect([gate.pushEvent(EVENT), gate.pushCue('en', CUE), calls.setTracks.mock.calls.length]).toEqual([true, true, 2]);
});

it('needs packets when the stream does, and any of them while it is shut', () => {
  const { gate } = setUp();
  expect(gate.neededAt).toBe(5);
  gate.shut();
  expect(gate.neededAt).toBe(Number.NEGATIVE_INFINITY);
  gate.open();
  expect(gate.neededAt).toBe(5);
});

it('holds some seconds of audio, a burst after a keyframe, and nothing beyond its limit', () => {
  const { pushed, gate } = setUp();
  gate.setTracks([videoTrack(), audioTrack()]);
  gate.shut();
  for (let index = 0; index < 3000; index += 1) gate.push(audioPacket(index));
  gate.push(videoPacket(0));
  gate.open();
  expect([pushed.length, pushed[0]?.trackId]).toEqual([501, videoTrack().id]);
  pushed.length = 0;
  gate.shut();
  gate.push(videoPacket(0));
  for (let index = 1; index < 1500; index += 1) gate.push(videoPacket(1 + (index % 20)));
  gate.open();
  // Without its keyframe the rest would be of no use.
  expect(pushed).toEqual([]);
});

it('holds at most the bytes of some seconds', () => {
  const { pushed, gate } = setUp();
  gate.setTracks([videoTrack(), audioTrack()]);
  gate.shut();
  const large = { ...audioPacket(0), data: new Uint8Array(5 * 1024 * 1024) };
  for (let index = 0; index < 20; index += 1) gate.push(large);
  gate.push(videoPacket(0));
  gate.open();
  expect(pushed.map(({ data }) => data.length)).toEqual([64, ...Array<number>(6).fill(large.data.length)]);
});
