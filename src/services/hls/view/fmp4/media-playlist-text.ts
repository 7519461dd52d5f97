/** Renders media playlists (rfc8216bis §4.4.3–4.4.5) once for all clients: the query of a client is inserted afterwards. */
import { quoted, seconds } from '../../../../playlist/attribute-list.ts';
import {
  DATE_RANGE_TAG,
  GAP,
  serializePart,
  serializePartInf,
  serializePreloadHint,
  serializeProgramDateTime,
  serializeServerControl,
  serializeSkip,
} from '../../../../playlist/media-tags.ts';
import { ResourceNames } from '../../wire/fmp4/resource-name.ts';
import type { SegmentModel, StreamModel, TrackModel } from '../../wire/fmp4/stream-model.ts';
import { TAIL_MARK } from '../../wire/fmp4/update.ts';
import { HOLD_BACK_PARTS } from '../../wire/settings.ts';
import type { LlhlsViewSettings } from '../../wire/view-settings.ts';

/** EXT-X-MAP outside of I-frame playlists needs 6 (§8), EXT-X-SKIP 9. */
const VERSION = 6;
const VERSION_WITH_SKIP = 9;
/** Number of segments that list their parts, including the growing one; more only if these are too short for the hold-back. */
const SEGMENTS_WITH_PARTS = 3;
const HOLD_BACK_REACH = 2;
/** Parts further back should not be listed (§6.2.2). */
const PARTS_TARGET_DURATIONS = 3;
/** The smallest skip boundary allowed (§4.4.3.8). */
const SKIP_BOUNDARY_TARGET_DURATIONS = 6;

/** The form of a playlist that a client requested. */
export interface PlaylistForm {
  /** Complete segments only, nothing of low latency. */
  readonly legacy: boolean;
  /** Everything held instead of the last `segmentCount` segments. */
  readonly rewind: boolean;
  /** A delta update is wanted. */
  readonly skip: boolean;
}

/** Renders the playlists of one track. */
export class MediaPlaylistText {
  readonly #model: StreamModel;
  readonly #track: TrackModel;
  readonly #settings: LlhlsViewSettings;
  readonly #names: ResourceNames;

  constructor(model: StreamModel, track: TrackModel, settings: LlhlsViewSettings) {
    this.#model = model;
    this.#track = track;
    this.#settings = settings;
    this.#names = new ResourceNames(track, settings.runMark);
  }

  /** The playlist without rendition reports and end; `TAIL_MARK` follows every URI. */
  render(form: PlaylistForm): string {
    const listed = this.#listed(form);
    const boundary = form.legacy ? null : this.#skipBoundary(form);
    const skipped = form.skip && boundary !== null ? countSkippable(listed, boundary) : 0;
    let text = `#EXTM3U\n#EXT-X-VERSION:${skipped > 0 ? VERSION_WITH_SKIP : VERSION}\n`;
    text += `#EXT-X-TARGETDURATION:${this.#model.targetDuration}\n`;
    if (!form.legacy) text += this.#lowLatencyHeader(boundary);
    text += this.#sequenceNumbers(listed);
    // Date ranges are not skipped, because CAN-SKIP-DATERANGES is not announced.
    if (skipped > 0) text += serializeSkip(skipped) + dateRangesOf(listed.slice(0, skipped));
    text += this.#segments(listed, skipped, form);
    return text;
  }

  /** URI of this track's playlist with `TAIL_MARK`. */
  get uri(): string {
    return this.#names.chunklist + TAIL_MARK;
  }

  #listed(form: PlaylistForm): readonly SegmentModel[] {
    const track = this.#track;
    const all = form.legacy && track.open !== null ? track.segments.slice(0, -1) : track.segments;
    if (form.rewind) return all;
    return all.slice(Math.max(0, track.completeCount - this.#settings.segmentCount));
  }

  /** Announced only when playlists get long enough to skip anything. Constant for a given form. */
  #skipBoundary(form: PlaylistForm): number | null {
    const boundary = SKIP_BOUNDARY_TARGET_DURATIONS * this.#model.targetDuration;
    const count = form.rewind ? this.#settings.rewindSegmentCount : this.#settings.segmentCount;
    return count * this.#model.targetDuration > boundary + this.#model.targetDuration ? boundary : null;
  }

  #lowLatencyHeader(canSkipUntil: number | null): string {
    const partHoldBack = Math.max(this.#model.partHoldBack, HOLD_BACK_PARTS * this.#track.partTarget);
    const control = { canBlockReload: true, canSkipUntil, holdBack: null, partHoldBack };
    return serializeServerControl(control) + serializePartInf(this.#track.partTarget);
  }

  #sequenceNumbers(listed: readonly SegmentModel[]): string {
    const first = listed[0];
    let text = `#EXT-X-MEDIA-SEQUENCE:${first?.msn ?? this.#track.next.msn}\n`;
    let discontinuities = this.#track.discontinuitySequence;
    for (const segment of this.#track.segments) {
      if (segment === first) break;
      if (segment.discontinuity) discontinuities += 1;
    }
    if (discontinuities > 0) text += `#EXT-X-DISCONTINUITY-SEQUENCE:${discontinuities}\n`;
    return text;
  }

  #segments(listed: readonly SegmentModel[], skipped: number, form: PlaylistForm): string {
    const partsFrom = form.legacy ? listed.length : this.#firstWithParts(listed);
    let text = '';
    let generation = -1;
    for (let i = skipped; i < listed.length; i++) {
      const segment = listed[i];
      if (segment === undefined || isEmpty(segment)) continue;
      if (segment.discontinuity) text += '#EXT-X-DISCONTINUITY\n';
      if (segment.generation !== generation && this.#track.type !== 'subtitle') {
        generation = segment.generation;
        text += `#EXT-X-MAP:URI=${quoted(this.#names.init(generation) + TAIL_MARK)}\n`;
      }
      text += this.#segmentLines(segment, i >= partsFrom);
    }
    if (!form.legacy && !this.#model.concluded && this.#settings.enablePreloadHint) text += this.#preloadHint();
    return text;
  }

  #firstWithParts(listed: readonly SegmentModel[]): number {
    const { partHoldBack, targetDuration } = this.#model;
    const reach = Math.max(partHoldBack, Math.min(HOLD_BACK_REACH * partHoldBack, PARTS_TARGET_DURATIONS * targetDuration));
    let index = listed.length;
    let distance = 0;
    for (let count = 0; index > 0 && (count < SEGMENTS_WITH_PARTS || distance < reach); index--) {
      const segment = listed[index - 1];
      if (segment === undefined || isEmpty(segment)) continue;
      count += 1;
      distance += durationSoFar(segment);
    }
    return index;
  }

  /** Lines of complete segments never change: they are kept. */
  #segmentLines(segment: SegmentModel, withParts: boolean): string {
    const kept = withParts ? segment.textWithParts : segment.text;
    if (kept !== null) return kept;
    let text = segment.tags + serializeProgramDateTime(segment.startTime);
    if (withParts) {
      // Printed so that they add up: hls.js adds them, and waits for missing media.
      let [end, listed] = [0, 0];
      segment.parts.forEach((part, index) => {
        end += part.duration;
        const duration = Math.round(end * 1e6) / 1e6 - listed;
        listed += duration;
        text += serializePart({ ...part, duration, uri: this.#names.part(segment.msn, index) + TAIL_MARK });
      });
    }
    if (segment.duration === null) return text;
    if (segment.gap) text += GAP;
    text += `#EXTINF:${seconds(segment.duration)},\n${this.#names.segment(segment.msn)}${TAIL_MARK}\n`;
    if (withParts) segment.textWithParts = text;
    else segment.text = text;
    return text;
  }

  #preloadHint(): string {
    const { msn, part } = this.#track.next;
    const ends = this.#track.open?.parts.at(-1)?.likelyLast === true;
    const uri = ends ? this.#names.part(msn + 1, 0) : this.#names.part(msn, part);
    return serializePreloadHint({ type: 'PART', uri: uri + TAIL_MARK });
  }
}

/** The date ranges that begin with `segments`, without the lines that are about the segments themselves. */
function dateRangesOf(segments: readonly SegmentModel[]): string {
  let text = '';
  for (const { tags } of segments) {
    if (tags === '') continue;
    for (const line of tags.split('\n')) if (line.startsWith(DATE_RANGE_TAG)) text += `${line}\n`;
  }
  return text;
}

/** The segment is open and has no part yet. */
function isEmpty(segment: SegmentModel): boolean {
  return segment.duration === null && segment.parts.length === 0;
}

function durationSoFar(segment: SegmentModel | undefined): number {
  if (segment === undefined) return 0;
  return segment.duration ?? segment.parts.reduce((sum, part) => sum + part.duration, 0);
}

/** Segments whose end is further from the live edge than `boundary` seconds. */
function countSkippable(listed: readonly SegmentModel[], boundary: number): number {
  let distance = 0;
  for (let i = listed.length - 1; i >= 0; i--) {
    if (distance > boundary) return i + 1;
    distance += durationSoFar(listed[i]);
  }
  return 0;
}
