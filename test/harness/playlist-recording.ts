/**
 * Records a media playlist, and decodes it separately for each map, because readers that keep the first map (such as ffmpeg's own) cannot
 * judge it.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { requireProgram } from '../../scripts/ensure-tools.ts';

const EVERY_MS = 250;
/** An answer or a segment later than this, ms, is reported. */
const SLOW_MS = 3000;
const SAMPLE_RATE = 48_000;
const LOUD = 3000;
/** Samples of silence between two beeps. */
const QUIET = SAMPLE_RATE * 0.3;
const BRIGHT = 128;
const MAX_OUTPUT = 256 * 1024 * 1024;

interface RecordedSegment {
  readonly number: number;
  readonly map: string;
  readonly discontinuity: boolean;
  readonly data: Buffer;
}

/** Segments of one map between two discontinuities. */
export interface RecordedRun {
  /** Number of its first segment. */
  readonly number: number;
  /** The init segment and all its media segments. */
  readonly data: Buffer;
}

/** Polls one media playlist until `stop`. */
export class PlaylistRecording {
  readonly #url: string;
  readonly #segments = new Map<number, RecordedSegment>();
  readonly #maps = new Map<string, Buffer>();
  readonly #done: Promise<void>;
  #stopped = false;
  /** Delays so long that segments may have been missed. */
  readonly delays: string[] = [];

  constructor(url: string) {
    this.#url = url;
    this.#done = this.#follow();
    // The rejection is reported by `stop`, which a failed test may never call.
    this.#done.catch(() => {});
  }

  /** Rejects when a segment could not be read. */
  async stop(): Promise<RecordedRun[]> {
    this.#stopped = true;
    await this.#done;
    const runs: { number: number; end: number; map: string; parts: Buffer[] }[] = [];
    for (const { number, map, discontinuity, data } of [...this.#segments.values()].sort((a, b) => a.number - b.number)) {
      const last = runs.at(-1);
      if (last !== undefined && last.map === map && last.end + 1 === number && !discontinuity) {
        last.parts.push(data);
        last.end = number;
      } else runs.push({ number, end: number, map, parts: [this.#maps.get(map) ?? Buffer.alloc(0), data] });
    }
    return runs.map(({ number, parts }) => ({ number, data: Buffer.concat(parts) }));
  }

  async #follow(): Promise<void> {
    let grownAt = performance.now();
    while (!this.#stopped) {
      const text = (await this.#fetch(this.#url)).toString();
      const last = Math.max(-1, ...this.#segments.keys());
      await this.#read(text);
      if (Math.max(-1, ...this.#segments.keys()) > last) grownAt = performance.now();
      else if (performance.now() - grownAt > SLOW_MS) {
        this.delays.push(`nothing was new behind segment ${last} for ${Math.round(performance.now() - grownAt)} ms`);
        grownAt = performance.now();
      }
      await delay(EVERY_MS);
    }
  }

  async #read(text: string): Promise<void> {
    let number = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1]);
    let map = '';
    let discontinuity = false;
    for (const line of text.split('\n')) {
      map = /#EXT-X-MAP:URI="([^"]+)"/.exec(line)?.[1] ?? map;
      discontinuity ||= line === '#EXT-X-DISCONTINUITY';
      if (line === '' || line.startsWith('#')) continue;
      if (!this.#maps.has(map)) this.#maps.set(map, await this.#fetch(map));
      if (!this.#segments.has(number)) this.#segments.set(number, { number, map, discontinuity, data: await this.#fetch(line) });
      number += 1;
      discontinuity = false;
    }
  }

  async #fetch(uri: string): Promise<Buffer> {
    const askedAt = performance.now();
    const response = await fetch(new URL(uri, this.#url));
    if (!response.ok) throw new Error(`${uri}: ${response.status}`);
    const body = Buffer.from(await response.arrayBuffer());
    const took = performance.now() - askedAt;
    if (took > SLOW_MS) this.delays.push(`${uri} took ${Math.round(took)} ms`);
    return body;
  }
}

/** Frames with their times, seconds, and the errors of ffmpeg. */
export interface DecodedFrames {
  readonly frames: readonly { readonly at: number; readonly light: number }[];
  readonly complaints: string;
}

/** Decodes the upper halves of the frames. */
export function decodeFrames({ data, number }: RecordedRun, folder: string): DecodedFrames {
  const file = path.join(folder, `frames-${number}.mp4`);
  writeFileSync(file, data);
  const filter = 'crop=iw:ih/2:0:0,scale=4:4,format=gray,showinfo';
  const output = ['-map', '0:v:0', '-fps_mode', 'passthrough', '-vf', filter, '-f', 'null', '-'];
  const { stderr } = run(['-v', 'info', '-nostats', '-copyts', '-i', file, ...output]);
  const lines = stderr.split('\n');
  const frames = lines.flatMap((line) => {
    const [, at, light] = /showinfo.*pts_time:\s*([\d.]+).*mean:\[(\d+)/.exec(line) ?? [];
    return at === undefined ? [] : [{ at: Number(at), light: Number(light) }];
  });
  return { frames, complaints: lines.filter((line) => /error|invalid|corrupt|conceal|missing/i.test(line)).join('\n') };
}

/** Times of the beginnings of beeps, seconds, and the errors of ffmpeg. */
export function decodeBeeps(
  { data, number }: RecordedRun,
  folder: string,
): { readonly beeps: readonly number[]; readonly complaints: string } {
  const file = path.join(folder, `audio-${number}.mp4`);
  writeFileSync(file, data);
  const times = run(
    ['-v', 'error', '-show_entries', 'packet=pts_time', '-of', 'csv=p=0', '-read_intervals', '%+#1', file],
    'ffprobe',
  ).stdout;
  const start = Number.parseFloat(times.toString());
  const { stdout, stderr } = run(['-v', 'warning', '-i', file, '-map', '0:a:0', '-ac', '1', '-ar', `${SAMPLE_RATE}`, '-f', 's16le', '-']);
  return { beeps: beginnings(stdout).map((sample) => start + sample / SAMPLE_RATE), complaints: stderr.trim() };
}

/** Times of the frames at which flashes begin, seconds. */
export function flashesOf(frames: DecodedFrames['frames']): number[] {
  const begins = frames.filter(({ light }, index) => light >= BRIGHT && index > 0 && (frames[index - 1]?.light ?? 0) < BRIGHT);
  return begins.map(({ at }) => at);
}

/** Delay of the nearest beep after each flash, ms. */
export function offsetsOf(flashes: readonly number[], beeps: readonly number[]): number[] {
  return flashes.map((flash) => {
    const distances = beeps.map((beep) => (beep - flash) * 1000);
    return distances.sort((a, b) => Math.abs(a) - Math.abs(b))[0] ?? Number.NaN;
  });
}

function beginnings(audio: Buffer): number[] {
  const found: number[] = [];
  let quiet = QUIET;
  for (let sample = 0; 2 * sample + 1 < audio.length; sample += 1) {
    const isQuiet = Math.abs(audio.readInt16LE(2 * sample)) < LOUD;
    if (!isQuiet && quiet > QUIET) found.push(sample);
    quiet = isQuiet ? quiet + 1 : 0;
  }
  return found;
}

function run(args: readonly string[], program: 'ffmpeg' | 'ffprobe' = 'ffmpeg'): { stdout: Buffer; stderr: string } {
  const { stdout, stderr, error } = spawnSync(requireProgram(program), ['-hide_banner', ...args], { maxBuffer: MAX_OUTPUT });
  if (error !== undefined) throw error;
  return { stdout, stderr: stderr.toString() };
}
