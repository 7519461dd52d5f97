import { beforeEach, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { dataTrack, videoTrack } from '../../test/fakes/synthetic-media.ts';
import { buildCue, parseCue } from '../containers/markers/cue.ts';
import { buildSpliceInsert, parseSplice } from '../containers/markers/splice-info.ts';
import type { Packet } from '../media/packet.ts';
import { MILLISECONDS } from '../media/timebase.ts';
import { EventInjector, MAX_EVENT_BYTES } from './event-injector.ts';
import type { SourceEvent } from './ingest.ts';

const track = { ...dataTrack(2), timebase: MILLISECONDS };
const video = videoTrack();
let clock: ManualClock;
let injector: EventInjector;
let packets: Packet[];
let urgent: boolean[];
let end: number;
let keyframes: { keyframeAt: number; keyframeSeconds: number } | null;
let bypassed: boolean;
let hasMedia: boolean;

beforeEach(() => {
  clock = new ManualClock();
  packets = [];
  urgent = [];
  end = 10;
  keyframes = { keyframeAt: 9.5, keyframeSeconds: 2 };
  bypassed = true;
  hasMedia = true;
  injector = new EventInjector({
    clock,
    router: {
      get eventTrack() {
        return hasMedia ? track : null;
      },
      get end() {
        return end;
      },
      timeOf: (seconds) => seconds - 100,
    },
    keyframes: () => keyframes,
    passesVideo: () => bypassed,
    onPacket: (packet, isUrgent) => {
      packets.push(packet);
      urgent.push(isUrgent);
    },
  });
});

function carry(event: Partial<SourceEvent>): void {
  const whole: SourceEvent = { format: 'id3v2', target: 'all', data: Buffer.from('ID3'), at: null, ...event };
  expect(injector.admits(whole)).toBe(true);
  injector.carry(whole, false);
}

/** Media continues until `seconds`. */
function reach(seconds: number): void {
  end = seconds;
  if (injector.waits)
    injector.pass({ track: video, pts: seconds * 90_000, dts: seconds * 90_000, duration: 3000, keyframe: false, data: Buffer.of() });
}

const cue = (type: 'out' | 'in' | 'cont', duration = 0) => ({ format: 'cue', data: buildCue({ type, duration, elapsed: 0 }) }) as const;
const splice = (id: number, autoReturn: boolean, type: 'out' | 'in' = 'out') =>
  ({ format: 'scte35', data: buildSpliceInsert({ id, type, time: 0, duration: type === 'out' ? 270_000 : null, autoReturn }) }) as const;

it('gives an event the time of the newest media, or its own time on the timeline', () => {
  carry({});
  carry({ at: 103 });
  expect(packets.map(({ pts, dts, event }) => [pts, dts, event?.target])).toEqual([
    [10_000, 10_000, 'all'],
    [3000, 10_000, 'all'],
  ]);
});

it('moves a marker to the first keyframe that is at least an interval ahead', () => {
  carry(cue('in'));
  // Keyframes come at 9.5, 11.5 and 13.5 s: the marker needs the second one from now.
  expect(packets[0]?.pts).toBe(13_500);
  bypassed = false;
  carry(cue('in'));
  // An encoder makes a keyframe at any requested time.
  expect(packets[1]?.pts).toBe(12_000);
  keyframes = null;
  carry(cue('in'));
  expect(packets[2]?.pts).toBe(10_000);
});

it('ends a break one interval before its end, at a keyframe', () => {
  carry(cue('out', 5000));
  reach(16.4);
  expect(packets).toHaveLength(1);
  keyframes = { keyframeAt: 15.5, keyframeSeconds: 2 };
  reach(16.5);
  expect(packets.map(({ pts }) => pts)).toEqual([13_500, 19_500]);
  expect(parseCue(packets[1]?.data ?? Buffer.of()).type).toBe('in');
  expect(injector.waits).toBe(false);
});

it('ends splices with auto return, each by its own id, and no others', () => {
  carry(splice(1, true));
  carry(splice(2, false));
  carry(splice(3, true));
  carry(splice(3, false, 'in'));
  reach(60);
  expect(packets.slice(4).map(({ data }) => parseSplice(data))).toEqual([expect.objectContaining({ id: 1, type: 'in' })]);
});

it('replaces a cue by the next cue, and forgets breaks of a source that is gone', () => {
  carry(cue('out', 5000));
  carry(cue('out', 9000));
  carry(cue('cont'));
  reach(19);
  expect(packets).toHaveLength(3);
  reach(21);
  expect(packets.slice(3).map(({ data }) => parseCue(data).type)).toEqual(['in']);
  carry({ ...cue('out', 1000), ofSource: true });
  injector.forget();
  reach(90);
  expect(packets).toHaveLength(5);
});

it('ends a break of the API after a change of the source', () => {
  carry(cue('out', 5000));
  injector.forget();
  reach(60);
  expect(packets.slice(1).map(({ data }) => parseCue(data).type)).toEqual(['in']);
});

it('sends both ends of an urgent break before delayed events, and neither end of other breaks', () => {
  const urgently = { target: 'all', at: null, ...splice(1, true) } as const;
  expect(injector.admits(urgently)).toBe(true);
  injector.carry(urgently, true);
  carry(splice(2, true));
  reach(60);
  const told = packets.map(({ data }, index) => `${parseSplice(data)?.id} ${parseSplice(data)?.type} ${urgent[index]}`);
  expect(told).toEqual(['1 out true', '2 out false', '1 in true', '2 in false']);
});

it('leaves the end of a settled break to its sender', () => {
  carry({ ...cue('out', 5000), settled: true });
  expect(injector.waits).toBe(false);
});

it('remembers at most 16 breaks', () => {
  for (let id = 0; id < 40; id += 1) carry(splice(id, true));
  reach(60);
  expect(packets).toHaveLength(40 + 16);
});

it('refuses and counts floods, oversized events, and events before media', () => {
  const event: SourceEvent = { format: 'id3v2', target: 'all', data: Buffer.from('ID3'), at: null };
  expect(Array.from({ length: 150 }, () => injector.admits(event)).filter(Boolean)).toHaveLength(100);
  clock.advance(1000);
  expect(Array.from({ length: 150 }, () => injector.admits(event)).filter(Boolean)).toHaveLength(50);
  clock.advance(10_000);
  expect(injector.admits({ ...event, data: new Uint8Array(MAX_EVENT_BYTES + 1) })).toBe(false);
  hasMedia = false;
  expect(injector.admits(event)).toBe(false);
  expect(injector.counters.refused).toBe(152);
});

it('counts malformed markers', () => {
  carry({ format: 'cue', data: Buffer.from('nine byte') });
  carry({ format: 'scte35', data: Buffer.from('x') });
  expect([injector.counters, packets]).toEqual([{ carried: 0, refused: 0, malformed: 2 }, []]);
});

it('waits for no keyframe that is more than ten seconds away', () => {
  keyframes = { keyframeAt: 9.5, keyframeSeconds: 60 };
  carry(cue('in'));
  expect(packets[0]?.pts).toBe(20_000);
  keyframes = { keyframeAt: 9.5, keyframeSeconds: 10 };
  carry(cue('in'));
  expect(packets[1]?.pts).toBe(29_500);
});

it('uses a keyframe slightly off the requested time', () => {
  // A keyframe is due at 9.5 + 2 = 11.5 s; the media ends there, give or take a little.
  keyframes = { keyframeAt: 9.5, keyframeSeconds: 2 };
  for (const seconds of [11.49, 11.515, 11.53]) {
    end = seconds;
    carry(cue('in'));
  }
  expect(packets.map(({ pts }) => pts)).toEqual([13_500, 13_500, 15_500]);
});

it('sends a continuing break at once', () => {
  carry(cue('cont'));
  expect(packets[0]?.pts).toBe(10_000);
});

it('ends a cue and a splice that overlap', () => {
  carry(splice(0, true));
  carry(cue('out', 5000));
  reach(60);
  expect(packets.slice(2).map(({ event }) => event?.format)).toEqual(['scte35', 'cue']);
});
