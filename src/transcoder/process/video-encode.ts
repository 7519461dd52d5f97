import type { EncodeVideoConfig } from '../../config/index.ts';
import type { EncodeRequest } from '../../core/transcoding.ts';
import type { VideoCodec } from '../../media/codec.ts';
import { deviceOptions } from './device-options.ts';
import { videoTrackMessage } from './encoded-track.ts';
import { openEncoder } from './encoder-opening.ts';
import { tuneVideo } from './encoder-tuning.ts';
import { Encoder } from './engine/encoder.ts';
import type { FrameEncode } from './frame-output.ts';
import { framePlan } from './frame-plan.ts';
import { keyframeInterval } from './keyframe-schedule.ts';
import type { PipelineTools } from './pipeline.ts';

/** Frames above this many pixels are encoded on a thread of the pool. */
const OFF_THREAD_PIXELS = 640 * 360;
const DEFAULT_BITRATE = 1_000_000;
/** Keyframes are forced; this only bounds the distance should that ever fail, in intervals. */
const SPARE_INTERVALS = 10;
const SECOND = 90_000;

type VideoRequest = Extract<EncodeRequest, { type: 'video' }>;

/** A video encode of a profile. `followSource` lets the source's keyframes lead, as `KeyframePlan` has it. */
export function videoEncode(request: VideoRequest, followSource: boolean, tools: PipelineTools): FrameEncode {
  const { id, trackId = id, encode: config } = request;
  const bitrate = config.bitrate ?? DEFAULT_BITRATE;
  return {
    id,
    width: config.width,
    height: config.height,
    framerate: config.framerate,
    skipFrames: config.skipFrames,
    constant: true,
    overlays: request.overlays ?? [],
    ...framePlan(config, trackId, tools),
    keyframePlan: (framerate) => ({ interval: keyframeInterval(config, framerate), followSource }),
    open: (format, framerate) => {
      const { width, height } = format;
      const pixels = width * height;
      const gop = Math.ceil((keyframeInterval(config, framerate) / SECOND) * framerate) * SPARE_INTERVALS;
      const opened = openEncoder(tools, config, (entry) => {
        const device = deviceOptions(entry.module, entry.device);
        const tuning = tuneVideo(entry, config, bitrate, pixels, tools.cpus);
        return Encoder.forFrames({
          name: entry.name,
          format,
          pixelFormat: entry.pixelFormat,
          uploads: entry.uploads,
          framerate,
          bitrate,
          gop: Math.max(gop, 1),
          offThread: pixels > OFF_THREAD_PIXELS,
          ...tuning,
          options: { ...tuning.options, ...device.options },
          device: device.node,
        });
      });
      const track = videoTrackMessage({
        codec: opened.entry.codec as VideoCodec,
        extraData: opened.encoder.extraData,
        width,
        height,
        framerate,
        bitrate,
      });
      return { opened, track };
    },
  };
}

/** Whether all `configs` follow the keyframes of the source: none has an interval or frame rate of its own. */
export function followsSource(configs: readonly EncodeVideoConfig[]): boolean {
  return configs.every(({ keyFrameInterval, framerate, skipFrames }) => keyFrameInterval <= 0 && framerate <= 0 && skipFrames < 0);
}
