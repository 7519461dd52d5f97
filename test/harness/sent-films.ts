/**
 * The media that most test encoders send, encoded once for all of them: encoding takes a tenth of a core per encoder, which is more than
 * serving. ffmpeg sends a film in a loop without a gap.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { type EncodingOptions, encodingArguments, PUBLISH_DEFAULTS } from './encoding.ts';

type FilmOptions = Omit<EncodingOptions, 'withClock'>;

/** A whole number of video frames, and of AAC frames at 48 kHz, so that none is cut at the loop. */
const SECONDS = 16;
const AAC_FRAMES = (SECONDS * 48_000) / 1024;

/** Films that several test files send, or one test for long. Each is a whole number of GOPs. */
const FILMS: readonly FilmOptions[] = [
  {},
  { width: 320, height: 180, videoKbps: 300 },
  { width: 320, height: 180, videoKbps: 200 },
  { width: 640, height: 360, fps: 15, gop: 15, videoKbps: 300 },
  { gop: 60 },
  { fps: 25, gop: 50, videoKbps: 1200 },
  { width: 320, height: 180 },
  { width: 320, height: 180, gop: 60 },
  { width: 640, height: 360, fps: 10, gop: 10, videoKbps: 300 },
  { width: 640, height: 360, fps: 10, gop: 10, videoKbps: 200, withoutAudio: true },
];

const FOLDER = fileURLToPath(new URL('../../node_modules/.cache/millrace-test-films', import.meta.url));

/** Makes the missing films. */
export async function makeFilms(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  await Promise.all(FILMS.filter((options) => !existsSync(pathOf(options))).map(make));
}

/** The file that ffmpeg sends for these options; null if they have to be encoded live. `makeFilms` makes the file. */
export function fileOf(options: FilmOptions): string | null {
  const name = nameOf(options);
  return FILMS.some((film) => nameOf(film) === name) ? pathOf(options) : null;
}

function pathOf(options: FilmOptions): string {
  return path.join(FOLDER, nameOf(options));
}

function nameOf(options: FilmOptions): string {
  const { width, height, fps, gop, videoKbps, audioKbps, tone, withoutAudio = false } = { ...PUBLISH_DEFAULTS, ...options };
  const audio = withoutAudio ? 'silent' : `${audioKbps}k-${tone}hz`;
  return `${width}x${height}-${fps}fps-${gop}gop-${videoKbps}k-${audio}-${SECONDS}s.flv`;
}

async function make(options: FilmOptions): Promise<void> {
  const { fps } = { ...PUBLISH_DEFAULTS, ...options };
  const file = pathOf(options);
  // Another process may be making the same film.
  const unfinished = `${file}.${process.pid}`;
  const lengths = ['-frames:v', `${SECONDS * fps}`, '-frames:a', `${AAC_FRAMES}`];
  const args = ['-v', 'error', '-nostdin', '-y', ...encodingArguments(options, []), ...lengths, '-f', 'flv', unfinished];
  const [code] = await once(spawn(requireProgram('ffmpeg'), args, { stdio: 'inherit' }), 'exit');
  if (code !== 0) throw new Error(`ffmpeg did not make ${file}`);
  renameSync(unfinished, file);
}
