/** Properties of frames. */
import * as C from 'node-av/constants';
import { avChannelLayoutDefault, avChannelLayoutDescribe, avGetPixFmtFromName } from 'node-av/lib';
import type { RawFrame } from './library.ts';

/** Properties of a frame that decide how it is converted and encoded. */
export interface FrameFormat {
  readonly width: number;
  readonly height: number;
  readonly pixelFormat: number;
  readonly sarNum: number;
  readonly sarDen: number;
  readonly colorSpace: number;
  readonly colorRange: number;
  readonly colorPrimaries: number;
  readonly colorTransfer: number;
}

/** Properties of a decoded frame; an unknown aspect ratio is 1:1. */
export function frameFormat(frame: RawFrame): FrameFormat {
  const { num, den } = frame.sampleAspectRatio;
  return {
    width: frame.width,
    height: frame.height,
    pixelFormat: frame.format,
    sarNum: num > 0 && den > 0 ? num : 1,
    sarDen: num > 0 && den > 0 ? den : 1,
    colorSpace: frame.colorSpace,
    colorRange: frame.colorRange,
    colorPrimaries: frame.colorPrimaries,
    colorTransfer: frame.colorTrc,
  };
}

/** Whether a filter chain or encoder made for one format accepts the other. */
export function sameFrameFormat(a: FrameFormat, b: FrameFormat): boolean {
  return (Object.keys(a) as (keyof FrameFormat)[]).every((key) => a[key] === b[key]);
}

/** Whether a frame has the pixel format named `name` in the library. */
export function hasPixelFormat(frame: RawFrame, name: string): boolean {
  return frame.format === avGetPixFmtFromName(name as Parameters<typeof avGetPixFmtFromName>[0]);
}

/** Degrees clockwise by which the source wants the frame turned; 0 without a display matrix. */
export function rotationOf(frame: RawFrame): number {
  const matrix = frame.getSideData(C.AV_FRAME_DATA_DISPLAYMATRIX);
  if (matrix === null || matrix.length < 36) return 0;
  // A 3×3 matrix of 32-bit numbers, row by row, the first two in 16.16 fixed point: cosine and sine of the clockwise angle.
  const degrees = Math.round((Math.atan2(matrix.readInt32LE(4), matrix.readInt32LE(0)) * 180) / Math.PI);
  return (degrees + 360) % 360;
}

/** Properties of a block of samples. */
export interface SampleFormat {
  readonly sampleRate: number;
  readonly channels: number;
  readonly sampleFormat: number;
  /** As the library names it: `stereo`, `5.1(side)`. */
  readonly layout: string;
}

/** Properties of decoded audio; an unnamed layout is the default of its channel count. */
export function sampleFormat(frame: RawFrame): SampleFormat {
  const layout = frame.channelLayout;
  const known = layout.mask !== 0n ? layout : avChannelLayoutDefault(layout.nbChannels);
  return {
    sampleRate: frame.sampleRate,
    channels: layout.nbChannels,
    sampleFormat: frame.format,
    layout: avChannelLayoutDescribe(known) ?? 'stereo',
  };
}

/** Gives a frame its place in time; for frames also whether it must become a keyframe. */
export function stampFrame(frame: RawFrame, pts: number, keyframe: boolean): void {
  frame.pts = BigInt(pts);
  frame.pictType = keyframe ? C.AV_PICTURE_TYPE_I : C.AV_PICTURE_TYPE_NONE;
}

/** The frame was decoded from a keyframe. */
export function startsGroup(frame: RawFrame): boolean {
  return frame.hasFlags(C.AV_FRAME_FLAG_KEY);
}
