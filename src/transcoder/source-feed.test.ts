import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../test/fakes/manual-clock.ts';
import { audioTrack, videoTrack } from '../../test/fakes/synthetic-media.ts';
import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import { BoundedQueue } from '../util/bounded-queue.ts';
import { FrameWriter } from './frame-writer.ts';
import { VIDEO_WINDOW } from './messages.ts';
import { FrameFlag, FrameReader, FrameType } from './process-frames.ts';
import { MAX_DECODER_BYTES, SourceFeed } from './source-feed.ts';

const VIDEO = videoTrack();
const SOUND = audioTrack();

/** A feed and its output: packets by their pts, a discontinuity as `!` before the packet, a new source as `source`. */
function lab(track: Track, threshold = 10, onlyKeyframes = false) {
  const queue = new BoundedQueue<Packet>({ id: 1, urn: '', type: 'Packet', threshold, clock: new ManualClock() });
  const feed = new SourceFeed({ id: track.id, video: track.type === 'video', queue, onlyKeyframes });
  const socket = new PassThrough();
  const writer = new FrameWriter(socket);
  const sent: string[] = [];
  const reader = new FrameReader(({ type, flags, pts }) => {
    if (type === FrameType.SOURCE) sent.push('source');
    if (type === FrameType.PACKET) sent.push(`${(flags & FrameFlag.DISCONTINUITY) !== 0 ? '!' : ''}${pts}`);
  });
  socket.on('data', (chunk: Buffer) => reader.push(chunk));
  const pump = async (): Promise<string[]> => {
    feed.pump(1, writer);
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    return sent.splice(0);
  };
  return { feed, queue, pump };
}

const packet = (track: Track, pts: number, keyframe: boolean): Packet => ({
  track,
  pts,
  dts: pts,
  duration: 1,
  keyframe,
  data: Uint8Array.of(1),
});

describe('SourceFeed', () => {
  it('bounds its bytes, and resumes at a keyframe', async () => {
    const { feed, queue, pump } = lab(VIDEO, 1000);
    const data = new Uint8Array(MAX_DECODER_BYTES / 16);
    const large = (pts: number, keyframe = false): Packet => ({ ...packet(VIDEO, pts, keyframe), data });
    feed.push(large(0, true));
    for (let pts = 1; pts < 16; pts += 1) feed.push(large(pts));
    expect(queue.size).toBe(16);
    feed.push(large(16));
    feed.push(large(17));
    expect([queue.size, queue.dropped]).toEqual([0, 18]);
    for (let pts = 20; pts < 36; pts += 1) feed.push(large(pts, pts === 20));
    expect(queue.size).toBe(16);
    expect(await pump()).toEqual(['source', '!20', ...Array.from({ length: VIDEO_WINDOW - 1 }, (_, at) => String(21 + at))]);
    for (let pts = 36; pts < 36 + VIDEO_WINDOW; pts += 1) feed.push(large(pts));
    expect(queue.size).toBe(16);
  });

  it('sends the source first, then at most the window until packets are acknowledged', async () => {
    const { feed, pump } = lab(VIDEO);
    for (let pts = 0; pts < 10; pts += 1) feed.push(packet(VIDEO, pts, pts === 0));
    expect(await pump()).toEqual(['source', ...Array.from({ length: VIDEO_WINDOW }, (_, pts) => String(pts))]);
    expect(await pump()).toEqual([]);
    feed.taken(1);
    expect(await pump()).toEqual(['8']);
  });

  it('sends the source again when the track changes, in order among the packets', async () => {
    const { feed, pump } = lab(VIDEO);
    const other = { ...VIDEO, width: 640 };
    feed.push(packet(VIDEO, 0, true));
    feed.push(packet(other, 1, true));
    expect(await pump()).toEqual(['source', '0', 'source', '1']);
  });

  it('waits for a keyframe when it starts in the middle of a stream', async () => {
    const { feed, pump } = lab(VIDEO);
    feed.push(packet(VIDEO, 0, false));
    feed.push(packet(VIDEO, 1, true));
    expect(await pump()).toEqual(['source', '1']);
  });

  it('drops up to the next keyframe when the queue is full, and counts', async () => {
    const { feed, queue, pump } = lab(VIDEO, 4);
    for (let pts = 0; pts < 8; pts += 1) feed.push(packet(VIDEO, pts, pts === 0 || pts === 6));
    expect(await pump()).toEqual(['source', '!6', '7']);
    expect(queue.status().drop).toBe(6);
  });

  it('resumes with the next audio packet after a drop', async () => {
    const { feed, queue, pump } = lab(SOUND, 4);
    for (let pts = 0; pts < 6; pts += 1) feed.push(packet(SOUND, pts, true));
    expect(await pump()).toEqual(['source', '!5']);
    expect(queue.status().drop).toBe(5);
  });

  it('resumes at the first waiting keyframe after the death of a process', async () => {
    const { feed, queue, pump } = lab(VIDEO, 20);
    for (let pts = 0; pts < 14; pts += 1) feed.push(packet(VIDEO, pts, pts % 10 === 0));
    await pump();
    feed.restart();
    expect(await pump()).toEqual(['source', '!10', '11', '12', '13']);
    expect(queue.status().drop).toBe(2);
  });

  it('waits for a new keyframe after the death of a process when none is queued', async () => {
    const { feed, pump } = lab(VIDEO);
    feed.push(packet(VIDEO, 0, true));
    await pump();
    feed.restart();
    feed.push(packet(VIDEO, 1, false));
    expect(await pump()).toEqual([]);
    feed.push(packet(VIDEO, 2, true));
    expect(await pump()).toEqual(['source', '!2']);
  });

  it('measures for how many rounds the process has acknowledged nothing', async () => {
    const { feed, pump } = lab(VIDEO);
    expect(feed.look()).toBe(0);
    feed.push(packet(VIDEO, 0, true));
    await pump();
    expect([feed.look(), feed.look(), feed.look()]).toEqual([1, 2, 3]);
    feed.taken(1);
    expect(feed.look()).toBe(0);
  });

  it('sends only keyframes when nothing else is needed', async () => {
    const { feed, queue, pump } = lab(VIDEO, 10, true);
    for (let pts = 0; pts < 6; pts += 1) feed.push(packet(VIDEO, pts, pts % 3 === 0));
    expect(await pump()).toEqual(['source', '0', '3']);
    expect(queue.status().drop).toBe(0);
  });

  it('never throws at odd numbers', async () => {
    const { feed, pump } = lab(VIDEO);
    feed.push({ ...packet(VIDEO, 0.5, true), duration: -3.5 });
    expect(await pump()).toEqual(['source', '1']);
  });
});
