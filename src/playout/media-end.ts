/** Audio that continues for longer than this behind the last frame, seconds, belongs to the film; most encoders leave a little more. */
const LONG_SOUND_S = 1;

/**
 * The end of media whose video and audio end at these times, seconds; `-Infinity` for a missing kind. Video decides, so that frames follow
 * without a gap.
 */
export function endOfMedia(videoEnd: number, audioEnd: number): number {
  return videoEnd === Number.NEGATIVE_INFINITY || audioEnd > videoEnd + LONG_SOUND_S ? audioEnd : videoEnd;
}
