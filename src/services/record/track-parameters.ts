/** Parameters of a track at the beginning of a file, which cannot change later. */
import type { Track } from '../../media/track.ts';

/** Whether packets of both tracks can follow each other in one file. */
export function hasSameParameters(a: Track, b: Track): boolean {
  if (a === b) return true;
  if (a.type === 'video' && b.type === 'video') {
    return a.codec === b.codec && a.width === b.width && a.height === b.height && isSameConfig(a.config, b.config);
  }
  if (a.type === 'audio' && b.type === 'audio') {
    return a.codec === b.codec && a.sampleRate === b.sampleRate && a.channels === b.channels && isSameConfig(a.config, b.config);
  }
  return a.type === b.type;
}

function isSameConfig(a: Uint8Array | null, b: Uint8Array | null): boolean {
  return a === b || (a !== null && b !== null && Buffer.compare(a, b) === 0);
}
