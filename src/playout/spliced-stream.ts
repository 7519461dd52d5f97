import { isDeepStrictEqual } from 'node:util';
import type { IngestStream, SourceTrack } from '../core/ingest.ts';
import type { ChannelSlot, ChannelSlots } from './channel-slots.ts';
import { ItemCues } from './item-cues.ts';
import type { ItemFrame, PlayedItem } from './played-item.ts';
import { type SilentFrame, silentFrame } from './silence.ts';

/** Audio is moved by no more than this, ms, to follow without a hole. */
const MAX_SHIFT_MS = 20;
/** Holes of audio at a splice that are filled with silence, ms. */
const MAX_SILENCE_MS = 1000;
/** A time this little before a cut, ms, counts as after it: units differ, so times are rounded. */
const CUT_TOLERANCE_MS = 0.5;
/** Frames behind a cut that others need are shown within this time before it, ms, all together. */
const SQUEEZE_MS = 2;
const TICKS_PER_MS = 90;
/** Minimum time for which the last frame before a cut is shown, ms. */
const MIN_FRAME_MS = 5;

/** An item in its place. */
export interface SplicedItem {
  readonly item: PlayedItem;
  /** Where it begins, ms of the channel. */
  readonly begin: number;
  /** No frame of video is decoded before, ms of the channel, and each one moves this on by a little until it is overtaken. */
  decodesFrom: number;
  readonly decodeStep: number;
  /** When the last frame behind a cut that others need is shown, and that cut; ms of the channel. */
  squeezed: { readonly at: number; readonly cut: number } | null;
  /** It has nothing to play and should have, since then; monotonic ms. */
  starvedSince: number | null;
  readonly cues: ItemCues;
}

/**
 * The stream of a channel: the frames of one item follow those of the previous item, without a break in times or tracks. The stream belongs
 * to its owner.
 */
export class SplicedStream {
  readonly #stream: Pick<IngestStream, 'setTracks' | 'push' | 'pushCue' | 'pushEvent' | 'countBytes'>;
  readonly #slots: ChannelSlots;
  readonly #cuePieceMs: number | undefined;
  #announced: readonly SourceTrack[] = [];
  readonly #silences = new Map<ChannelSlot, SilentFrame | null>();
  #bytes = 0;

  /** `cuePieceMs`: maximum length of a cue sent at once, ms; absent: unlimited. */
  constructor(
    stream: Pick<IngestStream, 'setTracks' | 'push' | 'pushCue' | 'pushEvent' | 'countBytes'>,
    slots: ChannelSlots,
    cuePieceMs?: number,
  ) {
    this.#stream = stream;
    this.#slots = slots;
    this.#cuePieceMs = cuePieceMs;
  }

  /** Where the sent media ends, ms of the channel. */
  get end(): number {
    return this.#leader?.end ?? Number.NEGATIVE_INFINITY;
  }

  /** The beginning of an item that belongs at `wanted`, ms of the channel: there, or behind the media that viewers have. */
  beginOf(wanted: number): number {
    const begin = wanted > (this.#leader?.lastPts ?? Number.NEGATIVE_INFINITY) + MIN_FRAME_MS ? wanted : Math.max(wanted, this.end);
    return Math.max(begin, this.#behindAll);
  }

  /** Behind every frame that viewers have, including reference-only frames; ms of the channel. */
  get #behindAll(): number {
    return ((this.#leader?.latestPts ?? Number.NEGATIVE_INFINITY) + 1) / TICKS_PER_MS;
  }

  /**
   * `item` begins at `wanted`, where nothing has been sent; gaps before it are filled with silence. `follows`: another item is sent until
   * then.
   */
  splice(item: PlayedItem, wanted: number, { follows }: { readonly follows: boolean }): SplicedItem {
    // The last frames of the previous item may have been sent since.
    const begin = Math.max(wanted, this.#behindAll);
    for (const slot of this.#slots.audio) this.#fill(slot, begin);
    item.offset = begin - (item.joint ?? 0);
    // Players take the time at which the first frame after a splice is decoded for the one at which it is shown.
    const decodeStep = item.frameMs / (Math.ceil(item.lead / item.frameMs) + 2);
    const cues = new ItemCues(item.subtitles, item.offset, this.#cuePieceMs);
    const decodesFrom = follows ? begin : Number.NEGATIVE_INFINITY;
    return { item, begin, decodesFrom, decodeStep, squeezed: null, starvedSince: null, cues };
  }

  /** Tells the tracks of the item where they are others than before. Throws ProtocolError when none of them can be read. */
  announce({ item }: SplicedItem): void {
    const { arrangement } = item;
    if (arrangement === null) return;
    const tracks = this.#slots.announce(arrangement);
    if (isDeepStrictEqual(tracks, this.#announced)) return;
    this.#stream.setTracks(tracks);
    this.#announced = tracks;
    this.#silences.clear();
  }

  /** Sends packets due by `until`; packets shown after `cut` are discarded. Both in ms of the channel. Throws as `announce`. */
  send(splice: SplicedItem, until: number, cut: number): void {
    const { item } = splice;
    for (;;) {
      if (item.turns) {
        item.turn();
        this.announce(splice);
      }
      const frame = item.peek();
      if (frame === null) break;
      splice.starvedSince = null;
      const due = item.offset + frame.dts;
      if (due > until || due >= cut) break;
      if (frame.slot.type === 'video') this.#sendVideo(splice, frame, cut);
      else if (frame.slot.type === 'audio') this.#sendAudio(splice, frame, cut);
      else this.#push(frame.slot, due, due, frame);
      item.take(frame);
    }
    this.#sendSilence(splice, Math.min(until, cut));
    item.sideData?.send(this.#stream, { offset: item.offset, from: splice.begin, until: Math.min(until, this.end), cut });
    if (!splice.cues.isEmpty) splice.cues.send(this.#stream, { from: splice.begin, until: Math.min(until, this.end), cut });
  }

  /** The item is off air: its breaks and cues end with its media. */
  leave({ item }: SplicedItem): void {
    item.sideData?.leave(this.#stream, this.end);
  }

  get #leader(): ChannelSlot | undefined {
    return this.#slots.video ?? this.#slots.audio[0];
  }

  #sendVideo(splice: SplicedItem, frame: ItemFrame, cut: number): void {
    const { item } = splice;
    const { slot } = frame;
    let pts = item.offset + frame.pts;
    if (pts >= cut - CUT_TOLERANCE_MS) {
      // Frames that are shown before the cut may refer to it.
      if (!item.isNeededBefore(slot, cut - item.offset)) return;
      pts = squeezedTime(splice.squeezed, pts, cut);
      splice.squeezed = { at: pts, cut };
    } else {
      slot.lastPts = Math.max(slot.lastPts, pts);
      slot.end = Math.max(slot.end, pts + frame.duration);
    }
    let dts = item.offset + frame.dts;
    if (dts < splice.decodesFrom) {
      dts = Math.min(splice.decodesFrom, pts);
      splice.decodesFrom += splice.decodeStep;
    }
    this.#push(slot, pts, dts, frame, Math.min(frame.duration, cut - pts));
  }

  #sendAudio(splice: SplicedItem, frame: ItemFrame, cut: number): void {
    const { item, begin } = splice;
    const { slot, duration } = frame;
    let at = item.offset + frame.pts;
    const shift = item.shifts.get(slot);
    if (shift === undefined) {
      if (at + duration / 2 < begin) return;
      if (at - slot.end > duration / 2) this.#fill(slot, at);
      const fitting = slot.end - at;
      // The part under the previous audio.
      if (fitting > duration / 2) return;
      item.shifts.set(slot, Math.abs(fitting) <= MAX_SHIFT_MS ? fitting : 0);
      if (fitting > MAX_SHIFT_MS) return;
    }
    at += item.shifts.get(slot) ?? 0;
    if (at + duration / 2 >= cut) return;
    slot.lastPts = at;
    slot.end = at + duration;
    this.#push(slot, at, at, frame);
  }

  /** Silence for audio that the item on air does not have. */
  #sendSilence({ item, begin }: SplicedItem, until: number): void {
    const { arrangement } = item;
    if (arrangement === null || !Number.isFinite(until)) return;
    for (const slot of this.#slots.audio) {
      if (arrangement.tracks.has(slot)) continue;
      if (slot.end < begin - MAX_SILENCE_MS) slot.end = begin;
      this.#fill(slot, until, Number.POSITIVE_INFINITY);
    }
  }

  /** Silence up to half a frame before or behind `until`, if the gap is no longer than `limit`. */
  #fill(slot: ChannelSlot, until: number, limit = MAX_SILENCE_MS): void {
    if (until - slot.end > limit) return;
    const silence = this.#silenceOf(slot);
    if (silence === null) return;
    while (slot.end + silence.ms / 2 < until) {
      const at = slot.end;
      slot.end += silence.ms;
      this.#push(slot, at, at, { keyframe: true, data: silence.data });
    }
  }

  #silenceOf(slot: ChannelSlot): SilentFrame | null {
    const { track } = slot;
    if (track?.type !== 'audio') return null;
    let silence = this.#silences.get(slot);
    if (silence === undefined) {
      silence = silentFrame(track);
      this.#silences.set(slot, silence);
    }
    return silence;
  }

  /** `shownMs`: of a frame of video, for how long it is shown. */
  #push(slot: ChannelSlot, pts: number, dts: number, { keyframe, data }: Pick<ItemFrame, 'keyframe' | 'data'>, shownMs?: number): void {
    // The first frames of the next item are decoded while the last ones of the previous item are shown.
    const decoded = Math.max(Math.round(dts * TICKS_PER_MS), slot.lastDts + 1);
    const shown = Math.max(decoded, Math.round(pts * TICKS_PER_MS));
    slot.lastDts = decoded;
    slot.latestPts = Math.max(slot.latestPts, shown);
    this.#bytes += data.length;
    const duration = shownMs === undefined ? undefined : Math.max(1, Math.round(shownMs * TICKS_PER_MS));
    this.#stream.push({ trackId: slot.id, pts: shown, dts: decoded, keyframe, duration, data });
  }

  /** Everything of this turn has been sent. */
  drain(): void {
    if (this.#bytes > 0) this.#stream.countBytes(this.#bytes);
    this.#bytes = 0;
  }
}

/**
 * Presentation time, ms, for a frame behind `cut` that other frames refer to; a whole number of ticks. It lies before the frame at the cut,
 * and before the previous such frame, because a frame shown later is decoded earlier.
 */
function squeezedTime(last: SplicedItem['squeezed'], pts: number, cut: number): number {
  const isAlone = last === null || Math.abs(cut - last.cut) > SQUEEZE_MS;
  const before = isAlone ? Math.floor(cut * TICKS_PER_MS) : Math.round(last.at * TICKS_PER_MS);
  const wanted = Math.floor((cut - SQUEEZE_MS / (1 + Math.max(0, pts - cut))) * TICKS_PER_MS);
  return Math.min(wanted, before - 1) / TICKS_PER_MS;
}
