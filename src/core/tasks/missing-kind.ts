/** Finds the kind of media, audio or video, of which a task would carry nothing. */
import { isVideoTrack, type Track } from '../../media/track.ts';

/**
 * The video tracks of `chosen` where `kept` has no video, or else its audio tracks where `kept` has no audio; none when neither is missing.
 * Video without its audio, and audio without its video, look like something that works.
 */
export function missingKind(chosen: readonly Track[], kept: readonly Track[]): readonly Track[] {
  for (const type of ['video', 'audio'] as const) {
    const isKind = (track: Track): boolean => track.type === type && (track.type === 'audio' || isVideoTrack(track));
    if (!kept.some(isKind) && chosen.some(isKind)) return chosen.filter(isKind);
  }
  return [];
}
