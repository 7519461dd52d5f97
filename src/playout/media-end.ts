/** Audio that goes on for longer than this behind the last frame, seconds, belongs to the film; a little more is left by most encoders. */
const LONG_SOUND_S = 1;

/** Where media ends whose video and audio end there, seconds; `-Infinity` for what there is none of. Video decides, so that frames follow without a hole. */
export function endOfMedia(videoEnd: number, audioEnd: number): number {
  return videoEnd === Number.NEGATIVE_INFINITY || audioEnd > videoEnd + LONG_SOUND_S ? audioEnd : videoEnd;
}
