/**
 * Checks successive media playlists of one track, and their media, against rfc8216bis. Violations are collected as sentences in `problems`.
 */
import { findBox, readBoxes } from '../../src/containers/isobmff/box-reader.ts';
import type { PartTag } from '../../src/playlist/media-tags.ts';
import { type ListedSegment, type MediaPlaylist, parseMediaPlaylist } from '../support/playlist/media-playlist.ts';

/** Numbers are printed with six decimals. */
const PRINT_ERROR = 2e-6;
const MIN_PART = 0.85;
/** Tolerance of EXTINF against the sum of parts, and of date-times against durations: about a frame. */
const DURATION_TOLERANCE = 0.05;
const PARTS_WITHIN = 3;
const SKIP_BOUNDARY = 6;

interface KnownSegment {
  readonly parts: PartTag[];
  uri: string | null;
  duration: number | null;
  readonly programDateTime: number | null;
  readonly discontinuities: number;
  readonly map: string | null;
}

export class LlhlsValidator {
  readonly problems: string[] = [];
  readonly #segments = new Map<number, KnownSegment>();
  #previous: MediaPlaylist | null = null;

  /** Judges the next playlist and returns it parsed; a delta update must follow a full playlist. */
  observe(text: string): MediaPlaylist {
    const playlist = parseMediaPlaylist(text);
    if (/\n\n/.test(text)) this.#report('blank lines');
    this.#checkHeader(playlist);
    this.#checkConstants(playlist);
    this.#checkVersion(playlist);
    this.#checkParts(playlist);
    this.#checkSegments(playlist);
    this.#checkRemoval(playlist);
    this.#checkDelta(playlist);
    this.#checkHint(playlist);
    this.#previous = playlist;
    return playlist;
  }

  /** Judges the bytes of a part: one fragment, as long as listed. Returns its decode times in seconds. */
  observePart(part: PartTag, bytes: Uint8Array, timescale: number): { start: number; end: number } {
    const boxes = readBoxes(bytes).filter((box) => box.type !== 'emsg');
    if (boxes.map((box) => box.type).join() !== 'moof,mdat') this.#report(`${part.uri} holds ${boxes.map((box) => box.type).join()}`);
    const { start, duration, firstIsSync } = readFragment(bytes);
    if (part.independent && !firstIsSync.some((sync) => sync)) this.#report(`${part.uri} is called independent without a sync sample`);
    if (!part.independent && firstIsSync.some((sync) => sync)) this.#report(`${part.uri} has a sync sample and is not called independent`);
    if (Math.abs(duration / timescale - part.duration) > DURATION_TOLERANCE) {
      this.#report(`${part.uri} is listed with ${part.duration} s and holds ${duration / timescale} s`);
    }
    return { start: start / timescale, end: (start + duration) / timescale };
  }

  #report(problem: string): void {
    this.problems.push(problem);
  }

  #checkHeader(playlist: MediaPlaylist): void {
    const { targetDuration, partTarget, serverControl } = playlist;
    if (targetDuration === null || !Number.isInteger(targetDuration) || targetDuration < 1) {
      this.#report(`TARGETDURATION ${targetDuration}`);
      return;
    }
    if (partTarget === null) {
      if (playlist.segments.some((segment) => segment.parts.length > 0)) this.#report('parts without EXT-X-PART-INF');
      return;
    }
    if (partTarget > targetDuration) this.#report('PART-TARGET exceeds TARGETDURATION');
    const holdBack = serverControl?.partHoldBack ?? null;
    if (holdBack === null) this.#report('PART-INF without PART-HOLD-BACK');
    else if (holdBack < 3 * partTarget - PRINT_ERROR) this.#report(`PART-HOLD-BACK ${holdBack} below 3 × ${partTarget}`);
    const skip = serverControl?.canSkipUntil ?? null;
    if (skip !== null && skip < SKIP_BOUNDARY * targetDuration) this.#report(`CAN-SKIP-UNTIL ${skip} below 6 × ${targetDuration}`);
    const plain = serverControl?.holdBack ?? null;
    if (plain !== null && plain < 3 * targetDuration) this.#report(`HOLD-BACK ${plain} below 3 × ${targetDuration}`);
  }

  #checkConstants(playlist: MediaPlaylist): void {
    const previous = this.#previous;
    if (previous === null) return;
    if (playlist.targetDuration !== previous.targetDuration) this.#report('TARGETDURATION changed');
    if (playlist.partTarget !== previous.partTarget) this.#report('PART-TARGET changed');
    if (JSON.stringify(playlist.serverControl) !== JSON.stringify(previous.serverControl)) this.#report('SERVER-CONTROL changed');
    if (previous.ended) this.#report('the playlist changed after its end');
    if (playlist.mediaSequence < previous.mediaSequence) this.#report('MEDIA-SEQUENCE decreased');
    if (lastMsn(playlist) < lastMsn(previous)) this.#report('segments disappeared from the end');
  }

  #checkVersion(playlist: MediaPlaylist): void {
    const needed = playlist.skippedSegments > 0 ? 9 : playlist.segments.some((segment) => segment.map !== null) ? 6 : 3;
    if (playlist.version < needed) this.#report(`version ${playlist.version} where ${needed} is needed`);
  }

  #checkParts(playlist: MediaPlaylist): void {
    const { partTarget, targetDuration } = playlist;
    if (partTarget === null || targetDuration === null) return;
    for (const segment of playlist.segments) {
      segment.parts.forEach((part, index) => {
        if (part.duration > partTarget + PRINT_ERROR) this.#report(`${part.uri} lasts ${part.duration} s, PART-TARGET is ${partTarget}`);
        const last = segment.duration !== null && index === segment.parts.length - 1;
        // The last listed part of a growing segment may turn out to be its last part.
        const open = segment.duration === null && index === segment.parts.length - 1;
        if (!last && !open && part.duration < MIN_PART * partTarget - PRINT_ERROR) {
          this.#report(`${part.uri} lasts ${part.duration} s, less than 85 % of ${partTarget}`);
        }
      });
    }
    let fromEnd = 0;
    for (const segment of [...playlist.segments].reverse()) {
      const near = fromEnd < (playlist.serverControl?.partHoldBack ?? 0);
      if (near && segment.parts.length === 0 && !segment.gap) this.#report(`segment ${segment.msn} near the live edge lists no parts`);
      const far = fromEnd >= PARTS_WITHIN * targetDuration;
      if (far && segment.parts.length > 0) this.#report(`segment ${segment.msn} far from the live edge lists parts`);
      fromEnd += segmentDuration(segment);
    }
  }

  #checkSegments(playlist: MediaPlaylist): void {
    let discontinuities = playlist.discontinuitySequence;
    playlist.segments.forEach((segment, index) => {
      // In a delta update the flags of skipped segments are unknown, so no absolute count is possible.
      if (segment.discontinuity) discontinuities += 1;
      this.#checkOne(playlist, segment, playlist.skippedSegments > 0 ? null : discontinuities);
      const next = playlist.segments[index + 1];
      if (segment.duration === null && next !== undefined) this.#report(`segment ${segment.msn} has no EXTINF but a successor`);
      const isText = (segment.uri ?? segment.parts[0]?.uri ?? '').includes('.vtt');
      if ((segment.map === null) !== isText) this.#report(`segment ${segment.msn} has ${isText ? 'an' : 'no'} EXT-X-MAP`);
      this.#checkDateTime(segment, next);
    });
  }

  #checkOne(playlist: MediaPlaylist, segment: ListedSegment, discontinuities: number | null): void {
    if (segment.duration !== null && playlist.targetDuration !== null && Math.round(segment.duration) > playlist.targetDuration) {
      this.#report(`segment ${segment.msn} lasts ${segment.duration} s, TARGETDURATION is ${playlist.targetDuration}`);
    }
    if (segment.duration !== null && segment.parts.length > 0) {
      const sum = segment.parts.reduce((total, part) => total + part.duration, 0);
      if (Math.abs(sum - segment.duration) > DURATION_TOLERANCE)
        this.#report(`parts of segment ${segment.msn} add up to ${sum}, not ${segment.duration}`);
    }
    const known = this.#segments.get(segment.msn);
    if (known === undefined) {
      this.#segments.set(segment.msn, { ...segment, parts: [...segment.parts], discontinuities: discontinuities ?? -1 });
      return;
    }
    if (known.uri !== null && (known.uri !== segment.uri || known.duration !== segment.duration))
      this.#report(`segment ${segment.msn} changed`);
    if (known.programDateTime !== segment.programDateTime) this.#report(`date-time of segment ${segment.msn} changed`);
    if (known.map !== segment.map) this.#report(`EXT-X-MAP of segment ${segment.msn} changed`);
    if (discontinuities !== null && known.discontinuities >= 0 && known.discontinuities !== discontinuities) {
      this.#report(`segment ${segment.msn} moved to another discontinuity sequence`);
    }
    segment.parts.forEach((part, index) => {
      const before = known.parts[index];
      if (before === undefined) {
        if (known.uri !== null) this.#report(`segment ${segment.msn} grew after its end`);
        known.parts.push(part);
      } else if (before.uri !== part.uri || before.duration !== part.duration || before.independent !== part.independent) {
        this.#report(`part ${part.uri} changed`);
      }
    });
    known.uri = segment.uri;
    known.duration = segment.duration;
  }

  #checkDateTime(segment: ListedSegment, next: ListedSegment | undefined): void {
    if (segment.programDateTime === null) {
      this.#report(`segment ${segment.msn} has no date-time`);
      return;
    }
    if (next === undefined || next.programDateTime === null || next.discontinuity || segment.duration === null) return;
    const distance = (next.programDateTime - segment.programDateTime) / 1000;
    if (Math.abs(distance - segment.duration) > DURATION_TOLERANCE) {
      this.#report(`segment ${segment.msn} lasts ${segment.duration} s, the next one begins ${distance} s later`);
    }
  }

  /** §6.2.2: a server must not shrink a playlist below three target durations by removing segments. */
  #checkRemoval(playlist: MediaPlaylist): void {
    const previous = this.#previous;
    if (previous === null || playlist.targetDuration === null || playlist.mediaSequence === previous.mediaSequence) return;
    if (playlist.skippedSegments > 0) return;
    const total = playlist.segments.reduce((sum, segment) => sum + segmentDuration(segment), 0);
    if (total < 3 * playlist.targetDuration) this.#report(`only ${total} s left after removing segments`);
  }

  #checkDelta(playlist: MediaPlaylist): void {
    if (playlist.skippedSegments === 0) return;
    const boundary = playlist.serverControl?.canSkipUntil ?? null;
    if (boundary === null) {
      this.#report('EXT-X-SKIP without CAN-SKIP-UNTIL');
      return;
    }
    const listed = playlist.segments.reduce((sum, segment) => sum + segmentDuration(segment), 0);
    if (listed < boundary) this.#report(`a delta update of ${listed} s skips into the boundary of ${boundary} s`);
    for (let msn = playlist.mediaSequence; msn < playlist.mediaSequence + playlist.skippedSegments; msn++) {
      if (!this.#segments.has(msn)) this.#report(`skipped segment ${msn} was never listed`);
    }
  }

  #checkHint(playlist: MediaPlaylist): void {
    const uri = playlist.preloadHint?.uri;
    if (uri === undefined) return;
    if (playlist.ended) this.#report('a preload hint in a playlist that ended');
    if (playlist.segments.some((segment) => segment.parts.some((part) => part.uri === uri))) this.#report(`${uri} is hinted and listed`);
  }
}

function segmentDuration(segment: ListedSegment): number {
  return segment.duration ?? segment.parts.reduce((sum, part) => sum + part.duration, 0);
}

function lastMsn(playlist: MediaPlaylist): number {
  return playlist.segments.at(-1)?.msn ?? playlist.mediaSequence - 1;
}

const TRUN_DURATION = 0x100;
const TRUN_SIZE = 0x200;
const TRUN_FLAGS = 0x400;
const TRUN_OFFSET = 0x800;
const NON_SYNC = 0x01_0000;

/** Start and duration (ticks) of the fragment in `bytes`, its sync samples, and the presentation times of its samples. */
export function readFragment(bytes: Uint8Array): {
  start: number;
  duration: number;
  firstIsSync: boolean[];
  shown: number[];
  samples: number;
} {
  const body = (path: string): DataView => {
    const box = findBox(bytes, ['moof', 'traf', path]);
    if (box === null) throw new Error(`no ${path}`);
    return new DataView(box.body.buffer, box.body.byteOffset, box.body.byteLength);
  };
  const tfhd = body('tfhd');
  const hasDuration = (tfhd.getUint32(0) & 0x08) !== 0;
  const defaultDuration = hasDuration ? tfhd.getUint32(8) : 0;
  const defaultFlags = tfhd.getUint32(hasDuration ? 12 : 8);
  const trun = body('trun');
  const flags = trun.getUint32(0) & 0xff_ffff;
  const count = trun.getUint32(4);
  const start = Number(body('tfdt').getBigUint64(4));
  let at = 12;
  let duration = 0;
  const firstIsSync: boolean[] = [];
  const shown: number[] = [];
  for (let i = 0; i < count; i++) {
    const decoded = start + duration;
    duration += (flags & TRUN_DURATION) !== 0 ? trun.getUint32(at) : defaultDuration;
    if ((flags & TRUN_DURATION) !== 0) at += 4;
    if ((flags & TRUN_SIZE) !== 0) at += 4;
    const sampleFlags = (flags & TRUN_FLAGS) !== 0 ? trun.getUint32(at) : defaultFlags;
    if ((flags & TRUN_FLAGS) !== 0) at += 4;
    shown.push(decoded + ((flags & TRUN_OFFSET) !== 0 ? trun.getInt32(at) : 0));
    if ((flags & TRUN_OFFSET) !== 0) at += 4;
    firstIsSync.push((sampleFlags & NON_SYNC) === 0);
  }
  return { start, duration, firstIsSync, shown, samples: count };
}
