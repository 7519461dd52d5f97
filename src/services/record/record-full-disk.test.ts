import { statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { CLOSED, encodeSample, RecordingBench } from '../../../test/support/recording-bench.ts';
import type { PublisherStream } from '../../core/publishing.ts';
import type { Packet } from '../../media/packet.ts';

const sample = encodeSample();
const bench = new RecordingBench();
const SAMPLE_MS = 6000;
/** The result of a check of the disk. */
const disk = vi.hoisted(() => ({ hasRoom: true }));
vi.mock('../../util/disk-space.ts', () => ({ hasRoom: async () => disk.hasRoom }));

/** Lets every write fail from now on as on a full disk; gives it back. */
async function fillDisk(): Promise<() => void> {
  const probe = await open(join(bench.folder, 'probe'), 'w');
  await probe.close();
  const handles = Object.getPrototypeOf(probe) as FileHandle;
  const refusal = () => Promise.reject(Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', errno: -28 }));
  const spies = [vi.spyOn(handles, 'writev').mockImplementation(refusal), vi.spyOn(handles, 'writeFile').mockImplementation(refusal)];
  disk.hasRoom = false;
  const empty = (): void => {
    disk.hasRoom = true;
    for (const spy of spies) spy.mockRestore();
  };
  onTestFinished(empty);
  return empty;
}

/** The sample as it comes in round `round`. */
function packetsOf(round: number): Packet[] {
  return sample.packets.map((packet) => {
    const shift = (round * SAMPLE_MS * packet.track.timebase.den) / 1000;
    return { ...packet, pts: packet.pts + shift, dts: packet.dts + shift };
  });
}

/** Sends the sample round after round, slowly enough for the disk, until `condition` holds; the next round. */
async function sendUntil(attached: PublisherStream, first: number, condition: () => boolean): Promise<number> {
  for (let round = first; ; round += 1) {
    for (const packet of packetsOf(round)) {
      attached.onPacket(packet);
      if (packet.track.type === 'video') bench.clock.advance(40);
      if (packet.keyframe && packet.track.type === 'video') await new Promise((resolve) => setTimeout(resolve, 5));
    }
    attached.onDrained?.();
    if (condition()) return round + 1;
  }
}

it('a recording restarts in a new file when the disk has room again, and keeps the first file', { timeout: 30_000 }, async () => {
  await bench.record('r');
  const { attached, stream } = bench.stream(sample.tracks);
  bench.send(attached, sample.packets);
  await expect.poll(() => bench.files().some((name) => statSync(join(bench.root, name)).size > 10_000)).toBe(true);
  const empty = await fillDisk();
  const state = (): string | undefined => bench.tasks()[0]?.state;
  let round = await sendUntil(attached, 1, () => state() === 'error');
  expect(bench.tasks()[0]?.reason).toBe('ENOSPC: no space left on device, write');
  expect(bench.conditions.reasons).toEqual(['a recording cannot be written: no space is left on the disk']);
  // It still wants the stream.
  expect(stream.viewers).toBe(1);
  await expect.poll(() => bench.named()).toEqual(['r_0.mp4']);
  // There is none yet: nothing is begun, and nothing reported.
  const errors = (): number => bench.logger.lines.filter(({ message }) => message.startsWith('recording failed')).length;
  round = await sendUntil(attached, round, () => true);
  expect([state(), bench.files(), errors()]).toEqual(['error', ['r_0.mp4'], 1]);

  empty();
  round = await sendUntil(attached, round, () => state() === 'recording');
  expect(bench.conditions.reasons).toEqual([]);
  await sendUntil(attached, round, () => true);
  attached.close(CLOSED);
  await bench.publisher.stop();
  expect(stream.viewers).toBe(0);
  expect(bench.files()).toEqual(['r_0.mp4', 'r_1.mp4']);
  expect(bench.tasks()[0]).toMatchObject({ state: 'ready', outputFilePath: '/r_1.mp4' });
  expect(bench.probe('r_0.mp4').video.length).toBeGreaterThan(90);
  expect(bench.probe('r_1.mp4').video.length).toBeGreaterThanOrEqual(150);
});

it('a task that waits for room can be stopped, and its stream can end', async () => {
  await bench.record('stopped');
  await bench.record('left');
  const { attached, stream } = bench.stream(sample.tracks);
  await fillDisk();
  await sendUntil(attached, 0, () => bench.tasks().every(({ state }) => state === 'error'));
  expect([stream.viewers, bench.conditions.reasons.length]).toEqual([2, 1]);
  expect(await bench.stopRecord('stopped')).toMatchObject({ state: 'stopping' });
  expect([stream.viewers, bench.conditions.reasons.length]).toEqual([1, 1]);
  attached.close(CLOSED);
  expect([stream.viewers, bench.conditions.reasons, bench.tasks()[0]?.state]).toEqual([0, [], 'error']);
  bench.stream(sample.tracks);
  expect(bench.tasks()[0]?.state).toBe('recording');
});
