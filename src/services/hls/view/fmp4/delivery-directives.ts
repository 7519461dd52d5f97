/** Delivery directives of playlist requests (rfc8216bis §6.2.5). */
import type { TrackModel } from '../../wire/fmp4/stream-model.ts';

/** The client's directives; null if absent. */
export interface Directives {
  readonly msn: number | null;
  readonly part: number | null;
  readonly skip: boolean;
}

/** No position of a stream has more digits. */
const NUMBER = /^\d{1,15}$/;
/** A client may ask for two segments that do not exist yet. */
const MAX_ADVANCE_SEGMENT = 2;
/** … and for three seconds of parts. */
const ADVANCE_PART_SECONDS = 3;

/** Reads the directives; returns a text if they break the rules (answer 400). */
export function parseDirectives(query: (key: string) => string | undefined): Directives | string {
  const msn = query('_HLS_msn');
  const part = query('_HLS_part');
  if (msn !== undefined && !NUMBER.test(msn)) return '_HLS_msn must be a whole number of at most 15 digits';
  if (part !== undefined && !NUMBER.test(part)) return '_HLS_part must be a whole number of at most 15 digits';
  if (part !== undefined && msn === undefined) return '_HLS_part needs _HLS_msn beside it';
  const skip = query('_HLS_skip');
  return {
    msn: msn === undefined ? null : Number(msn),
    part: part === undefined ? null : Number(part),
    skip: skip === 'YES' || skip === 'v2',
  };
}

/** True if the playlist of `track` already has what `directives` request. */
export function isAvailable(track: TrackModel, directives: Directives): boolean {
  const { msn, part } = directives;
  if (msn === null) return true;
  const next = track.next;
  if (part === null) return msn < next.msn;
  const segment = track.segment(msn);
  if (segment === null) return msn < next.msn;
  if (segment.gap) return true;
  // A part after the end of a finished segment means the first part of the next segment.
  if (segment.duration !== null && part >= segment.parts.length && segment.path === null) {
    return next.msn > msn + 1 || (next.msn === msn + 1 && next.part > 0);
  }
  return segment.duration !== null || part < segment.parts.length;
}

/** The problem with directives that name media too far ahead (answer 400); null without one. */
export function tooFar(track: TrackModel, directives: Directives): string | null {
  const { msn, part } = directives;
  const last = track.last;
  if (msn === null || last === null) return null;
  if (msn > last.msn + MAX_ADVANCE_SEGMENT) return `_HLS_msn may be ${last.msn + MAX_ADVANCE_SEGMENT} at most now`;
  if (part === null || msn < last.msn) return null;
  const limit = track.partTarget < 1 ? Math.ceil(ADVANCE_PART_SECONDS / track.partTarget) : ADVANCE_PART_SECONDS;
  const lastPart = msn === last.msn ? last.parts.length - 1 : -1;
  return part > lastPart + limit ? `_HLS_part may be ${lastPart + limit} at most now` : null;
}
