/**
 * A program: `encoder-alone.ts FILE SECONDS WIDTH HEIGHT BITRATE` encodes the frames of a file in real time with the settings of the
 * transcoder, and prints the encoding time of each frame, ms, as JSON. Decoding and scaling do not count.
 */
import { availableParallelism } from 'node:os';
import { VideoCodec } from '../../src/media/codec.ts';
import { ENCODERS } from '../../src/transcoder/encoder-catalogue.ts';
import { tuneVideo } from '../../src/transcoder/process/encoder-tuning.ts';
import { Decoder } from '../../src/transcoder/process/engine/decoder.ts';
import { Encoder } from '../../src/transcoder/process/engine/encoder.ts';
import { FilterChain } from '../../src/transcoder/process/engine/filter-chain.ts';
import { FramePool } from '../../src/transcoder/process/engine/frame-pool.ts';
import { frameFormat, stampFrame } from '../../src/transcoder/process/engine/frame-properties.ts';
import { type RawFrame, silenceLibrary } from '../../src/transcoder/process/engine/library.ts';
import { videoConfig } from '../../test/fakes/transcode-run.ts';
import { readMedia } from './ladder.ts';
import { SOURCE_FPS } from './source.ts';

const [file = '', ...numbers] = process.argv.slice(2);
const [seconds = 0, width = 0, height = 0, bitrate = 0] = numbers.map(Number);
const OFF_THREAD_PIXELS = 640 * 360;

silenceLibrary();
const { video, packets } = readMedia(file, seconds);
const pool = new FramePool();
const offThread = true;
const decoder = new Decoder({ codec: VideoCodec.H264, timebase: video.timebase, config: video.config, threads: 2, offThread }, pool);
const entry = ENCODERS.find(({ name }) => name === 'libx264');
if (entry === undefined) throw new Error('the catalogue has no x264');
const tuning = tuneVideo(entry, videoConfig(), bitrate, width * height, availableParallelism());
const times: number[] = [];
let chain: FilterChain | null = null;
let encoder: Encoder | null = null;
const startAt = performance.now();
let shown = 0;

async function encode(frame: RawFrame): Promise<void> {
  encoder ??= Encoder.forFrames({
    name: entry?.name ?? '',
    format: frameFormat(frame),
    pixelFormat: 'yuv420p',
    uploads: false,
    framerate: SOURCE_FPS,
    bitrate,
    gop: SOURCE_FPS * 10,
    offThread: width * height > OFF_THREAD_PIXELS,
    ...tuning,
  });
  const due = startAt + (shown * 1000) / SOURCE_FPS;
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
  stampFrame(frame, shown * (90_000 / SOURCE_FPS), shown % SOURCE_FPS === 0);
  shown += 1;
  const before = performance.now();
  await encoder.encode(frame, () => times.push(performance.now() - before));
}

for (const packet of packets) {
  if (packet.track !== video) continue;
  const frames: RawFrame[] = [];
  await decoder.decode(packet, (frame) => frames.push(frame));
  for (const frame of frames) {
    const scaled: RawFrame[] = [];
    const target = { width, height, pixelFormat: 'yuv420p', sarNum: 1, sarDen: 1 };
    chain ??= FilterChain.forFrames(frameFormat(frame), target, { pool, offThread, threads: 1 });
    await chain.run(frame, (out) => scaled.push(out));
    pool.give(frame);
    for (const frame of scaled) {
      await encode(frame);
      pool.give(frame);
    }
  }
}
process.stdout.write(JSON.stringify(times));
