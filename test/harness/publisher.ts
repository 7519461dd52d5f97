/** A real encoder: ffmpeg sends a moving test pattern and a tone over RTMP. */
import { existsSync } from 'node:fs';
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child, type ChildExit } from './child.ts';
import { type EncodingOptions, encodingArguments, PUBLISH_DEFAULTS } from './encoding.ts';
import { until } from './poll.ts';
import { fileOf } from './sent-films.ts';

export interface PublishOptions extends EncodingOptions {
  /** `rtmp://host:port/app/stream`. */
  readonly url: string;
}

export { PUBLISH_DEFAULTS };

/** Progress that ffmpeg reports while it runs. */
export interface SendingProgress {
  readonly frames: number;
  /** Bytes written, FLV tag headers included. */
  readonly bytes: number;
  /** Media sent, seconds. */
  readonly seconds: number;
}

export class FfmpegPublisher {
  readonly child: Child;

  constructor(options: PublishOptions) {
    this.child = new Child(requireProgram('ffmpeg'), ffmpegArguments(options), { name: `ffmpeg ${options.url}` });
  }

  /** The newest progress report; null before the first. */
  get progress(): SendingProgress | null {
    const text = this.child.stdout;
    const frames = lastNumber(text, /^frame=\s*(\d+)$/gm);
    const bytes = lastNumber(text, /^total_size=(\d+)$/gm);
    const micros = lastNumber(text, /^out_time_us=(\d+)$/gm);
    if (frames === null || bytes === null || micros === null) return null;
    return { frames, bytes, seconds: micros / 1_000_000 };
  }

  /** Waits until `frames` more frames than now have been sent. */
  async sent(frames: number, deadlineMs = 15_000): Promise<SendingProgress> {
    const goal = (this.progress?.frames ?? 0) + frames;
    return await until(
      `${this.child.name} sends frame ${goal}`,
      () => {
        if (this.child.exit !== null) throw new Error(`ffmpeg ended: ${this.child.stderr.slice(-2000)}`);
        const now = this.progress;
        return now !== null && now.frames >= goal ? now : null;
      },
      { deadlineMs },
    );
  }

  /** Ends the encoder and its connection. Idempotent. */
  async stop(): Promise<ChildExit> {
    return await this.child.stop('SIGINT');
  }

  /** The encoder's machine loses power: no unpublish, no end of sequence. */
  async kill(): Promise<ChildExit> {
    return await this.child.kill();
  }
}

export function publish(options: PublishOptions): FfmpegPublisher {
  return new FfmpegPublisher(options);
}

function ffmpegArguments(options: PublishOptions): string[] {
  const progress = ['-hide_banner', '-loglevel', 'warning', '-nostdin', '-stats_period', '0.2', '-progress', 'pipe:1'];
  const output = ['-f', 'flv', '-flvflags', 'no_duration_filesize', options.url];
  const film = options.withClock === true ? null : fileOf(options);
  if (film !== null && existsSync(film)) return [...progress, '-re', '-stream_loop', '-1', '-i', film, '-c', 'copy', ...output];
  return [...progress, ...encodingArguments(options), ...output];
}

function lastNumber(text: string, pattern: RegExp): number | null {
  let last: number | null = null;
  for (const match of text.slice(-2000).matchAll(pattern)) last = Number(match[1]);
  return last;
}
