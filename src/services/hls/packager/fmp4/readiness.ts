/**
 * Decides when players can start. The first playlist fixes TARGETDURATION and PART-HOLD-BACK for good and must
 * have a complete segment (hls.js takes a playlist with parts alone for an empty one). So it waits for three
 * parts (PART-HOLD-BACK) and one segment in every track. The first segment is cut short to that end: the wait is
 * 1.5 s or one GOP, where the reference server waits for two whole segments.
 */
import { HOLD_BACK_PARTS } from '../../wire/settings.ts';

/** Seconds of the leading track after which tracks without media are left out. */
const TRACK_WAIT = 10;

/** Facts about one track. */
export interface TrackProgress {
  readonly leads: boolean;
  readonly parts: number;
  /** Complete segments. */
  readonly segments: number;
  /** Seconds in all its parts. */
  readonly duration: number;
}

/** True when the first playlists may be served. */
export function canOpenPlaylists(tracks: readonly TrackProgress[]): boolean {
  const leader = tracks.find((track) => track.leads);
  if (leader === undefined || !canStart(leader)) return false;
  return leader.duration >= TRACK_WAIT || tracks.every(canStart);
}

function canStart(track: TrackProgress): boolean {
  return track.parts >= HOLD_BACK_PARTS && track.segments > 0;
}
