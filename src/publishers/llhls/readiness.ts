/**
 * Decides when players can start. The first playlist fixes TARGETDURATION and PART-HOLD-BACK for good, so it
 * waits until they can be known: three parts in every track (PART-HOLD-BACK) and one whole GOP of the leading
 * track. That is min(1.5 s, one GOP) instead of the two segments the reference server waits for.
 */

/** PART-HOLD-BACK is three part targets (rfc8216bis §4.4.3.8): a player needs as many to start. */
export const HOLD_BACK_PARTS = 3;
/** Seconds of the leading track after which an unknown GOP counts as long. */
const GOP_WAIT = 8;
/** Seconds of the leading track after which tracks without media are left out. */
const TRACK_WAIT = 10;

/** What is known of one track. */
export interface TrackProgress {
  readonly leads: boolean;
  readonly video: boolean;
  readonly parts: number;
  /** Seconds in all its parts. */
  readonly duration: number;
  readonly gop: number | null;
}

/** True when the first playlists may be given out. */
export function isPlayable(tracks: readonly TrackProgress[]): boolean {
  const leader = tracks.find((track) => track.leads);
  if (leader === undefined || leader.parts < HOLD_BACK_PARTS) return false;
  if (leader.video && leader.gop === null && leader.duration < GOP_WAIT) return false;
  return leader.duration >= TRACK_WAIT || tracks.every((track) => track.parts >= HOLD_BACK_PARTS);
}
