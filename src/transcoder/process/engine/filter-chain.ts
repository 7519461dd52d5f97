import * as C from 'node-av/constants';
import { avChannelLayoutDefault, avChannelLayoutDescribe, avGetSampleFmtName, FilterGraph } from 'node-av/lib';
import type { FramePool } from './frame-pool.ts';
import type { FrameFormat, SampleFormat } from './frame-properties.ts';
import { AGAIN, EngineError, type RawFrame, throwIfFailed } from './library.ts';

/** Video with at least this many lines and without colour information is taken for BT.709. */
const HD = 720;

/** A chain of filters with one way in and one way out. */
export class FilterChain {
  readonly #graph = new FilterGraph();
  readonly #source;
  readonly #sink;
  readonly #pool: FramePool;
  readonly #offThread: boolean;
  #closed = false;

  /** Frames in `from` become `width`×`height` in the pixel format of this name, with pixels of the given aspect. */
  static forFrames(
    from: FrameFormat,
    to: { width: number; height: number; pixelFormat: string; sarNum: number; sarDen: number },
    options: { pool: FramePool; offThread: boolean; threads: number },
  ): FilterChain {
    const range = to.pixelFormat.startsWith('yuvj') ? ':out_range=pc' : '';
    const steps = `scale=${to.width}:${to.height}:flags=bicubic${range},format=${to.pixelFormat},setsar=${to.sarNum}/${to.sarDen}`;
    return new FilterChain(`buffer@in=${frameInput(from)},${steps},buffersink@out`, options);
  }

  /**
   * The same for a film from a file: interlaced frames become progressive, one frame later, and RGB becomes a format that players support.
   * `drain` outputs the last one.
   */
  static forFilm(
    from: FrameFormat,
    to: { width: number; height: number; pixelFormat: string; sarNum: number; sarDen: number },
    options: { pool: FramePool; offThread: boolean; threads: number },
  ): FilterChain {
    const steps = [
      'bwdif=mode=send_frame:deint=interlaced',
      `scale=${to.width}:${to.height}:flags=bicubic:out_range=tv${from.colorSpace === C.AVCOL_SPC_RGB ? ':out_color_matrix=bt709' : ''}`,
      `format=${to.pixelFormat}`,
      `setsar=${to.sarNum}/${to.sarDen}`,
      // Deinterlacing counts in halves.
      'settb=1/90000',
    ];
    return new FilterChain(`buffer@in=${frameInput(from)},${steps.join(',')},buffersink@out`, options);
  }

  /** An image becomes `width`×`height`, as transparent as `opacity` (0 to 1) makes it, in the colours of frames of the form `over`. */
  static forOverlay(
    from: FrameFormat,
    to: { width: number; height: number; opacity: number; over: FrameFormat },
    pool: FramePool,
  ): FilterChain {
    const { over } = to;
    const matrix =
      over.colorSpace === C.AVCOL_SPC_BT709 || (over.colorSpace === C.AVCOL_SPC_UNSPECIFIED && over.height >= HD) ? 'bt709' : 'bt601';
    const range = over.colorRange === C.AVCOL_RANGE_JPEG ? 'pc' : 'tv';
    const steps = [
      `scale=${to.width}:${to.height}:flags=bicubic`,
      `format=rgba`,
      `colorchannelmixer=aa=${to.opacity}`,
      `scale=out_color_matrix=${matrix}:out_range=${range}`,
      'format=yuva420p',
    ];
    return new FilterChain(`buffer@in=${frameInput(from)},${steps.join(',')},buffersink@out`, { pool, offThread: true, threads: 1 });
  }

  /**
   * Converts samples in `from` to blocks of `frameSize` in the named format. Gaps in timestamps become silence, overlaps are cut, and slow
   * drift is followed by stretching, so the output is exactly as long as the input. It begins at `firstPts`, in samples of `from`: a later
   * input is padded with silence, an earlier one is cut; null: with the first sample.
   */
  static forSamples(
    from: SampleFormat,
    to: { sampleRate: number; channels: number; sampleFormat: string; frameSize: number; firstPts: number | null },
    pool: FramePool,
  ): FilterChain {
    const input = [
      `sample_rate=${from.sampleRate}`,
      `sample_fmt=${avGetSampleFmtName(from.sampleFormat as C.AVSampleFormat) ?? 'fltp'}`,
      `channel_layout=${from.layout}`,
      `time_base=1/${from.sampleRate}`,
    ].join(':');
    const layout = avChannelLayoutDescribe(avChannelLayoutDefault(to.channels)) ?? 'stereo';
    const steps = [
      `aresample=min_comp=0.001:min_hard_comp=0.01:comp_duration=1:max_soft_comp=0.02${to.firstPts === null ? '' : `:first_pts=${to.firstPts}`}`,
      `aformat=sample_rates=${to.sampleRate}:sample_fmts=${to.sampleFormat}:channel_layouts=${layout}`,
      `asetnsamples=n=${to.frameSize}:p=0`,
    ].join(',');
    return new FilterChain(`abuffer@in=${input},${steps},abuffersink@out`, { pool, offThread: false, threads: 1 });
  }

  private constructor(text: string, options: { pool: FramePool; offThread: boolean; threads: number }) {
    this.#pool = options.pool;
    this.#offThread = options.offThread;
    const graph = this.#graph;
    graph.alloc();
    graph.nbThreads = options.threads;
    try {
      throwIfFailed(graph.parsePtr(text, null, null), `filters ${text}`);
      throwIfFailed(graph.configSync(), `filters ${text}`);
      const source = graph.getFilter(text.startsWith('a') ? 'abuffer@in' : 'buffer@in');
      const sink = graph.getFilter(text.startsWith('a') ? 'abuffersink@out' : 'buffersink@out');
      if (source === null || sink === null) throw new EngineError(`filters ${text}: no ends`);
      this.#source = source;
      this.#sink = sink;
    } catch (error) {
      graph.free();
      throw error;
    }
  }

  /** `frame` stays the caller's; each frame handed to `sink` belongs to it. Throws EngineError. */
  async run(frame: RawFrame, sink: (frame: RawFrame) => void): Promise<void> {
    // Only queues the frame; the work is done when the other end is asked.
    throwIfFailed(this.#source.buffersrcAddFrameSync(frame, C.AV_BUFFERSRC_FLAG_KEEP_REF), 'filter input');
    for (;;) {
      const out = this.#pool.take();
      const code = this.#offThread ? await this.#sink.buffersinkGetFrame(out) : this.#sink.buffersinkGetFrameSync(out);
      if (code < 0) {
        this.#pool.give(out);
        if (code === AGAIN || code === C.AVERROR_EOF) return;
        throwIfFailed(code, 'filter output');
      }
      sink(out);
      // A scaler returns one frame for each frame, so no further attempt is needed.
      if (this.#offThread) return;
    }
  }

  /** Outputs the remaining frames; the filters take nothing afterwards. Throws EngineError. */
  async drain(sink: (frame: RawFrame) => void): Promise<void> {
    throwIfFailed(this.#source.buffersrcAddFrameSync(null), 'filter input');
    for (;;) {
      const out = this.#pool.take();
      const code = await this.#sink.buffersinkGetFrame(out);
      if (code >= 0) {
        sink(out);
        continue;
      }
      this.#pool.give(out);
      if (code !== AGAIN && code !== C.AVERROR_EOF) throwIfFailed(code, 'filter output');
      return;
    }
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#graph.free();
  }
}

/** The arguments of a filter whose input frames have this form. */
export function frameInput(from: FrameFormat): string {
  return [
    `video_size=${from.width}x${from.height}`,
    `pix_fmt=${from.pixelFormat}`,
    'time_base=1/90000',
    `pixel_aspect=${from.sarNum}/${from.sarDen}`,
    `colorspace=${from.colorSpace}`,
    `range=${from.colorRange}`,
  ].join(':');
}
