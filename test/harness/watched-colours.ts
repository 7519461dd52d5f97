/** Watches a stream of single-coloured frames with ffmpeg. */
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from './child.ts';
import { until } from './poll.ts';
import { UNEVEN } from './probe.ts';

/** A frame; `at`: presentation time, seconds. */
export interface ColouredFrame {
  readonly at: number;
  readonly colour: string;
}

/** A run of frames of one colour. */
export interface Shot {
  readonly colour: string;
  /** Times of the first and the last frame, seconds. */
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

/** ffmpeg that follows a stream. Its creator ends it with `stop` or `kill`. */
export class ColourWatch {
  readonly #child: Child;
  readonly #url: string;

  /** Follows `url` to its end, or until it is stopped. */
  constructor(url: string) {
    this.#url = url;
    const output = ['-map', '0:v:0', ...UNEVEN, '-vf', 'scale=16:16,format=yuvj444p,showinfo', '-f', 'null', '-'];
    this.#child = new Child(requireProgram('ffmpeg'), ['-v', 'info', '-nostdin', '-nostats', '-copyts', '-i', url, ...output]);
  }

  /** The frames seen so far. */
  get frames(): ColouredFrame[] {
    return this.#lines.flatMap((line) => {
      const [, at, mean] = /showinfo.*pts_time:\s*([\d.]+).*mean:\[([\d ]+)\]/.exec(line) ?? [];
      return at === undefined || mean === undefined ? [] : [{ at: Number(at), colour: nearest(mean.trim().split(/\s+/).map(Number)) }];
    });
  }

  /** Errors in the output of ffmpeg. */
  get errors(): string {
    return this.#lines.filter((line) => /error|invalid|non-monoton|corrupt/i.test(line)).join('\n');
  }

  /** Waits until exactly these shots have been seen, with `seconds` of the last shot. */
  async sees(colours: readonly string[], seconds = 1): Promise<void> {
    await until(
      `${seconds} s of ${colours.at(-1)} in ${this.#url}`,
      () => {
        const shots = shotsOf(this.frames);
        const last = shots.at(-1);
        const seen = shots.map(({ colour }) => colour).join();
        if (this.#child.exit !== null) throw new Error(`ffmpeg ${this.#url}: ${this.#child.stderr.slice(-1000)}`);
        return last !== undefined && seen === colours.join() && last.to - last.from >= seconds ? true : Promise.reject(new Error(seen));
      },
      { deadlineMs: DEADLINE_MS + seconds * 1000, everyMs: 200 },
    );
  }

  /** Waits for the end, or for `seconds` from the first frame on. Throws if ffmpeg fails. */
  async has(seconds: number): Promise<void> {
    const [ended] = await until(
      `${seconds} s of ${this.#url}`,
      () => {
        const { frames } = this;
        const span = (frames.at(-1)?.at ?? 0) - (frames[0]?.at ?? 0);
        return this.#child.exit !== null || span >= seconds ? ([this.#child.exit] as const) : null;
      },
      { deadlineMs: DEADLINE_MS + seconds * 1000, everyMs: 200 },
    );
    if (ended !== null && ended.code !== 0) throw new Error(`ffmpeg ${this.#url}: ${this.#child.stderr.slice(-1000)}`);
  }

  /** Idempotent. */
  async stop(): Promise<void> {
    await this.#child.stop('SIGINT');
  }

  /** Idempotent. */
  async kill(): Promise<void> {
    await this.#child.kill();
  }

  get #lines(): string[] {
    return this.#child.stderr.split('\n');
  }
}

/** Watches `url` for `seconds` of media from the first frame on, or to its end; `errors`: the remaining output of ffmpeg. */
export async function watchColours(url: string, seconds: number): Promise<{ frames: ColouredFrame[]; errors: string }> {
  const watch = new ColourWatch(url);
  try {
    await watch.has(seconds);
    const { frames, errors } = watch;
    return { frames, errors };
  } finally {
    await watch.kill();
  }
}

/** Runs of one colour, in order. */
export function shotsOf(frames: readonly ColouredFrame[]): Shot[] {
  const shots: { colour: string; from: number; to: number }[] = [];
  for (const { at, colour } of frames) {
    const last = shots.at(-1);
    if (last?.colour === colour) last.to = at;
    else shots.push({ colour, from: at, to: at });
  }
  return shots;
}

/** Longest time between two frames, seconds. */
export function longestGap(frames: readonly ColouredFrame[]): number {
  return Math.max(...frames.slice(1).map(({ at }, index) => at - (frames[index]?.at ?? at)));
}

function nearest(mean: readonly number[]): string {
  const distance = (colour: readonly number[]): number => colour.reduce((sum, value, index) => sum + (value - (mean[index] ?? 0)) ** 2, 0);
  return Object.entries(COLOURS).sort(([, a], [, b]) => distance(a) - distance(b))[0]?.[0] ?? '';
}
