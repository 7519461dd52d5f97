import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/fakes/manual-clock.ts';
import { audioTrack, videoTrack } from '../../../test/fakes/synthetic-media.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { BoundedQueue } from '../../util/bounded-queue.ts';
import { MAX_SEND_QUEUE_BYTES, SendQueue } from './send-queue.ts';

const VIDEO = videoTrack({ id: 0 });
const OTHER = videoTrack({ id: 2 });
const AUDIO = audioTrack({ id: 1 });

function packet(track: Track, dts: number, keyframe: boolean, size = 10): Packet {
  return { track, pts: dts, dts, duration: 1, keyframe, data: new Uint8Array(size) };
}

function queueOf(tracks: readonly Track[], threshold = 4) {
  const inner = new BoundedQueue<Packet>({ id: 1, urn: '', type: 'Packet', threshold, clock: new ManualClock() });
  return { inner, queue: new SendQueue(inner, tracks) };
}

function all(queue: SendQueue): string[] {
  const out: string[] = [];
  for (let next = queue.shift(); next !== undefined; next = queue.shift())
    out.push(`${next.track.id}@${next.dts}${next.keyframe ? 'k' : ''}`);
  return out;
}

test('begins with a keyframe, and audio not before it', () => {
  const { queue } = queueOf([VIDEO, AUDIO]);
  queue.push(packet(VIDEO, 0, false));
  queue.push(packet(AUDIO, 0, true));
  queue.push(packet(VIDEO, 1, true));
  queue.push(packet(AUDIO, 1, true));
  queue.push(packet(VIDEO, 2, false));
  expect(queue.dropped).toBe(0);
  expect(all(queue)).toEqual(['0@1k', '1@1k', '0@2']);
});

test('audio alone begins at once', () => {
  const { queue } = queueOf([AUDIO]);
  queue.push(packet(AUDIO, 0, true));
  expect(all(queue)).toEqual(['1@0k']);
});

test('a full queue resumes at the next keyframe of each video track, and counts the dropped packets', () => {
  const { queue, inner } = queueOf([VIDEO, AUDIO, OTHER]);
  for (const next of [packet(VIDEO, 0, true), packet(OTHER, 0, true), packet(VIDEO, 1, false), packet(VIDEO, 2, false)]) queue.push(next);
  queue.push(packet(VIDEO, 3, false));
  expect(queue.dropped).toBe(5);
  queue.push(packet(VIDEO, 4, false));
  queue.push(packet(AUDIO, 4, true));
  queue.push(packet(OTHER, 5, true));
  queue.push(packet(AUDIO, 5, true));
  queue.push(packet(VIDEO, 6, false));
  queue.push(packet(VIDEO, 7, true));
  expect(all(queue)).toEqual(['2@5k', '1@5k', '0@7k']);
  expect(queue.dropped).toBe(8);
  expect(inner.status().drop).toBe(8);
});

test('bytes are bounded too', () => {
  const { queue } = queueOf([AUDIO], 100);
  for (let index = 0; index < 5; index += 1) queue.push(packet(AUDIO, index, true, MAX_SEND_QUEUE_BYTES / 4));
  expect(queue.dropped).toBe(5);
  queue.push(packet(AUDIO, 9, true, MAX_SEND_QUEUE_BYTES));
  expect(all(queue)).toEqual(['1@9k']);
});

test('output stays decodable: after a loss each track restarts at a keyframe', () => {
  const event = fc.oneof(fc.record({ video: fc.boolean(), keyframe: fc.boolean() }), fc.constant(null));
  fc.assert(
    fc.property(fc.array(event, { maxLength: 80 }), (events) => {
      const { queue } = queueOf([VIDEO, AUDIO], 5);
      let dts = 0;
      let last = -1;
      const taken: Packet[] = [];
      const pushed: Packet[] = [];
      for (const next of events) {
        if (next === null) {
          const out = queue.shift();
          if (out !== undefined) taken.push(out);
          continue;
        }
        const made = packet(next.video ? VIDEO : AUDIO, dts, next.video ? next.keyframe : true);
        dts += 1;
        if (next.video) pushed.push(made);
        queue.push(made);
      }
      for (const { track, dts: at, keyframe } of taken) {
        if (track !== VIDEO) continue;
        const index = pushed.findIndex((other) => other.dts === at);
        expect(keyframe || index === last + 1).toBe(true);
        last = index;
      }
    }),
  );
});
