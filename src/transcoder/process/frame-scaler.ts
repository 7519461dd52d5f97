/** Brings the frames of one source to all the sizes its encodes need, each size once. */
import { FilterChain } from './engine/filter-chain.ts';
import type { FramePool } from './engine/frame-pool.ts';
import { type FrameFormat, frameFormat } from './engine/frame-properties.ts';
import type { RawFrame } from './engine/library.ts';
import { type FrameSize, frameSize } from './frame-size.ts';

/** Above this many pixels a frame is converted on a thread of the pool. */
const OFF_THREAD_PIXELS = 640 * 360;
const THREADS_PIXELS = 1920 * 1080;

/** A size and pixel format that at least one encode needs. */
export interface FrameNode {
  readonly target: FrameSize & { readonly pixelFormat: string };
  /** The current frame in this size, from `scale` until `release`; null at other times. */
  current: RawFrame | null;
  /** By the node of their input. */
  readonly chains: Map<FrameNode | null, FilterChain>;
}

/** Pixel formats from which smaller frames can be made without further loss. */
const REUSABLE = new Set(['yuv420p', 'nv12']);

/** Owned by its pipeline, which closes it. Nodes are of use until `setFormat` or `close`. */
export class FrameScaler {
  readonly #pool: FramePool;
  readonly #nodes: FrameNode[] = [];
  #format: FrameFormat | null = null;

  constructor(pool: FramePool) {
    this.#pool = pool;
  }

  /** The source's frames have another format: request every node again. */
  setFormat(format: FrameFormat): void {
    this.#closeNodes();
    this.#format = format;
  }

  /** The node for an encode; encodes that agree share one. */
  node(encode: { readonly width: number; readonly height: number }, pixelFormat: string): FrameNode {
    if (this.#format === null) throw new TypeError('the form of the source is not known yet');
    const target = { ...frameSize(this.#format, encode), pixelFormat };
    const same = this.#nodes.find(
      (node) =>
        node.target.width === target.width &&
        node.target.height === target.height &&
        node.target.pixelFormat === pixelFormat &&
        node.target.sarNum === target.sarNum &&
        node.target.sarDen === target.sarDen,
    );
    if (same !== undefined) return same;
    const node: FrameNode = { target, current: null, chains: new Map() };
    this.#nodes.push(node);
    // Large ones come first, so that smaller ones can start from them.
    this.#nodes.sort((a, b) => area(b.target) - area(a.target));
    return node;
  }

  /** Makes `source` in the sizes of all `wanted` nodes; they are in `current` until `release`. Throws EngineError. */
  async scale(source: RawFrame, wanted: ReadonlySet<FrameNode>): Promise<void> {
    for (const node of this.#nodes) {
      if (!wanted.has(node)) continue;
      const parent = this.#parentOf(node);
      await this.#chain(node, parent, source).run(parent?.current ?? source, (frame) => {
        if (node.current === null) node.current = frame;
        else this.#pool.give(frame);
      });
    }
  }

  release(): void {
    for (const node of this.#nodes) {
      if (node.current === null) continue;
      this.#pool.give(node.current);
      node.current = null;
    }
  }

  /** Idempotent. */
  close(): void {
    this.#closeNodes();
  }

  /** The smallest frame so far that is at least as large in both dimensions. */
  #parentOf(node: FrameNode): FrameNode | null {
    let parent: FrameNode | null = null;
    for (const other of this.#nodes) {
      if (other === node || other.current === null || !REUSABLE.has(other.target.pixelFormat)) continue;
      if (other.target.width < node.target.width || other.target.height < node.target.height) continue;
      if (parent === null || area(other.target) < area(parent.target)) parent = other;
    }
    return parent;
  }

  #chain(node: FrameNode, parent: FrameNode | null, source: RawFrame): FilterChain {
    let chain = node.chains.get(parent);
    if (chain === undefined) {
      const from = frameFormat(parent?.current ?? source);
      const pixels = from.width * from.height;
      chain = FilterChain.forFrames(from, node.target, {
        pool: this.#pool,
        offThread: pixels > OFF_THREAD_PIXELS,
        threads: pixels > THREADS_PIXELS ? 2 : 1,
      });
      node.chains.set(parent, chain);
    }
    return chain;
  }

  #closeNodes(): void {
    this.release();
    for (const node of this.#nodes) for (const chain of node.chains.values()) chain.close();
    this.#nodes.length = 0;
  }
}

function area({ width, height }: FrameSize): number {
  return width * height;
}
