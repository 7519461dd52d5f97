/** The model of one served stream: built from updates, equal in the packager and in every delivery thread. */
import type { Span } from '../../../../delivery/feed/messages.ts';
import type { LlhlsUpdate, MultivariantText } from '../../wire/fmp4/update.ts';
import type { MediaType } from './resource-name.ts';

/** A part (EXT-X-PART) with the places of its bytes. */
export interface PartModel {
  /** Seconds. */
  readonly duration: number;
  readonly independent: boolean;
  readonly likelyLast: boolean;
  readonly spans: readonly Span[];
}

/**
 * A segment from its first part on. Only updates change its members, except for those that views keep: `spans`, `text`, `textWithParts`.
 */
export interface SegmentModel {
  readonly msn: number;
  /** ms since the epoch. */
  readonly startTime: number;
  readonly generation: number;
  readonly discontinuity: boolean;
  /** Has no media and never will. */
  readonly gap: boolean;
  /** Whole lines of the playlist before the segment. */
  readonly tags: string;
  readonly parts: PartModel[];
  /** The bytes of a complete segment that is not the sum of its parts; null if it is. */
  whole: readonly Span[] | null;
  /** Spans of all parts; null until the complete segment is requested. */
  spans: readonly Span[] | null;
  /** Seconds; null while the segment grows. */
  duration: number | null;
  /** File that holds the segment; null while it is in memory. */
  path: string | null;
  /** Rendered lines, without and with parts; set when the segment is complete. */
  text: string | null;
  textWithParts: string | null;
}

/** One track: consecutive segments, the last of which may be growing. */
export class TrackModel {
  readonly id: number;
  readonly type: MediaType;
  readonly inits = new Map<number, Uint8Array>();
  readonly segments: SegmentModel[] = [];
  /** Seconds; 0 until it is chosen. */
  partTarget = 0;
  /** The segment that left the playlists last: still served to clients that know it. */
  retired: SegmentModel | null = null;
  /** Discontinuities in segments that left the playlists. */
  discontinuitySequence = 0;
  /** Grows with every change. */
  version = 0;

  constructor(id: number, type: MediaType) {
    this.id = id;
    this.type = type;
  }

  /** The growing segment, or null between two segments. */
  get open(): SegmentModel | null {
    const last = this.segments.at(-1);
    return last !== undefined && last.duration === null ? last : null;
  }

  /** Segments with their EXTINF. */
  get completeCount(): number {
    return this.segments.length - (this.open === null ? 0 : 1);
  }

  /** The last segment that has media, as playlists and rendition reports count; null before the first part. */
  get last(): SegmentModel | null {
    const last = this.segments.at(-1) ?? null;
    return last !== null && last.parts.length === 0 && last.duration === null ? (this.segments.at(-2) ?? null) : last;
  }

  /** Position of the next part. */
  get next(): { msn: number; part: number } {
    const last = this.segments.at(-1);
    if (last === undefined) return { msn: 0, part: 0 };
    return last.duration === null ? { msn: last.msn, part: last.parts.length } : { msn: last.msn + 1, part: 0 };
  }

  segment(msn: number): SegmentModel | null {
    if (this.retired?.msn === msn) return this.retired;
    const first = this.segments[0];
    return first === undefined ? null : (this.segments[msn - first.msn] ?? null);
  }
}

/** Changes by `apply` alone. Media is in it as spans: the caller of `apply` stores and releases the bytes. */
export class StreamModel {
  readonly tracks = new Map<number, TrackModel>();
  readonly multivariants = new Map<string, MultivariantText>();
  /** Tracks are known. */
  started = false;
  playable = false;
  concluded = false;
  /** Seconds. */
  targetDuration = 0;
  partHoldBack = 0;
  /** Grows with every change. */
  version = 0;

  /** Follows what happened. Updates for unknown tracks are ignored. */
  apply(update: LlhlsUpdate): void {
    this.version += 1;
    switch (update.type) {
      case 'multivariant':
        this.started = true;
        this.multivariants.clear();
        for (const playlist of update.playlists) this.multivariants.set(playlist.fileName, playlist);
        return;
      case 'playable':
        this.playable = true;
        this.targetDuration = update.targetDuration;
        this.partHoldBack = update.partHoldBack;
        for (const track of this.tracks.values()) track.version += 1;
        return;
      case 'conclude':
        this.concluded = true;
        for (const track of this.tracks.values()) track.version += 1;
        return;
      case 'track':
        this.tracks.set(update.trackId, new TrackModel(update.trackId, update.mediaType));
        return;
      case 'track-gone':
        this.tracks.delete(update.trackId);
        return;
      default: {
        const track = this.tracks.get(update.trackId);
        if (track === undefined) return;
        track.version += 1;
        applyToTrack(track, update);
      }
    }
  }

  /** Updates that rebuild this model somewhere else. */
  snapshot(): LlhlsUpdate[] {
    const updates: LlhlsUpdate[] = [];
    if (this.started) updates.push({ type: 'multivariant', playlists: [...this.multivariants.values()] });
    for (const track of this.tracks.values()) updates.push(...trackSnapshot(track));
    if (this.playable) updates.push({ type: 'playable', targetDuration: this.targetDuration, partHoldBack: this.partHoldBack });
    if (this.concluded) updates.push({ type: 'conclude' });
    return updates;
  }
}

type TrackUpdate = Exclude<LlhlsUpdate, { type: 'multivariant' | 'playable' | 'conclude' | 'track' | 'track-gone' }>;

function applyToTrack(track: TrackModel, update: TrackUpdate): void {
  switch (update.type) {
    case 'part-target':
      track.partTarget = update.seconds;
      return;
    case 'init':
      track.inits.set(update.generation, update.bytes);
      return;
    case 'discontinuities':
      track.discontinuitySequence = update.count;
      return;
    case 'segment-open':
      track.segments.push({
        msn: update.msn,
        startTime: update.startTime,
        generation: update.generation,
        discontinuity: update.discontinuity,
        gap: update.gap,
        tags: update.tags,
        parts: [],
        whole: null,
        spans: null,
        duration: null,
        path: null,
        text: null,
        textWithParts: null,
      });
      return;
    case 'part':
      track.open?.parts.push(update);
      return;
    case 'segment-close':
      closeSegment(track.open, update);
      return;
    case 'retire':
      retireOldest(track);
      return;
    case 'archive': {
      const segment = track.segment(update.msn);
      if (segment === null) return;
      segment.path = update.path;
      segment.parts.length = 0;
      segment.whole = null;
      segment.spans = null;
    }
  }
}

function closeSegment(open: SegmentModel | null, { duration, whole }: Extract<TrackUpdate, { type: 'segment-close' }>): void {
  if (open === null) return;
  open.duration = duration;
  open.whole = whole ?? null;
}

function retireOldest(track: TrackModel): void {
  const oldest = track.segments.shift() ?? null;
  if (oldest?.discontinuity === true) track.discontinuitySequence += 1;
  track.retired = oldest;
  const generations = track.segments.map((segment) => segment.generation);
  const first = Math.min(oldest?.generation ?? 0, ...generations);
  for (const generation of track.inits.keys()) if (generation < first) track.inits.delete(generation);
}

function trackSnapshot(track: TrackModel): LlhlsUpdate[] {
  const trackId = track.id;
  const updates: LlhlsUpdate[] = [{ type: 'track', trackId, mediaType: track.type }];
  if (track.partTarget > 0) updates.push({ type: 'part-target', trackId, seconds: track.partTarget });
  for (const [generation, bytes] of track.inits) updates.push({ type: 'init', trackId, generation, bytes });
  for (const segment of track.segments) {
    const { msn, startTime, generation, discontinuity, gap, tags } = segment;
    updates.push({ type: 'segment-open', trackId, msn, startTime, generation, discontinuity, gap, tags });
    segment.parts.forEach((part, index) => {
      updates.push({ ...part, type: 'part', trackId, msn, part: index });
    });
    const { duration, whole } = segment;
    if (duration !== null) updates.push({ type: 'segment-close', trackId, duration, ...(whole !== null && { whole }) });
    if (segment.path !== null) updates.push({ type: 'archive', trackId, msn, path: segment.path });
  }
  updates.push({ type: 'discontinuities', trackId, count: track.discontinuitySequence });
  return updates;
}
