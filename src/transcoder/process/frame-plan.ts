/** The form of frames for an encode before its encoder is open. */
import type { VideoCodec } from '../../media/codec.ts';
import { routedAccessUnit } from './encoded-track.ts';
import { type EncoderWish, wantedEncoders } from './encoder-opening.ts';
import type { FrameEncode } from './frame-output.ts';
import type { PipelineTools } from './pipeline.ts';

export function framePlan(
  encode: EncoderWish,
  trackId: number,
  tools: Pick<PipelineTools, 'hardware' | 'working'>,
): Pick<FrameEncode, 'pixelFormat' | 'role' | 'layout'> {
  const wanted = wantedEncoders(tools, encode);
  const codec = wanted?.codec as VideoCodec | undefined;
  return {
    pixelFormat: wanted?.candidates[0]?.pixelFormat ?? 'yuv420p',
    role: `encoder_${(codec ?? encode.codec ?? 'none').toLowerCase()}_${trackId}`,
    layout: (data) => routedAccessUnit(codec as VideoCodec, data),
  };
}
