/** Cues and splices of one stream: they cut segments and add lines to playlists. */
import { retimeSplice } from '../../../containers/markers/splice-info.ts';
import { type BreakMarker, readMarker } from '../../../core/break-marker.ts';
import type { Packet } from '../../../media/packet.ts';
import { toMilliseconds } from '../../../media/timebase.ts';
import { EventFormat } from '../../../media/timed-event.ts';
import { CUE_IN, serializeCueCont, serializeCueOut, serializeSpliceRange } from '../../../playlist/media-tags.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';

/** A keyframe up to this long, ms, before a marker belongs to the marker, because timebases round. */
const ROUNDING_MS = 20;
/** Limit of markers that wait for the start of a segment; the oldest are dropped. */
const MAX_WAITING = 32;
/** Maximum of breaks whose beginnings are remembered for their ends. */
const MAX_BREAKS = 64;
/** A break that is overdue for this long, ms, is ended: the marker of its end was lost. */
const MAX_OVERDUE_MS = 15_000;
const TICKS_PER_MS = 90;

interface WaitingMarker {
  /** ms of media time. */
  readonly time: number;
  readonly marker: BreakMarker;
  readonly data: Uint8Array;
}

/** The open break of CUE markers. */
interface OpenBreak {
  /** Media time, ms. */
  readonly start: number;
  /** ms; 0: not known. */
  readonly duration: number;
}

/** One for each packaged stream. Costs nothing without markers. */
export class BreakMarkers {
  /** Markers dropped because too many waited. */
  dropped = 0;
  #waiting: WaitingMarker[] = [];
  #open: OpenBreak | null = null;
  /** Wall clock, ms, at which splices began, by id. */
  readonly #begun = new Map<number, number>();

  /** Takes a marker of the data track; other packets are ignored. */
  push(packet: Packet): void {
    const { event, data, pts, track } = packet;
    if (event === undefined) return;
    try {
      const marker = readMarker(event.format, data);
      if (marker === null) return;
      this.#waiting.push({ time: toMilliseconds(pts, track.timebase), marker, data });
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return;
    }
    this.#waiting.sort((a, b) => a.time - b.time);
    if (this.#waiting.length <= MAX_WAITING) return;
    this.#waiting.shift();
    this.dropped += 1;
  }

  /** The earliest time, ms, at which the next segment must begin; infinite if there is no marker. */
  get next(): number {
    const first = this.#waiting.find(({ marker }) => marker.type !== 'cont');
    return first === undefined ? Number.POSITIVE_INFINITY : first.time - ROUNDING_MS;
  }

  /**
   * Playlist lines for all markers up to `time` (ms of media time; `wallTime` ms since the epoch), at which a segment begins. Call it once
   * for each segment, in order.
   */
  take(time: number, wallTime: number): string {
    if (this.#waiting.length === 0 && this.#open === null) return '';
    const due = this.#waiting.filter((waiting) => waiting.time <= time + ROUNDING_MS);
    this.#waiting = this.#waiting.filter((waiting) => !due.includes(waiting));
    let text = '';
    let isCued = false;
    for (const each of due) {
      isCued ||= each.marker.format === EventFormat.CUE;
      text += each.marker.format === EventFormat.CUE ? this.#cue(each, time) : this.#splice(each, time, wallTime);
    }
    if (isCued || this.#open === null) return text;
    const { start, duration } = this.#open;
    if (duration === 0 || time <= start + duration + MAX_OVERDUE_MS) return text + this.#cont(this.#open, time);
    this.#open = null;
    return text + CUE_IN;
  }

  #cue({ marker }: WaitingMarker, time: number): string {
    if (marker.type === 'cont') {
      this.#open ??= { start: time - marker.elapsed, duration: marker.duration };
      return serializeCueCont((marker.elapsed > 0 ? marker.elapsed : time - this.#open.start) / 1000, this.#open.duration / 1000);
    }
    this.#open = marker.type === 'out' ? { start: time, duration: marker.duration } : null;
    return marker.type === 'out' ? serializeCueOut(marker.duration / 1000) : CUE_IN;
  }

  #cont({ start, duration }: OpenBreak, time: number): string {
    return serializeCueCont(Math.max(0, time - start) / 1000, duration / 1000);
  }

  #splice({ marker, data }: WaitingMarker, time: number, wallTime: number): string {
    const { id, type, duration } = marker;
    const isOut = type === 'out';
    if (isOut) this.#begin(id, wallTime);
    const section = retimeSplice(data, time * TICKS_PER_MS);
    const plannedDuration = isOut && duration > 0 ? duration / 1000 : null;
    const attribute = isOut ? 'SCTE35-OUT' : type === 'in' ? 'SCTE35-IN' : 'SCTE35-CMD';
    return serializeSpliceRange({ id: String(id), start: this.#begun.get(id) ?? wallTime, plannedDuration, attribute, section });
  }

  #begin(id: number, wallTime: number): void {
    this.#begun.delete(id);
    this.#begun.set(id, wallTime);
    const [oldest] = this.#begun.keys();
    if (this.#begun.size > MAX_BREAKS && oldest !== undefined) this.#begun.delete(oldest);
  }
}
