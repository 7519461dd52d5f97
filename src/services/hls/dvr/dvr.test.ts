import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { constantFrames, videoPackets, videoTrack } from '../../../../test/fakes/synthetic-media.ts';
import { LlhlsSimulation, type WatchedTrack } from '../../../../test/validator/llhls-simulation.ts';
import type { Packet } from '../../../media/packet.ts';

const video = videoTrack();
const packets = videoPackets(video, constantFrames({ rate: 30, gop: 60, seconds: 200 }));
const PER_SEGMENT = 180;

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-dvr-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

function start(maxDuration: number, tempStoragePath = directory): LlhlsSimulation {
  return new LlhlsSimulation([video], { segmentCount: 3, dVR: { enable: true, tempStoragePath, maxDuration } });
}

/** Runs packets and lets the disk follow after every segment. */
async function run(simulation: LlhlsSimulation, media: readonly Packet[]): Promise<WatchedTrack> {
  for (let i = 0; i < media.length; i += PER_SEGMENT) {
    simulation.run(media.slice(i, i + PER_SEGMENT));
    await simulation.stream.settled;
  }
  const track = simulation.watched[0];
  if (track === undefined) throw new Error('nothing is served');
  return track;
}

describe('DVR', () => {
  it('keeps segments listed until the configured duration and serves them from files', async () => {
    const simulation = start(60);
    const track = await run(simulation, packets);
    expect(simulation.problems).toEqual([]);
    const complete = track.playlist?.segments.filter((segment) => segment.duration !== null) ?? [];
    expect(complete).toHaveLength(10);
    const old = simulation.delivery.get(complete[0]?.uri ?? '');
    expect(old.status).toBe(200);
    expect(old.path).toMatch(/#default#app\/stream\/[\w-]+\/0\/\d+\.m4s$/);
    const parts = [...track.parts].filter(([uri]) => uri.startsWith(`part_0_${complete[0]?.msn}_`)).map(([, bytes]) => bytes);
    expect(Buffer.compare(readFileSync(old.path ?? ''), Buffer.concat(parts))).toBe(0);
    const perSegment = PER_SEGMENT * 550;
    expect(simulation.delivery.feed.storedBytes).toBeLessThan(7 * perSegment);
  });

  it('removes files of segments that left the playlist, and all files at the end', async () => {
    const simulation = start(30);
    const track = await run(simulation, packets);
    const oldest = simulation.delivery.get(track.playlist?.segments[0]?.uri ?? '').path;
    const folder = join(oldest ?? '', '..');
    // One more than listed: requests under way may still need it.
    expect(readdirSync(folder).length).toBeLessThanOrEqual(3);
    simulation.stream.close({ code: 'peer-left', detail: '' });
    await simulation.stream.settled;
    expect(existsSync(folder)).toBe(false);
  });

  it('announces delta updates for its long playlists', async () => {
    const simulation = start(3600);
    const track = await run(simulation, packets);
    const delta = simulation.delivery.get(`${track.uri}&_HLS_skip=YES`).text;
    expect(delta).toMatch(/SKIPPED-SEGMENTS=2\d\n/);
    expect(delta.length).toBeLessThan(simulation.delivery.get(track.uri).text.length * 0.6);
  });

  it('continues with a short playlist when the disk fails', async () => {
    const file = join(directory, 'not-a-directory');
    writeFileSync(file, '');
    const simulation = start(3600, file);
    const track = await run(simulation, packets);
    expect(simulation.problems).toEqual([]);
    expect(track.playlist?.segments.filter((segment) => segment.duration !== null).length).toBeLessThan(8);
    expect(simulation.delivery.feed.storedBytes).toBeLessThan(8 * PER_SEGMENT * 550);
    expect(simulation.logger.lines.map(({ message }) => message)).toEqual([expect.stringMatching(/^DVR of .*not-a-directory/)]);
  });

  it('drops old segments when the disk cannot keep up', async () => {
    const simulation = start(3600);
    // All in one turn: no write can finish in between.
    simulation.run(packets);
    await simulation.stream.settled;
    expect(simulation.problems).toEqual([]);
    const track = simulation.watched[0];
    expect(track === undefined ? 0 : simulation.fetch(track).segments.length).toBeGreaterThan(3);
    expect(simulation.logger.lines.map(({ message }) => message)).toEqual([expect.stringMatching(/^DVR of .*: the disk cannot keep up$/)]);
  });
});
