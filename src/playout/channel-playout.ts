import { isDeepStrictEqual } from 'node:util';
import type { IngestStream, SourceAudioTrack, SourceTrack } from '../core/ingest.ts';
import type { StreamAddress } from '../core/stream-address.ts';
import type { Transcoder } from '../core/transcoding.ts';
import { Urgency } from '../core/urgency.ts';
import type { Clock } from '../util/clock.ts';
import { guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { type AudioLabel, type ChannelSlot, ChannelSlots } from './channel-slots.ts';
import { ConformedSource } from './conformed-source.ts';
import type { ItemSources } from './item-source.ts';
import { type ItemFrame, PlayedItem } from './played-item.ts';
import type { CuedItem, Playout, PlayoutListener } from './playout.ts';
import { type SilentFrame, silentFrame } from './silence.ts';

/** Nobody waits for packets: they go out in bundles, ms. */
const BUNDLE_MS: Readonly<Record<Urgency, number>> = { [Urgency.NONE]: 100, [Urgency.LOW_LATENCY]: 10, [Urgency.REAL_TIME]: 1 };
/** It looks at least this often, ms. */
const LOOK_MS = 250;
/** While it waits for a source that should have something, it looks this often, ms. */
const ANXIOUS_MS = 50;
/** A source that should be read ahead and has brought nothing for so long, ms, has failed: a disk that hangs. */
const STALL_MS = 500;
/** What should be on air and cannot be opened for so long, ms, has failed. */
const OPEN_MS = 800;
/** The same where a process has to start for it. */
const CONVERT_MS = 4000;
/** A live stream whose packets come may let wait so long for a keyframe, ms. */
const KEYFRAME_MS = 10_000;
/** How long before its end is told that an item ends, ms, at the earliest. */
const NOTICE_MS = 2500;
/** Audio is moved by no more than this, ms, to follow without a hole. */
const MAX_SHIFT_MS = 20;
/** Holes of audio at a splice that are filled with silence, ms. */
const MAX_SILENCE_MS = 1000;
/** The last frame before a cut is shown for at least so long, ms. */
const MIN_FRAME_MS = 5;
/** The wall clock moves on against the monotonic one, it is corrected: less than this, ms, is how it counts. */
const CLOCK_STEP_MS = 2;
/** What lies this little before a cut, ms, lies behind it: times are told in other units everywhere. */
const CUT_TOLERANCE_MS = 0.5;
/** Frames behind a cut that others need are shown within this time before it, ms, all together. */
const SQUEEZE_MS = 2;
const TICKS_PER_MS = 90;
/** Turns of what happens within one look, against a loop of items that all end at once. */
const MAX_TURNS = 32;

const NOWHERE: StreamAddress = { vhost: '', app: '', stream: '' };

/** What waits for a time; `cancel` may be called twice. */
export type Later = (action: () => void, ms: number) => () => void;

/** What a channel is played with. */
export interface ChannelPlayoutOptions {
  /** Where it plays. The playout announces its tracks and pushes packets; it neither opens nor closes it. */
  readonly stream: Pick<IngestStream, 'setTracks' | 'push' | 'countBytes' | 'urgency' | 'closed'>;
  /** The channel has video: an item without fails. False: video of items is left out. */
  readonly video: boolean;
  /** The audio tracks of the channel, in their order; `[{}]` for one without a name, `[]` for none. */
  readonly audio: readonly AudioLabel[];
  /** Opens what items name. Shared by channels; it stays its owner's. */
  readonly sources: ItemSources;
  /** Converts items whose codecs are not those of the channel, which are those of its first item. Absent or null: such items fail. */
  readonly transcoder?: Transcoder | null;
  /** The channel, by which its conversions are told. */
  readonly address?: StreamAddress;
  /** Packets of a live item may stay away for so long, ms (`ErrorToleranceDurationMs`). */
  readonly errorToleranceMs: number;
  readonly listener: PlayoutListener;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Timers, for tests that turn the clock themselves. */
  readonly later?: Later;
}

/** What is on air. */
interface Airing {
  readonly item: PlayedItem;
  /** Where it begins, ms of the channel. */
  readonly begin: number;
  /** Wall clock at which it has to end. */
  until: number;
  /** No frame of video is decoded before, ms of the channel, and each one moves this on by a little until it is overtaken. */
  decodesFrom: number;
  readonly decodeStep: number;
  /** The listener knows that it is on air. */
  told: boolean;
  /** The end that was told to the listener, wall clock; null: none was. */
  toldEnd: number | null;
  /** It has nothing to play and should have, since then; monotonic ms. */
  starvedSince: number | null;
}

/**
 * Plays items on one stream, so that viewers see one stream that never breaks. Times of the channel are those of the monotonic clock; the wall
 * clock is asked where an item has its place on it, so that nothing adds up however many items there are.
 *
 * Closed by whoever made it, before the stream is.
 */
export class ChannelPlayout implements Playout {
  readonly #options: ChannelPlayoutOptions;
  readonly #slots: ChannelSlots;
  readonly #later: Later;
  readonly #look: () => void;
  #air: Airing | null = null;
  #cued: PlayedItem | null = null;
  /** Monotonic ms. */
  #cuedAt = 0;
  #announced: readonly SourceTrack[] = [];
  readonly #silences = new Map<ChannelSlot, SilentFrame | null>();
  #bytes = 0;
  #base = Number.NaN;
  #cancel: (() => void) | null = null;
  /** When the timer goes off; monotonic ms. */
  #wakeAt = Number.POSITIVE_INFINITY;
  #looking = false;
  #again = false;
  #closed = false;

  constructor(options: ChannelPlayoutOptions) {
    this.#options = options;
    this.#slots = new ChannelSlots(options);
    this.#later = options.later ?? later;
    this.#look = guarded(options.logger, 'the playout of a channel', () => this.#turn());
  }

  get position(): number | null {
    if (this.#air === null) return null;
    const { item, begin } = this.#air;
    const now = Math.max(begin, Math.min(this.#now, this.#mediaEnd(item)));
    return item.live ? now - begin : now - item.offset;
  }

  get onAir(): CuedItem | null {
    return this.#air?.item.cued ?? null;
  }

  cue(item: CuedItem | null): void {
    if (this.#closed) return;
    this.#cued?.close();
    this.#cued = item === null ? null : this.#open(item);
    this.#cuedAt = this.#now;
    this.attend();
  }

  endAt(until: number): void {
    if (this.#air === null) return;
    this.#air.until = until;
    this.#air.toldEnd = null;
    this.attend();
  }

  stop(): void {
    const air = this.#air;
    if (air === null) return;
    // Frames that are shown before others that have gone out already.
    this.#send(air, Number.POSITIVE_INFINITY, this.#floor);
    this.#countBytes();
    air.item.close();
    this.#air = null;
    this.attend();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancel?.();
    this.#cancel = null;
    this.#air?.item.close();
    this.#cued?.close();
    this.#air = null;
    this.#cued = null;
  }

  /** Somebody has come who needs packets now: for `IngestRequest.onAttended`. */
  attend(): void {
    this.#wake(0);
  }

  get #now(): number {
    return this.#options.clock.monotonic();
  }

  /** Wall clock, ms, to ms of the channel. */
  #ofWall(wall: number): number {
    return wall - this.#wallBase;
  }

  #toWall(at: number): number {
    return at + this.#wallBase;
  }

  /** What lies between the clocks, ms: the wall clock counts in whole ones, and is followed when it has really moved. */
  get #wallBase(): number {
    const { clock } = this.#options;
    const base = clock.now() - clock.monotonic();
    if (!(Math.abs(base - this.#base) <= CLOCK_STEP_MS)) this.#base = base;
    return this.#base;
  }

  #open(cued: CuedItem): PlayedItem {
    const { sources } = this.#options;
    const late = Math.max(0, this.#options.clock.now() - cued.at);
    return new PlayedItem({
      cued,
      now: () => this.#now,
      open: async (opening) => {
        const source = await sources.open(cued.url, { ...opening, position: cued.from + late });
        const { transcoder = null, address = NOWHERE } = this.#options;
        return new ConformedSource({
          ...{ source, transcoder, address, onSlow: opening.onSlow },
          conversions: (tracks) => this.#slots.conversions(tracks, { fromTheFirst: transcoder !== null }),
        });
      },
      arrange: (tracks) => this.#slots.arrange(tracks),
      onChange: () => this.attend(),
    });
  }

  /** Wakes up in `ms`, or earlier when that is planned already. */
  #wake(ms: number): void {
    if (this.#closed) return;
    if (this.#looking) {
      this.#again ||= ms === 0;
      return;
    }
    const at = this.#now + ms;
    if (this.#cancel !== null && this.#wakeAt <= at) return;
    this.#cancel?.();
    this.#wakeAt = at;
    this.#cancel = this.#later(this.#look, ms);
  }

  #turn(): void {
    this.#cancel = null;
    if (this.#closed || this.#looking) return;
    this.#looking = true;
    try {
      for (let turns = 0; turns < MAX_TURNS; turns += 1) {
        this.#again = false;
        if (!this.#step() && !this.#again) break;
        if (this.#closed) return;
      }
      this.#countBytes();
    } finally {
      this.#looking = false;
    }
    if (this.#air !== null || this.#cued !== null) this.#wake(this.#restMs());
  }

  /** True when something has changed that is to be looked at anew. */
  #step(): boolean {
    if (this.#dropCued()) return true;
    const now = this.#now;
    const air = this.#air;
    if (air !== null) {
      this.#send(air, now, this.#cutOf(air));
      if (this.#closed || this.#air !== air) return true;
      if (this.#tell(air)) return true;
    }
    const cued = this.#cued;
    if (cued?.ready === true && now >= this.#wantedAt(cued) - cued.lead) {
      this.#switchTo(cued);
      return true;
    }
    return air !== null && this.#finish(air);
  }

  /** Gives up what is cued when it cannot be had. */
  #dropCued(): boolean {
    const item = this.#cued;
    if (item === null || item.ready) return false;
    const reason = item.failure ?? this.#absence(item);
    if (reason === null) return false;
    this.#cued = null;
    this.#fail(item, reason);
    return true;
  }

  /** Why an item that should be on air is waited for no longer; null: it may still come. */
  #absence(item: PlayedItem): string | null {
    const since = Math.max(this.#cuedAt, this.#ofWall(item.cued.at));
    const limit = item.slow ? CONVERT_MS : OPEN_MS;
    if (this.#now - Math.max(since, item.live ? item.heardAt : since) > limit) return `nothing of it came for ${limit} ms`;
    return item.live && this.#now - since > KEYFRAME_MS ? `no keyframe of it came for ${KEYFRAME_MS} ms` : null;
  }

  #fail(item: PlayedItem, reason: string): void {
    item.close();
    this.#options.logger.warn({ item: item.cued.url }, `item cannot be played: ${reason}`);
    this.#options.listener.onFailed(item.cued, reason);
  }

  /** Where an item belongs, ms of the channel, were there nothing before it. */
  #wantedAt({ cued, joint, live }: PlayedItem): number {
    const at = this.#ofWall(cued.at);
    return live || joint === null ? at : Math.max(at, at + joint - cued.from);
  }

  /** Where an item begins that is put on air now: where it belongs, or behind what viewers have got. */
  #beginOf(item: PlayedItem): number {
    const wanted = this.#wantedAt(item);
    return wanted > (this.#leader?.lastPts ?? 0) + MIN_FRAME_MS ? wanted : Math.max(wanted, this.#floor);
  }

  get #leader(): ChannelSlot | undefined {
    return this.#slots.video ?? this.#slots.audio[0];
  }

  /** Where what was sent ends, ms of the channel. */
  get #floor(): number {
    return this.#leader?.end ?? Number.NEGATIVE_INFINITY;
  }

  /** Where what is on air is cut, ms of the channel. */
  #cutOf({ until }: Airing): number {
    const ends = this.#ofWall(until);
    return this.#cued?.ready === true ? Math.min(ends, this.#beginOf(this.#cued)) : ends;
  }

  /** Where the media of an item ends, ms of the channel; Infinity while that is not known. */
  #mediaEnd(item: PlayedItem): number {
    const { end } = item;
    return end === null ? Number.POSITIVE_INFINITY : item.offset + end;
  }

  #switchTo(item: PlayedItem): void {
    const begin = this.#beginOf(item);
    const before = this.#air;
    if (before !== null) {
      this.#send(before, Number.POSITIVE_INFINITY, Math.min(begin, this.#ofWall(before.until)));
      before.item.close();
    }
    for (const slot of this.#slots.audio) this.#fill(slot, begin);
    item.offset = begin - (item.joint ?? 0);
    this.#cued = null;
    // Players take the time at which the first frame after a splice is decoded for the one at which it is shown.
    const decodeStep = item.frameMs / (Math.ceil(item.lead / item.frameMs) + 2);
    const times = { begin, decodesFrom: before === null ? Number.NEGATIVE_INFINITY : begin, decodeStep };
    const air: Airing = { item, ...times, until: item.cued.until, told: false, toldEnd: null, starvedSince: null };
    this.#air = air;
    if (this.#announce(air)) this.#send(air, this.#now, this.#cutOf(air));
  }

  /** False when the tracks of the item cannot be announced: it is off air then. */
  #announce(air: Airing): boolean {
    const { arrangement } = air.item;
    if (arrangement === null) return true;
    const tracks = this.#slots.announce(arrangement);
    if (isDeepStrictEqual(tracks, this.#announced)) return true;
    try {
      this.#options.stream.setTracks(tracks);
    } catch (error) {
      this.#air = null;
      this.#fail(air.item, messageOf(error));
      return false;
    }
    this.#announced = tracks;
    this.#silences.clear();
    return true;
  }

  /** Tells what there is to tell of the item on air; true when something was. */
  #tell(air: Airing): boolean {
    const { listener } = this.#options;
    const { item } = air;
    if (!air.told) {
      air.told = true;
      this.#options.logger.info({ item: item.cued.url }, `on air: ${item.cued.url}`);
      listener.onAir(item.cued);
      return true;
    }
    const ends = Math.min(this.#mediaEnd(item), this.#ofWall(air.until));
    if (!Number.isFinite(ends) || ends - this.#now > NOTICE_MS) return false;
    const wall = this.#toWall(ends);
    if (air.toldEnd !== null && Math.abs(wall - air.toldEnd) < 1) return false;
    air.toldEnd = wall;
    listener.onEnding(item.cued, wall);
    return true;
  }

  /** Takes what is on air off it when there is no more of it and nothing is to follow. */
  #finish(air: Airing): boolean {
    const { item } = air;
    const frame = item.peek();
    if (frame !== null && item.offset + frame.dts < this.#ofWall(air.until)) return false;
    if (frame === null && !item.ended) {
      const reason = item.failure ?? this.#starvation(air);
      if (reason === null) return false;
      this.#air = null;
      this.#fail(item, reason);
      return true;
    }
    if (this.#cued !== null) return false;
    this.#air = null;
    item.close();
    this.#options.listener.onEnded(item.cued);
    return true;
  }

  /** Why an item that has nothing to play is given up; null: it may still come. */
  #starvation(air: Airing): string | null {
    const now = this.#now;
    air.starvedSince ??= now;
    const limit = air.item.live ? this.#options.errorToleranceMs : STALL_MS;
    if (now - air.starvedSince < limit) return null;
    return air.item.live ? `no packet came for ${limit} ms` : `nothing could be read for ${limit} ms`;
  }

  /** Sends what is due until `until`; what is shown behind `cut` is left out. Both ms of the channel. */
  #send(air: Airing, until: number, cut: number): void {
    const { item } = air;
    for (;;) {
      if (item.turns) {
        item.turn();
        if (!this.#announce(air)) return;
      }
      const frame = item.peek();
      if (frame === null) break;
      air.starvedSince = null;
      const due = item.offset + frame.dts;
      if (due > until || due >= cut) break;
      if (frame.slot.type === 'video') this.#sendVideo(air, frame, cut);
      else if (frame.slot.type === 'audio') this.#sendAudio(air, frame, cut);
      else this.#push(frame.slot, due, due, frame);
      item.take(frame);
    }
    this.#sendSilence(air, Math.min(until, cut));
  }

  #sendVideo(air: Airing, frame: ItemFrame, cut: number): void {
    const { item } = air;
    const { slot } = frame;
    let pts = item.offset + frame.pts;
    if (pts >= cut - CUT_TOLERANCE_MS) {
      // Frames that are shown before the cut may refer to it.
      if (!item.isNeededBefore(slot, cut - item.offset)) return;
      pts = cut - SQUEEZE_MS / (1 + Math.max(0, pts - cut));
    } else {
      slot.lastPts = Math.max(slot.lastPts, pts);
      slot.end = Math.max(slot.end, pts + frame.duration);
    }
    let dts = item.offset + frame.dts;
    if (dts < air.decodesFrom) {
      dts = Math.min(air.decodesFrom, pts);
      air.decodesFrom += air.decodeStep;
    }
    this.#push(slot, pts, dts, frame);
  }

  #sendAudio(air: Airing, frame: ItemFrame, cut: number): void {
    const { item, begin } = air;
    const { slot, duration } = frame;
    let at = item.offset + frame.pts;
    const shift = item.shifts.get(slot);
    if (shift === undefined) {
      if (at + duration / 2 < begin) return;
      if (at - slot.end > duration / 2) this.#fill(slot, at);
      const fitting = slot.end - at;
      // What lies under the sound before it.
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
  #sendSilence({ item, begin }: Airing, until: number): void {
    const { arrangement } = item;
    if (arrangement === null || !Number.isFinite(until)) return;
    for (const slot of this.#slots.audio) {
      if (arrangement.tracks.has(slot)) continue;
      if (slot.end < begin - MAX_SILENCE_MS) slot.end = begin;
      this.#fill(slot, until, Number.POSITIVE_INFINITY);
    }
  }

  /** Silence up to half a frame before or behind `until`, where what lies between is no longer than `limit`. */
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
      silence = silentFrame(track satisfies SourceAudioTrack);
      this.#silences.set(slot, silence);
    }
    return silence;
  }

  #push(slot: ChannelSlot, pts: number, dts: number, { keyframe, data }: Pick<ItemFrame, 'keyframe' | 'data'>): void {
    // The first frames of what follows are decoded while the last ones of what was before are shown.
    const decoded = Math.max(Math.round(dts * TICKS_PER_MS), slot.lastDts + 1);
    slot.lastDts = decoded;
    this.#bytes += data.length;
    this.#options.stream.push({
      trackId: slot.id,
      pts: Math.max(decoded, Math.round(pts * TICKS_PER_MS)),
      dts: decoded,
      keyframe,
      data,
    });
  }

  #countBytes(): void {
    if (this.#bytes > 0) this.#options.stream.countBytes(this.#bytes);
    this.#bytes = 0;
  }

  /** Until it has to look again, ms. */
  #restMs(): number {
    const now = this.#now;
    let wait = LOOK_MS;
    const frame = this.#air?.item.peek() ?? null;
    if (this.#air !== null && frame !== null) wait = Math.min(wait, this.#air.item.offset + frame.dts - now);
    else if (this.#air !== null) wait = Math.min(wait, ANXIOUS_MS);
    if (this.#cued?.ready === false) wait = Math.min(wait, ANXIOUS_MS);
    if (this.#cued?.ready === true) wait = Math.min(wait, this.#wantedAt(this.#cued) - this.#cued.lead - now);
    return Math.max(BUNDLE_MS[this.#options.stream.urgency], wait);
  }
}

function later(action: () => void, ms: number): () => void {
  const timer = setTimeout(action, ms);
  return () => clearTimeout(timer);
}
