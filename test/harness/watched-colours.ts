/** What ffmpeg sees of a stream whose pictures have one colour each. */
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from './child.ts';

/** A picture; `at` in seconds of the presentation. */
export interface WatchedPicture {
  readonly at: number;
  readonly colour: string;
}

/** A run of pictures of one colour. */
export interface Shot {
  readonly colour: string;
  /** Of the first picture and of the last, seconds. */
  readonly from: number;
  readonly to: number;
}

/** Luma and chroma of colours that cannot be mistaken for each other. */
const COLOURS: Readonly<Record<string, readonly [y: number, u: number, v: number]>> = {
  red: [76, 85, 255],
  green: [75, 86, 74],
  blue: [29, 255, 107],
  white: [235, 128, 128],
};
const DEADLINE_MS = 30_000;

/** Follows `url` for so many seconds of media; the rest of what ffmpeg says is `errors`. */
export async function watchColours(url: string, seconds: number): Promise<{ pictures: WatchedPicture[]; errors: string }> {
  const output = ['-map', '0:v:0', '-t', `${seconds}`, '-fps_mode', 'passthrough', '-vf', 'scale=16:16,format=yuvj444p,showinfo'];
  const child = new Child(requireProgram('ffmpeg'), [
    '-v',
    'info',
    '-nostdin',
    '-nostats',
    '-copyts',
    '-i',
    url,
    ...output,
    '-f',
    'null',
    '-',
  ]);
  try {
    const { code } = await child.ended(DEADLINE_MS + seconds * 1000);
    if (code !== 0) throw new Error(`ffmpeg ${url}: ${child.stderr.slice(-1000)}`);
    const lines = child.stderr.split('\n');
    const shown = lines.flatMap((line) => {
      const [, at, mean] = /showinfo.*pts_time:\s*([\d.]+).*mean:\[([\d ]+)\]/.exec(line) ?? [];
      return at === undefined || mean === undefined ? [] : [{ at: Number(at), colour: nearest(mean.trim().split(/\s+/).map(Number)) }];
    });
    return { pictures: shown, errors: lines.filter((line) => /error|invalid|non-monoton|corrupt/i.test(line)).join('\n') };
  } finally {
    await child.kill();
  }
}

/** The runs of one colour, in order. */
export function shotsOf(pictures: readonly WatchedPicture[]): Shot[] {
  const shots: { colour: string; from: number; to: number }[] = [];
  for (const { at, colour } of pictures) {
    const last = shots.at(-1);
    if (last?.colour === colour) last.to = at;
    else shots.push({ colour, from: at, to: at });
  }
  return shots;
}

/** The longest time between two pictures, seconds. */
export function longestGap(pictures: readonly WatchedPicture[]): number {
  return Math.max(...pictures.slice(1).map(({ at }, index) => at - (pictures[index]?.at ?? at)));
}

function nearest(mean: readonly number[]): string {
  const distance = (colour: readonly number[]): number => colour.reduce((sum, value, index) => sum + (value - (mean[index] ?? 0)) ** 2, 0);
  return Object.entries(COLOURS).sort(([, a], [, b]) => distance(a) - distance(b))[0]?.[0] ?? '';
}
