/** What audio or video a task would leave out altogether. */
import { isMovingPicture, type Track } from '../../media/track.ts';

/**
 * The moving frames or the audio of `chosen` where `kept` has none of that kind; none when nothing is missing so. Frames
 * without their audio, and audio without its frames, look like something that works.
 */
export function missingKind(chosen: readonly Track[], kept: readonly Track[]): readonly Track[] {
  for (const type of ['video', 'audio'] as const) {
    const isKind = (track: Track): boolean => track.type === type && (track.type === 'audio' || isMovingPicture(track));
    if (!kept.some(isKind) && chosen.some(isKind)) return chosen.filter(isKind);
  }
  return [];
}
