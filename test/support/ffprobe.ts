/** Judges our output with ffprobe. */
import { spawnSync } from 'node:child_process';

export interface ProbedStream {
  readonly codec_name?: string;
  readonly codec_type: string;
  readonly width?: number;
  readonly height?: number;
  readonly sample_rate?: string;
  readonly channels?: number;
  readonly tags?: Readonly<Record<string, string>>;
}

export interface ProbedPacket {
  readonly codec_type: string;
  readonly stream_index: number;
  /** Seconds. */
  readonly pts_time: string;
  readonly dts_time: string;
  readonly flags: string;
}

export interface Probe {
  readonly streams: readonly ProbedStream[];
  readonly packets: readonly ProbedPacket[];
  /** Warnings and errors, one per line; empty without any. */
  readonly complaints: readonly string[];
}

/** Streams and packets of `media`, read from a pipe. */
export function ffprobe(media: Uint8Array): Probe {
  const args = ['-v', 'warning', '-show_streams', '-show_packets', '-of', 'json', '-i', 'pipe:0'];
  const { stdout, stderr } = spawnSync('/usr/bin/ffprobe', args, { input: media, maxBuffer: 256 * 1024 * 1024, encoding: 'utf8' });
  const { streams, packets } = JSON.parse(stdout) as Pick<Probe, 'streams' | 'packets'>;
  return { streams, packets, complaints: stderr.split('\n').filter((line) => line.trim() !== '') };
}

/** Decodes everything with ffmpeg and returns its complaints. */
export function decodeComplaints(media: Uint8Array): string[] {
  const args = ['-v', 'warning', '-xerror', '-i', 'pipe:0', '-f', 'null', '-'];
  const { stderr } = spawnSync('/usr/bin/ffmpeg', args, { input: media, maxBuffer: 256 * 1024 * 1024, encoding: 'utf8' });
  return stderr.split('\n').filter((line) => line.trim() !== '');
}
