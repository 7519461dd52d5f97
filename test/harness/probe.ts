/** ffprobe's description of a URL. */
import { requireProgram } from '../../scripts/ensure-tools.ts';
import { Child } from './child.ts';

/** The members of ffprobe's JSON that tests read. */
export interface ProbedStream {
  readonly codec_type: string;
  readonly codec_name: string;
  readonly profile?: string;
  readonly width?: number;
  readonly height?: number;
  readonly r_frame_rate: string;
  readonly avg_frame_rate: string;
  readonly sample_rate?: string;
  readonly channels?: number;
  /** Presentation time of the first frame, seconds. */
  readonly start_time?: string;
}

export interface Probed {
  readonly streams: readonly ProbedStream[];
  readonly video: ProbedStream | undefined;
  readonly audio: ProbedStream | undefined;
}

const DEADLINE_MS = 30_000;

/** Reads `url` with ffprobe; throws its error text on failure. */
export async function probe(url: string): Promise<Probed> {
  const child = new Child(requireProgram('ffprobe'), ['-v', 'error', '-of', 'json', '-show_streams', '-analyzeduration', '3M', url]);
  try {
    const { code } = await child.ended(DEADLINE_MS);
    if (code !== 0) throw new Error(`ffprobe ${url}: ${child.stderr.slice(-1000)}`);
    const { streams } = JSON.parse(child.stdout) as { streams: ProbedStream[] };
    return { streams, video: streams.find((one) => one.codec_type === 'video'), audio: streams.find((one) => one.codec_type === 'audio') };
  } finally {
    await child.kill();
  }
}

/**
 * Keeps ffmpeg from aligning frames to a frame rate: camera sources have none, and at a splice two frames may be so close that they would
 * get the same number. Its remaining complaints about times concern frames that are really simultaneous, or out of order.
 */
export const UNEVEN = ['-fps_mode', 'passthrough', '-enc_time_base:v', '1:90000'];

/**
 * Decodes `seconds` of media that ffmpeg reads from `url`; returns the number of frames and the error lines. `uneven`: the frames have no
 * fixed rate, or are spliced.
 */
export async function decode(url: string, seconds: number, { uneven = false } = {}): Promise<{ frames: number; errors: string }> {
  const output = ['-map', '0:v:0', '-map', '0:a:0?', '-t', `${seconds}`, ...(uneven ? UNEVEN : []), '-f', 'null', '-'];
  const child = new Child(requireProgram('ffmpeg'), ['-v', 'error', '-nostdin', '-progress', 'pipe:1', '-i', url, ...output]);
  try {
    const { code } = await child.ended(DEADLINE_MS + seconds * 1000);
    if (code !== 0) throw new Error(`ffmpeg ${url}: ${child.stderr.slice(-1000)}`);
    const frames = [...child.stdout.matchAll(/^frame=\s*(\d+)$/gm)].at(-1)?.[1];
    return { frames: Number(frames ?? 0), errors: child.stderr.trim() };
  } finally {
    await child.kill();
  }
}

/** Number of video frames in a file, counted by packets. */
export async function countFrames(file: string): Promise<number> {
  const entries = ['-select_streams', 'v:0', '-count_packets', '-show_entries', 'stream=nb_read_packets', '-of', 'csv=p=0'];
  const child = new Child(requireProgram('ffprobe'), ['-v', 'error', ...entries, file]);
  try {
    const { code } = await child.ended(DEADLINE_MS);
    if (code !== 0) throw new Error(`ffprobe ${file}: ${child.stderr.slice(-1000)}`);
    // For a transport stream ffprobe prints the stream twice, once as part of its program.
    return Number(/^\d+/.exec(child.stdout.trim())?.[0]);
  } finally {
    await child.kill();
  }
}

/** `30000/1001` as a number. */
export function frameRate(text: string): number {
  const [numerator = 0, denominator = 1] = text.split('/').map(Number);
  return numerator / denominator;
}
