/** The burnt-in clock of a video at its media times. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { CLOCK_BITS, CLOCK_CELL, CLOCK_TICK_MS, CLOCK_WRAP_MS } from './burnt-clock.ts';
import { Child } from './child.ts';

const DEADLINE_MS = 40_000;
/** Minimum brightness of a white cell. */
const WHITE = 127;

/**
 * How far the burnt-in clock is ahead of media time, ms, as the median of the frames that ffmpeg reads from `url` in `seconds` of media; it
 * wraps at `CLOCK_WRAP_MS`. Equal for aligned renditions of one source.
 */
export async function clockLead(url: string, seconds: number): Promise<number> {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-clock-'));
  const file = path.join(folder, 'cells');
  const cells = `crop=${CLOCK_BITS * CLOCK_CELL}:${CLOCK_CELL}:0:0,scale=${CLOCK_BITS}:1:flags=area,format=gray`;
  const output = ['-map', '0:v:0', '-frames:v', `${Math.round(seconds * 25)}`, '-vf', `${cells},showinfo`, '-fps_mode', 'passthrough'];
  const child = new Child(requireProgram('ffmpeg'), ['-hide_banner', '-nostdin', '-copyts', '-i', url, ...output, '-f', 'rawvideo', file]);
  try {
    const { code } = await child.ended(DEADLINE_MS + seconds * 1000);
    if (code !== 0) throw new Error(`ffmpeg ${url}: ${child.stderr.slice(-1000)}`);
    const times = Array.from(child.stderr.matchAll(/^\[Parsed_showinfo.*\bpts_time:\s*([\d.]+)/gm), ([, time]) => Number(time) * 1000);
    const pixels = readFileSync(file);
    const leads = times.slice(0, pixels.length / CLOCK_BITS).map((time, frame) => {
      const row = pixels.subarray(frame * CLOCK_BITS, (frame + 1) * CLOCK_BITS);
      const ticks = row.reduce((sum, value, bit) => sum + (value > WHITE ? 2 ** bit : 0), 0);
      return ((ticks * CLOCK_TICK_MS - time) % CLOCK_WRAP_MS) + CLOCK_WRAP_MS;
    });
    if (leads.length === 0) throw new Error(`ffmpeg read no frames of ${url}: ${child.stderr.slice(-1000)}`);
    return (leads.sort((a, b) => a - b)[leads.length >> 1] ?? 0) % CLOCK_WRAP_MS;
  } finally {
    await child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Distance of two such values, ms, in the shorter direction. */
export function leadDistance(a: number, b: number): number {
  const distance = Math.abs(a - b) % CLOCK_WRAP_MS;
  return Math.min(distance, CLOCK_WRAP_MS - distance);
}
