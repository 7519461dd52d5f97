import { Frame } from 'node-av/lib';
import { type RawFrame, throwIfFailed } from './library.ts';

/** Shells that are kept. */
const MAX_POOL = 64;

/** Reuses frame shells; their contents are reference counted by the library. */
export class FramePool {
  readonly #free: Frame[] = [];

  take(): RawFrame {
    const frame = this.#free.pop();
    if (frame !== undefined) return frame;
    const fresh = new Frame();
    fresh.alloc();
    return fresh;
  }

  /** A second reference to the same data, with its own properties. */
  share(frame: RawFrame): RawFrame {
    const shared = this.take();
    throwIfFailed(shared.ref(frame), 'frame reference');
    return shared;
  }

  give(frame: RawFrame): void {
    frame.unref();
    if (this.#free.length < MAX_POOL) this.#free.push(frame);
    else frame.free();
  }
}
