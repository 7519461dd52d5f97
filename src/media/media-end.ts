/** Audio that continues for longer than this behind the last frame, seconds, belongs to the media; most encoders leave a little more. */
const LONG_AUDIO_S = 1;

/**
 * The end of media whose video and audio end at these times, seconds; `-Infinity` for a missing kind. Video decides, so that frames follow
 * without a gap.
 */
export function endOfMedia(videoEnd: number, audioEnd: number): number {
  return videoEnd === Number.NEGATIVE_INFINITY || audioEnd > videoEnd + LONG_AUDIO_S ? audioEnd : videoEnd;
}
