/** A real encoder: ffmpeg sends a moving test frame and a tone over RTMP. */
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { CLOCK_BITS, CLOCK_CELL, clockFilter } from './burnt-clock.ts';
import { Child, type ChildExit } from './child.ts';
import { until } from './poll.ts';

export interface PublishOptions {
  /** `rtmp://host:port/app/stream`. */
  readonly url: string;
  readonly width?: number;
  readonly height?: number;
  readonly fps?: number;
  /** Frames between keyframes. */
  readonly gop?: number;
  /** Kilobits per second of the video; kept constant. */
  readonly videoKbps?: number;
  readonly audioKbps?: number;
  /** Hz of the tone, to tell publishers apart. */
  readonly tone?: number;
  readonly withoutAudio?: boolean;
}

export const PUBLISH_DEFAULTS = { width: 640, height: 360, fps: 30, gop: 30, videoKbps: 800, audioKbps: 96, tone: 440 } as const;

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
  const { width, height, fps, gop, videoKbps, audioKbps, tone } = { ...PUBLISH_DEFAULTS, ...options };
  if (width < CLOCK_BITS * CLOCK_CELL) throw new Error(`frame too narrow for the burnt-in clock: ${width}`);
  const source = ['-re', '-f', 'lavfi', '-i', `testsrc2=size=${width}x${height}:rate=${fps}`];
  const sound = ['-re', '-f', 'lavfi', '-i', `sine=frequency=${tone}:sample_rate=48000`];
  const video = ['-vf', clockFilter(), '-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-profile:v', 'baseline'];
  const rate = ['-pix_fmt', 'yuv420p', '-g', `${gop}`, '-keyint_min', `${gop}`, '-sc_threshold', '0'];
  const budget = ['-b:v', `${videoKbps}k`, '-minrate', `${videoKbps}k`, '-maxrate', `${videoKbps}k`, '-bufsize', `${videoKbps}k`];
  const constant = ['-x264-params', 'nal-hrd=cbr:force-cfr=1', '-threads', '1'];
  const audio = ['-c:a', 'aac', '-b:a', `${audioKbps}k`, '-ac', '2'];
  return [
    ...['-hide_banner', '-loglevel', 'warning', '-nostdin', '-stats_period', '0.2', '-progress', 'pipe:1'],
    ...source,
    ...(options.withoutAudio === true ? [] : sound),
    ...video,
    ...rate,
    ...budget,
    ...constant,
    ...(options.withoutAudio === true ? [] : audio),
    ...['-f', 'flv', '-flvflags', 'no_duration_filesize', options.url],
  ];
}

function lastNumber(text: string, pattern: RegExp): number | null {
  let last: number | null = null;
  for (const match of text.slice(-2000).matchAll(pattern)) last = Number(match[1]);
  return last;
}
