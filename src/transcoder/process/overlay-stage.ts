/** The overlays of one encode, for frames of one format. */
import { type OverlayRequest, overlayNames, type PixelSize } from '../../core/transcoding.ts';
import { VideoCodec } from '../../media/codec.ts';
import { MPEG_90K } from '../../media/timebase.ts';
import { ArithmeticError, calculate } from '../../util/arithmetic.ts';
import { messageOf } from '../../util/message-of.ts';
import { Decoder } from './engine/decoder.ts';
import { FilterChain } from './engine/filter-chain.ts';
import type { FramePool } from './engine/frame-pool.ts';
import { type FrameFormat, frameFormat } from './engine/frame-properties.ts';
import { EngineError, type RawFrame } from './engine/library.ts';
import { type LaidImage, OverlayChain } from './engine/overlay-chain.ts';

/** First byte of a JPEG; the other kind is PNG. */
const JPEG = 0xff;
/** Pixels of a side at most: more is no place on a frame. */
const MAX_SIDE = 16_384;
/**
 * Limit for one image in its original size, and for all scaled images of an encode together: the pixels of an 8K frame, four bytes each.
 */
const MAX_PIXELS = 8192 * 4096;

/** Options of the overlay stage. */
export interface OverlayStageOptions {
  readonly overlays: readonly OverlayRequest[];
  readonly format: FrameFormat;
  /** Pixel format of the encoder, by the library's name. */
  readonly pixelFormat: string;
  readonly pool: FramePool;
  /** Logs why an image is left out. */
  readonly warn: (message: string) => void;
}

/** The chain for these frames, which the caller closes; null when no image can be laid over them. Rejects with EngineError. */
export async function openOverlays({ overlays, format, pixelFormat, pool, warn }: OverlayStageOptions): Promise<OverlayChain | null> {
  const images: LaidImage[] = [];
  let room = MAX_PIXELS;
  try {
    for (const overlay of overlays) {
      try {
        const image = await laidImage(overlay, format, { pool, room });
        room -= image.frame.width * image.frame.height;
        images.push(image);
      } catch (error) {
        if (!(error instanceof EngineError || error instanceof ArithmeticError)) throw error;
        warn(`the overlay '${overlay.url}' is left out: ${messageOf(error)}`);
      }
    }
    return images.length === 0 ? null : new OverlayChain(format, pixelFormat, images, pool);
  } finally {
    for (const { frame } of images) pool.give(frame);
  }
}

/** `room`: pixels that it may have. */
async function laidImage(
  overlay: OverlayRequest,
  format: FrameFormat,
  { pool, room }: { readonly pool: FramePool; readonly room: number },
): Promise<LaidImage> {
  const decoded = await decodedImage(overlay.image, pool);
  try {
    const from = frameFormat(decoded);
    const width = side('Width', calculate(overlay.width, overlayNames(format, from)));
    const height = side('Height', calculate(overlay.height, overlayNames(format, from)));
    if (width * height > room) throw new EngineError(`${width}x${height} pixels are more than there is room for (${room})`);
    const frame = await scaled(decoded, { width, height, opacity: overlay.opacity, over: format }, pool);
    const place = (sum: string, size: PixelSize): number =>
      Math.round(Math.min(Math.max(calculate(sum, overlayNames(format, size)), -MAX_SIDE), MAX_SIDE));
    return { frame, x: place(overlay.left, { width, height }), y: place(overlay.top, { width, height }) };
  } finally {
    pool.give(decoded);
  }
}

function side(name: string, pixels: number): number {
  const whole = Math.round(pixels);
  if (whole < 1 || whole > MAX_SIDE) throw new EngineError(`${name} comes to ${whole} pixels`);
  return whole;
}

async function decodedImage(image: Uint8Array, pool: FramePool): Promise<RawFrame> {
  const codec = image[0] === JPEG ? VideoCodec.JPEG : VideoCodec.PNG;
  const options = { max_pixels: String(MAX_PIXELS) };
  const decoder = new Decoder({ codec, timebase: MPEG_90K, config: null, threads: 1, offThread: true, options }, pool);
  const frames: RawFrame[] = [];
  try {
    await decoder.decode({ data: image, pts: 0, dts: 0, duration: 0 }, (frame) => frames.push(frame));
    await decoder.drain((frame) => frames.push(frame));
  } finally {
    decoder.close();
  }
  const [first, ...others] = frames;
  for (const other of others) pool.give(other);
  if (first === undefined) throw new EngineError('the image cannot be decoded');
  return first;
}

async function scaled(frame: RawFrame, to: Parameters<typeof FilterChain.forOverlay>[1], pool: FramePool): Promise<RawFrame> {
  const chain = FilterChain.forOverlay(frameFormat(frame), to, pool);
  const made: RawFrame[] = [];
  try {
    await chain.run(frame, (image) => made.push(image));
  } finally {
    chain.close();
  }
  const [image] = made;
  if (image === undefined) throw new EngineError('the image cannot be brought to its size');
  return image;
}
