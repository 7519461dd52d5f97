import type { EncodeRequest } from '../../core/transcoding.ts';
import type { VideoCodec } from '../../media/codec.ts';
import { videoTrackMessage } from './encoded-track.ts';
import { openEncoder } from './encoder-opening.ts';
import { tuneImage } from './encoder-tuning.ts';
import { Encoder } from './engine/encoder.ts';
import type { FrameEncode } from './frame-output.ts';
import { framePlan } from './frame-plan.ts';
import type { PipelineTools } from './pipeline.ts';

const OFF_THREAD_PIXELS = 640 * 360;

type ImageRequest = Extract<EncodeRequest, { type: 'image' }>;

/** Images of a profile. A frame rate, when there is one, wins over `skipFrames` 0, which drops nothing. */
export function imageEncode(request: ImageRequest, tools: PipelineTools): FrameEncode {
  const { id, trackId = id, encode: config } = request;
  return {
    id,
    width: config.width,
    height: config.height,
    framerate: config.framerate,
    skipFrames: config.skipFrames > 0 ? config.skipFrames : -1,
    constant: false,
    overlays: [],
    ...framePlan(config, trackId, tools),
    keyframePlan: () => null,
    open: (format, framerate) => {
      const opened = openEncoder(tools, config, (entry) =>
        Encoder.forFrames({
          name: entry.name,
          format,
          pixelFormat: entry.pixelFormat,
          uploads: entry.uploads,
          framerate,
          bitrate: 0,
          bufferBits: 0,
          bFrames: 0,
          gop: 1,
          // Frame threads would hold frames back.
          threads: 1,
          options: tuneImage(entry),
          offThread: format.width * format.height > OFF_THREAD_PIXELS,
        }),
      );
      const { width, height } = format;
      const track = videoTrackMessage({ codec: opened.entry.codec as VideoCodec, extraData: null, width, height, framerate, bitrate: 0 });
      return { opened, track };
    },
  };
}
