/** The media that test encoders send, made by ffmpeg: a moving test pattern and a tone. */
import { CLOCK_BITS, CLOCK_CELL, clockFilter } from './burnt-clock.ts';

/** The source of the encoder; default: `PUBLISH_DEFAULTS`. */
export interface EncodingOptions {
  readonly width?: number;
  readonly height?: number;
  readonly fps?: number;
  /** Frames between keyframes. */
  readonly gop?: number;
  /** Kilobits per second of the video, constant. */
  readonly videoKbps?: number;
  readonly audioKbps?: number;
  /** Frequency of the tone, Hz, to distinguish publishers. */
  readonly tone?: number;
  readonly withoutAudio?: boolean;
  /** Burns the wall clock into the frames, which are then encoded while they are sent. Default: a film of `sent-films.ts`, if one fits. */
  readonly withClock?: boolean;
}

export const PUBLISH_DEFAULTS = { width: 640, height: 360, fps: 30, gop: 30, videoKbps: 800, audioKbps: 96, tone: 440 } as const;

/** Arguments for ffmpeg that make the media, in real time unless stated otherwise. */
export function encodingArguments(options: EncodingOptions, pace: readonly string[] = ['-re']): string[] {
  const { width, height, fps, gop, videoKbps, audioKbps, tone } = { ...PUBLISH_DEFAULTS, ...options };
  const source = [...pace, '-f', 'lavfi', '-i', `testsrc2=size=${width}x${height}:rate=${fps}`];
  const sound = [...pace, '-f', 'lavfi', '-i', `sine=frequency=${tone}:sample_rate=48000`];
  if (options.withClock === true && width < CLOCK_BITS * CLOCK_CELL) throw new Error(`frame too narrow for the burnt-in clock: ${width}`);
  const clock = options.withClock === true ? ['-vf', clockFilter()] : [];
  const video = [...clock, '-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-profile:v', 'baseline'];
  const rate = ['-pix_fmt', 'yuv420p', '-g', `${gop}`, '-keyint_min', `${gop}`, '-sc_threshold', '0'];
  const budget = ['-b:v', `${videoKbps}k`, '-minrate', `${videoKbps}k`, '-maxrate', `${videoKbps}k`, '-bufsize', `${videoKbps}k`];
  const constant = ['-x264-params', 'nal-hrd=cbr:force-cfr=1', '-threads', '1'];
  const audio = ['-c:a', 'aac', '-b:a', `${audioKbps}k`, '-ac', '2'];
  return [
    ...source,
    ...(options.withoutAudio === true ? [] : sound),
    ...video,
    ...rate,
    ...budget,
    ...constant,
    ...(options.withoutAudio === true ? [] : audio),
  ];
}
