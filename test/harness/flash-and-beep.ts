/** A source with simultaneous flashes in its frames and beeps in its audio, and a viewer that reports their times. */

import { requireProgram } from '../../scripts/ensure-tools.ts';
import { parseRtcp, type SenderReport } from '../../src/wire/rtp/rtcp-packet.ts';
import { Child } from './child.ts';
import { RtpDecoder } from './rtp-decoder.ts';
import { SocketViewer } from './socket-viewer.ts';

/** Interval and duration of flashes and beeps, seconds. */
const EVERY = 1;
const LASTS = 0.2;
const FPS = 30;
/** Edge of the examined square of the frame. */
const EDGE = 8;
const BRIGHT = 128;
const LOUD = 3000;
const SAMPLE_RATE = 48_000;
/** Samples of silence between two beeps. */
const QUIET = SAMPLE_RATE * 0.3;

const VIDEO = { kind: 'video', payloadType: 98, map: 'H264/90000' } as const;
const AUDIO = { kind: 'audio', payloadType: 110, map: 'opus/48000/2' } as const;
const FRAMES = ['-fps_mode', 'passthrough', '-s', `${EDGE}x${EDGE}`, '-pix_fmt', 'gray', '-f', 'rawvideo'];
const SAMPLES = ['-ac', '1', '-ar', `${SAMPLE_RATE}`, '-f', 's16le'];

/** Publishes to an RTMP URL until it is stopped: H.264 without B-frames, and AAC. */
export function publishFlashes(url: string): Child {
  const now = `lt(mod(t+${EVERY / 2},${EVERY}),${LASTS})`;
  const video = `color=black:size=320x180:rate=${FPS},drawbox=color=white:t=fill:enable='${now}'`;
  const audio = `aevalsrc='0.8*sin(2*PI*1000*t)*${now}':sample_rate=${SAMPLE_RATE}`;
  return new Child(requireProgram('ffmpeg'), [
    ...['-v', 'error', '-nostdin', '-re', '-f', 'lavfi', '-i', video, '-re', '-f', 'lavfi', '-i', audio],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p', '-g', `${FPS}`],
    ...['-c:a', 'aac', '-b:a', '128k', '-ac', '2', '-f', 'flv', url],
  ]);
}

/** Numbers of the frames at which flashes begin, after a dark frame. */
function flashes(frames: Buffer): number[] {
  const size = EDGE * EDGE;
  const light = Array.from({ length: Math.floor(frames.length / size) }, (_unused, n) => mean(frames.subarray(n * size, (n + 1) * size)));
  return [...light.keys()].filter((n) => n > 0 && (light[n] ?? 0) >= BRIGHT && (light[n - 1] ?? 0) < BRIGHT);
}

/** Numbers of the samples (16 bits, little-endian) at which beeps begin, after silence. */
function beeps(audio: Buffer): number[] {
  const found: number[] = [];
  let quiet = 0;
  for (let n = 0; 2 * n + 1 < audio.length; n += 1) {
    if (Math.abs(audio.readInt16LE(2 * n)) < LOUD) {
      quiet += 1;
      continue;
    }
    if (quiet > QUIET) found.push(n);
    quiet = 0;
  }
  return found;
}

function mean(bytes: Buffer): number {
  return bytes.reduce((sum, byte) => sum + byte, 0) / bytes.length;
}

/** One of the two RTP streams. */
interface Stream {
  readonly rate: number;
  readonly decoder: RtpDecoder;
  /** RTP timestamps in order of arrival, without repetitions. */
  readonly timestamps: number[];
  report: SenderReport | null;
}

/** Plays the source over the WebSocket protocol. The caller of `open` closes it. */
export class FlashViewer extends SocketViewer {
  readonly #streams: ReadonlyMap<number, Stream>;
  /** Streams by SSRC. */
  readonly #bySsrc = new Map<number, Stream>();

  private constructor(streams: ReadonlyMap<number, Stream>) {
    super();
    this.#streams = streams;
  }

  static async open(folder: string): Promise<FlashViewer> {
    const open = async (plan: typeof VIDEO | typeof AUDIO, rate: number, output: readonly string[]): Promise<[number, Stream]> => {
      const decoder = await RtpDecoder.open({ ...plan, output, folder });
      return [plan.payloadType, { rate, decoder, timestamps: [], report: null }];
    };
    return new FlashViewer(new Map([await open(VIDEO, 90_000, FRAMES), await open(AUDIO, SAMPLE_RATE, SAMPLES)]));
  }

  /** Wall clock of flashes and beeps so far, seconds; null before the first sender reports. */
  moments(): { readonly flashes: number[]; readonly beeps: number[] } | null {
    const [video, audio] = [this.#streams.get(VIDEO.payloadType), this.#streams.get(AUDIO.payloadType)];
    if (!video?.report || !audio?.report) return null;
    const [first = 0] = audio.timestamps;
    return {
      flashes: flashes(video.decoder.decoded()).map((n) => wallClock(video, video.timestamps[n] ?? 0)),
      beeps: beeps(audio.decoder.decoded()).map((n) => wallClock(audio, first + n)),
    };
  }

  async end(): Promise<void> {
    this.close();
    for (const { decoder } of this.#streams.values()) await decoder.close();
  }

  protected override onRtp(packet: Buffer): void {
    const stream = this.#streams.get(packet.readUInt8(1) & 0x7f);
    if (stream === undefined) return;
    this.#bySsrc.set(packet.readUInt32BE(8), stream);
    const timestamp = packet.readUInt32BE(4);
    if (stream.timestamps.at(-1) !== timestamp) stream.timestamps.push(timestamp);
    stream.decoder.push(packet);
  }

  protected override onRtcp(packet: Buffer): void {
    for (const report of parseRtcp(packet).reports) {
      const stream = this.#bySsrc.get(report.ssrc);
      if (stream !== undefined) stream.report = report;
    }
  }
}

function wallClock({ report, rate }: Stream, timestamp: number): number {
  return report === null ? Number.NaN : report.ntp + ((timestamp - report.rtpTimestamp) | 0) / rate;
}
