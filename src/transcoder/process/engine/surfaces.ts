import * as C from 'node-av/constants';
import { avGetPixFmtFromName, Frame, HardwareFramesContext } from 'node-av/lib';
import { Device } from './device.ts';
import type { FrameFormat } from './frame-properties.ts';
import { type RawFrame, throwIfFailed } from './library.ts';

/** Frames a VA-API encoder may hold at once. */
const SURFACES = 20;

/** Brings frames into the memory of a VA-API device. */
export class Surfaces {
  readonly frames = new HardwareFramesContext();
  readonly #device: Device;
  readonly #surface = new Frame();

  /** `pixelFormat`: the library's name of the uploaded format. Throws EngineError if there is no device. */
  constructor(format: Pick<FrameFormat, 'width' | 'height'>, pixelFormat: string, node: string | null = null) {
    this.#device = new Device('vaapi', node);
    this.#surface.alloc();
    try {
      this.frames.alloc(this.#device.context);
      this.frames.format = C.AV_PIX_FMT_VAAPI;
      this.frames.swFormat = avGetPixFmtFromName(pixelFormat);
      this.frames.width = format.width;
      this.frames.height = format.height;
      this.frames.initialPoolSize = SURFACES;
      throwIfFailed(this.frames.init(), 'VA-API surfaces');
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** The frame as a surface, valid until the next one. */
  upload(frame: RawFrame): RawFrame {
    const surface = this.#surface;
    surface.unref();
    throwIfFailed(this.frames.getBuffer(surface, 0), 'VA-API surface');
    throwIfFailed(this.frames.transferDataSync(surface, frame, 0), 'VA-API upload');
    throwIfFailed(surface.copyProps(frame), 'VA-API upload');
    return surface;
  }

  close(): void {
    this.#surface.free();
    this.frames.free();
    this.#device.close();
  }
}
