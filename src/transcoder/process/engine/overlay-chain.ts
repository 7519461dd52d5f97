import * as C from 'node-av/constants';
import { FilterGraph } from 'node-av/lib';
import { frameInput } from './filter-chain.ts';
import type { FramePool } from './frame-pool.ts';
import { type FrameFormat, frameFormat } from './frame-properties.ts';
import { EngineError, type RawFrame, throwIfFailed } from './library.ts';

/** An image that was brought to its size, and the place of its upper left corner. */
export interface LaidImage {
  readonly frame: RawFrame;
  readonly x: number;
  readonly y: number;
}

/** Lays images over frames, the later ones above the earlier ones. */
export class OverlayChain {
  readonly #graph = new FilterGraph();
  readonly #source;
  readonly #sink;
  readonly #pool: FramePool;
  #closed = false;

  /** Frames keep `format` and the named pixel format. The images may be released afterwards. Throws EngineError. */
  constructor(format: FrameFormat, pixelFormat: string, images: readonly LaidImage[], pool: FramePool) {
    this.#pool = pool;
    const graph = this.#graph;
    graph.alloc();
    graph.nbThreads = 1;
    const inputs = images.map(({ frame }, index) => `buffer@image${index}=${frameInput(frameFormat(frame))}[image${index}]`);
    const steps = images.map(
      ({ x, y }, index) => `[frame${index}][image${index}]overlay=x=${x}:y=${y}:eof_action=repeat[frame${index + 1}]`,
    );
    const text = [
      `buffer@in=${frameInput(format)}[frame0]`,
      ...inputs,
      ...steps,
      `[frame${images.length}]format=${pixelFormat},setsar=${format.sarNum}/${format.sarDen},buffersink@out`,
    ].join(';');
    try {
      throwIfFailed(graph.parsePtr(text, null, null), `filters ${text}`);
      throwIfFailed(graph.configSync(), `filters ${text}`);
      const source = graph.getFilter('buffer@in');
      const sink = graph.getFilter('buffersink@out');
      if (source === null || sink === null) throw new EngineError(`filters ${text}: no ends`);
      this.#source = source;
      this.#sink = sink;
      images.forEach(({ frame }, index) => {
        const input = graph.getFilter(`buffer@image${index}`);
        if (input === null) throw new EngineError(`filters ${text}: no end for an image`);
        frame.pts = 0n;
        throwIfFailed(input.buffersrcAddFrameSync(frame, C.AV_BUFFERSRC_FLAG_KEEP_REF), 'filter input');
        // It is there for good.
        throwIfFailed(input.buffersrcAddFrameSync(null), 'filter input');
      });
    } catch (error) {
      graph.free();
      throw error;
    }
  }

  /** The caller keeps `frame` and owns the returned frame. Rejects with EngineError. */
  async run(frame: RawFrame): Promise<RawFrame> {
    throwIfFailed(this.#source.buffersrcAddFrameSync(frame, C.AV_BUFFERSRC_FLAG_KEEP_REF), 'overlay input');
    const out = this.#pool.take();
    const code = await this.#sink.buffersinkGetFrame(out);
    if (code < 0) this.#pool.give(out);
    throwIfFailed(code, 'overlay output');
    return out;
  }

  /** No operation may be running. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#graph.free();
  }
}
