/** Distance between decoding and presentation order. */
import { type AudioCodec, VideoCodec } from '../media/codec.ts';
import { describeVideo, parameterSetsOfConfig } from './describe.ts';
import { parseH264Sps } from './h264/sps.ts';

/** For streams that reorder frames without saying by how many. */
const USUAL_REORDERING = 2;

/** Maximum number of frames between decoding and presentation order. */
export function reorderingDepth(codec: VideoCodec | AudioCodec, config: Uint8Array | null): number {
  if (config === null || (codec !== VideoCodec.H264 && codec !== VideoCodec.H265)) return 0;
  if (!describeVideo(codec, config).hasReordering) return 0;
  const [sps] = parameterSetsOfConfig(codec, config).sps;
  return codec === VideoCodec.H264 && sps !== undefined ? (parseH264Sps(sps).maxReorderFrames ?? USUAL_REORDERING) : USUAL_REORDERING;
}
