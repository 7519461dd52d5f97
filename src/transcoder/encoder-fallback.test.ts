/** Encoders that seem to work but fail to open at the first frame: here encoders of missing hardware. */

import { createHash } from 'node:crypto';
import { beforeAll, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { videoConfig } from '../../test/fakes/transcode-run.ts';
import { until } from '../../test/harness/poll.ts';
import { type EncodedMedia, encodeMedia } from '../../test/support/encoded-media.ts';
import type { EncodeFaultFacts } from '../core/transcoding.ts';
import { systemClock } from '../util/clock.ts';
import { sourceMessage, type TrackMessage } from './messages.ts';
import { CodecCensus } from './process/codec-census.ts';
import { encoderWorks } from './process/engine/census.ts';
import { Encoder } from './process/engine/encoder.ts';
import { FilterChain } from './process/engine/filter-chain.ts';
import { FramePool } from './process/engine/frame-pool.ts';
import { silenceLibrary } from './process/engine/library.ts';
import type { OutputPacket, PipelineTools } from './process/pipeline.ts';
import { videoEncode } from './process/video-encode.ts';
import { VideoPipeline } from './process/video-pipeline.ts';

const FRAMES = 60;

let media: EncodedMedia;
beforeAll(() => {
  silenceLibrary();
  media = encodeMedia({ video: 'libx264', audio: null, seconds: FRAMES / 30, extra: ['-bf', '0', '-preset', 'ultrafast'] });
});

/** The pixel formats of the frames that encoders were given. */
const given: number[] = [];
beforeEach(() => {
  given.length = 0;
  const { encode } = Encoder.prototype;
  const spy = vi.spyOn(Encoder.prototype, 'encode').mockImplementation(function (this: Encoder, frame, sink) {
    if (frame !== null) given.push(frame.format);
    return encode.call(this, frame, sink);
  });
  onTestFinished(() => spy.mockRestore());
});

/** A video encode of the media, in its size: there bringing frames to another pixel format and back loses nothing. */
class Run {
  readonly packets: OutputPacket[] = [];
  readonly tracks: TrackMessage[] = [];
  readonly notices: string[] = [];
  readonly failures: string[] = [];
  readonly facts: (EncodeFaultFacts | undefined)[] = [];
  readonly census = new CodecCensus();
  readonly #pipeline: VideoPipeline;

  constructor(codec: string, working: readonly string[]) {
    const tools: PipelineTools = {
      clock: systemClock,
      pool: new FramePool(),
      census: this.census,
      sink: {
        onTrack: (_id, track) => this.tracks.push(track),
        onPacket: (_id, packet) => this.packets.push(packet),
        onFailed: (_id, reason, _part, facts) => {
          this.failures.push(reason);
          this.facts.push(facts);
        },
        onTaken: () => undefined,
        notice: (_level, message) => this.notices.push(message),
        congestion: () => null,
      },
      hardware: { enable: false, modules: '' },
      hardwareDecoding: { enable: false, modules: '' },
      working: new Set(working),
      decoderThreads: 1,
      cpus: 1,
    };
    const encode = videoConfig({ codec });
    this.#pipeline = new VideoPipeline(0, [videoEncode({ id: 1, sourceId: 0, type: 'video', encode }, false, tools)], tools);
    onTestFinished(() => this.#pipeline.close());
    this.#pipeline.push({ source: sourceMessage(media.video!) });
  }

  /** The packets with digests instead of bytes, so that differences are readable. */
  told(): unknown[] {
    return this.packets.map(({ data, ...times }) => ({ ...times, data: createHash('sha256').update(data).digest('hex') }));
  }

  /** Encodes the frames from `from` up to `to`. */
  async feed(from: number, to: number): Promise<void> {
    await this.try(from, to);
    expect(this.failures).toEqual([]);
  }

  /** The same, until it fails. */
  async try(from: number, to: number): Promise<void> {
    for (const packet of media.packets.slice(from, to)) {
      const { data, pts, dts, duration } = packet;
      const input = { packet: { data, pts, dts, duration, discontinuity: false } };
      await until('the pipeline takes a packet', () => this.#pipeline.push(input), { everyMs: 2 });
    }
    await until(`${to} frames come out`, () => this.packets.length >= to || this.failures.length > 0);
  }
}

it.for(['nvenc', 'qsv', 'vaapi', 'amf'])('software replaces %s when that cannot be opened', async (module, { skip }) => {
  const name = `h264_${module}`;
  skip(encoderWorks(name, { pixelFormat: 'nv12', uploads: module === 'vaapi' }), 'there is such hardware');
  const alone = new Run('h264', ['libx264']);
  await alone.feed(0, FRAMES);
  const wanted = [...given];
  given.length = 0;

  const fallen = new Run(name, ['libx264', name]);
  await fallen.feed(0, FRAMES / 2);
  const chains = vi.spyOn(FilterChain, 'forFrames');
  onTestFinished(() => chains.mockRestore());
  await fallen.feed(FRAMES / 2, FRAMES);

  expect(new Set(wanted).size).toBe(1);
  expect(given).toEqual(wanted);
  // The plan for the current encoder needs no conversion.
  expect(chains.mock.calls.length).toBeLessThanOrEqual(1);
  expect(fallen.told()).toEqual(alone.told());
  expect(fallen.tracks).toEqual(alone.tracks);
  expect(fallen.tracks.length).toBe(1);
  expect(fallen.notices).toEqual([expect.stringContaining("encode 'video' falls back to libx264: ")]);
  expect(fallen.census.figures.encoders).toEqual({ libx264: 1 });
});

it('an encoder without a fallback fails with its module and its errors', async ({ skip }) => {
  skip(encoderWorks('h264_nvenc', { pixelFormat: 'nv12', uploads: false }), 'there is such hardware');
  const alone = new Run('h264_nvenc', ['h264_nvenc']);
  await alone.try(0, 10);
  expect(alone.failures).toHaveLength(1);
  expect(alone.facts).toEqual([{ module: 'nv', errors: { count: 3, withinMs: expect.any(Number) } }]);
  expect(alone.facts[0]?.errors?.withinMs).toBeLessThan(30_000);
});
