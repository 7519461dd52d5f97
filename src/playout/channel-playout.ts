import type { IngestStream } from '../core/ingest.ts';
import type { StreamAddress } from '../core/stream-address.ts';
import type { Transcoder } from '../core/transcoding.ts';
import { Urgency } from '../core/urgency.ts';
import type { Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import { guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/message-of.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { type AudioLabel, ChannelSlots } from './channel-slots.ts';
import { ConformedSource } from './conformed-source.ts';
import type { ItemSources } from './item-source.ts';
import { PlayedItem } from './played-item.ts';
import type { CuedItem, Playout, PlayoutListener } from './playout.ts';
import { type SplicedItem, SplicedStream } from './spliced-stream.ts';

/** How long packets wait to be sent together, ms, by urgency. */
const BUNDLE_MS: Readonly<Record<Urgency, number>> = {
  [Urgency.NONE]: 100,
  [Urgency.BATCHED]: 100,
  [Urgency.LOW_LATENCY]: 10,
  [Urgency.REAL_TIME]: 1,
};
/** It looks at least this often, ms. */
const LOOK_MS = 250;
/** While it waits for a source that should have something, it looks this often, ms. */
const AWAITING_LOOK_MS = 50;
/** A source that should be read ahead and has brought nothing for this long, ms, has failed: a disk that hangs. */
const STALL_MS = 500;
/** An item that is due and cannot be opened for this long, ms, has failed. */
const OPEN_MS = 800;
/** The same where a process has to start for it. */
const CONVERT_MS = 4000;
/** A live stream whose packets come may let wait so long for a keyframe, ms. */
const KEYFRAME_MS = 10_000;
/** Minimum time before an item's end at which `onEnding` is called, ms. */
const NOTICE_MS = 2500;
/** The wall clock moves on against the monotonic one, it is corrected: less than this, ms, is how it counts. */
const CLOCK_STEP_MS = 2;
/** Both clocks are read again if the process was held up in between; limit of attempts. */
const CLOCK_READINGS = 5;
/** Turns of what happens within one look, against a loop of items that all end at once. */
const MAX_TURNS = 32;

const NOWHERE: StreamAddress = { vhost: '', app: '', stream: '' };

/** Starts a timer; its cancel function may be called twice. */
export type Later = (action: () => void, ms: number) => () => void;

/** Dependencies of a playout. */
export interface ChannelPlayoutOptions {
  /** Where it plays. The playout announces its tracks and pushes packets; it neither opens nor closes it. */
  readonly stream: Pick<IngestStream, 'setTracks' | 'push' | 'pushCue' | 'pushEvent' | 'countBytes' | 'urgency' | 'closed'>;
  /** The channel has video: an item without fails. False: video of items is left out. */
  readonly video: boolean;
  /** The audio tracks of the channel, in order; `[{}]` for one without a name, `[]` for none. */
  readonly audio: readonly AudioLabel[];
  /** Opens what items name. Shared by channels; it stays its owner's. */
  readonly sources: ItemSources;
  /** Converts items whose codecs differ from those of the channel, which are those of its first item. Absent or null: such items fail. */
  readonly transcoder?: Transcoder | null;
  /** The channel, to which its conversions are attributed. */
  readonly address?: StreamAddress;
  /** Maximum time without packets of a live item, ms (`ErrorToleranceDurationMs`). */
  readonly errorToleranceMs: number;
  /** Tracks that the viewers have already: the first item continues with their codecs, after the media already sent. */
  readonly present?: readonly Track[];
  /** The cued item could go on air now; called once for each item. */
  readonly onReady?: (item: Readiness) => void;
  /** Maximum length of a cue sent at once, ms, where items may leave the air without notice; absent: unlimited. */
  readonly cuePieceMs?: number;
  /** Items are not logged here: the listener logs. */
  readonly quiet?: boolean;
  readonly listener: PlayoutListener;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Timers, for tests that turn the clock themselves. */
  readonly later?: Later;
}

/** How a cued item waits. */
export interface Readiness {
  readonly live: boolean;
  /** A process waits with it. */
  readonly slow: boolean;
}

/** The item on air. */
interface Airing {
  readonly item: PlayedItem;
  readonly splice: SplicedItem;
  /** Wall clock at which it has to end. */
  until: number;
  /** The listener knows that it is on air. */
  told: boolean;
  /** The end reported to the listener, wall clock; null: none. */
  toldEnd: number | null;
}

/**
 * Plays items on one stream, so that viewers see one stream that never breaks. Times of the channel are those of the monotonic clock; the
 * wall clock is read only to place an item, so that errors do not add up however many items there are.
 *
 * Closed by its maker, before the stream is.
 */
export class ChannelPlayout implements Playout {
  readonly #options: ChannelPlayoutOptions;
  readonly #slots: ChannelSlots;
  readonly #output: SplicedStream;
  readonly #later: Later;
  readonly #look: () => void;
  #air: Airing | null = null;
  #cued: PlayedItem | null = null;
  #toldReady: PlayedItem | null = null;
  /** Monotonic ms. */
  #cuedAt = 0;
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
    this.#output = new SplicedStream(options.stream, this.#slots, options.cuePieceMs);
    this.#later = options.later ?? later;
    this.#look = guarded(options.logger, 'the playout of a channel', () => this.#turn());
  }

  get position(): number | null {
    if (this.#air === null) return null;
    const { item, splice } = this.#air;
    const { begin } = splice;
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
    this.wake();
  }

  /** Moves the cued item to another time of the wall clock, ms. */
  retime(at: number): void {
    if (this.#cued === null) return;
    this.#cued.at = at;
    this.#cuedAt = this.#now;
    this.wake();
  }

  endAt(until: number): void {
    if (this.#air === null) return;
    this.#air.until = until;
    this.#air.toldEnd = null;
    this.wake();
  }

  stop(): void {
    const air = this.#air;
    if (air === null) return;
    // Frames that are shown before others that have already been sent.
    this.#air = null;
    if (this.#send(air, Number.POSITIVE_INFINITY, this.#output.end)) this.#retire(air);
    this.#output.drain();
    this.wake();
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

  /** A viewer has come who needs packets now: for `IngestRequest.onWatched`. */
  wake(): void {
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

  /** Difference of the clocks, ms: the wall clock counts whole ms, and is followed when it has really moved. */
  get #wallBase(): number {
    const { clock } = this.#options;
    for (let readings = 1; ; readings += 1) {
      const before = clock.monotonic();
      const base = clock.now() - before;
      // The time between the readings would start an item late, or end it early, by as much.
      if (clock.monotonic() - before > CLOCK_STEP_MS && readings < CLOCK_READINGS) continue;
      if (!(Math.abs(base - this.#base) <= CLOCK_STEP_MS)) this.#base = base;
      return this.#base;
    }
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
      onChange: () => this.wake(),
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
      this.#output.drain();
    } finally {
      this.#looking = false;
    }
    if (this.#air !== null || this.#cued !== null) this.#wake(this.#inStep(this.#restMs()));
  }

  /** True if the state changed and must be evaluated again. */
  #step(): boolean {
    if (this.#dropCued()) return true;
    const now = this.#now;
    const air = this.#air;
    if (air !== null) {
      if (!this.#send(air, now, this.#cutOf(air))) return true;
      if (this.#tell(air)) return true;
    }
    const cued = this.#cued;
    if (cued?.ready === true && this.#tellReady(cued)) return true;
    if (cued?.ready === true && now >= this.#wantedAt(cued) - cued.lead) {
      this.#switchTo(cued);
      return true;
    }
    return air !== null && this.#finish(air);
  }

  /** Gives up the cued item if it is unavailable. */
  #dropCued(): boolean {
    const item = this.#cued;
    if (item === null || (item.ready && !(item.live && item.failure !== null))) return false;
    const reason = item.failure ?? this.#absence(item);
    if (reason === null) return false;
    this.#cued = null;
    this.#fail(item, reason);
    return true;
  }

  /** Why an item that should be on air is waited for no longer; null: it may still come. */
  #absence(item: PlayedItem): string | null {
    const since = Math.max(this.#cuedAt, this.#ofWall(item.at));
    const limit = item.slow ? CONVERT_MS : OPEN_MS;
    if (this.#now - Math.max(since, item.live ? item.heardAt : since) > limit) return `nothing of it came for ${limit} ms`;
    return item.live && this.#now - since > KEYFRAME_MS ? `no keyframe of it came for ${KEYFRAME_MS} ms` : null;
  }

  #tellReady(item: PlayedItem): boolean {
    const { onReady } = this.#options;
    if (onReady === undefined || this.#toldReady === item) return false;
    this.#toldReady = item;
    onReady({ live: item.live, slow: item.slow });
    return true;
  }

  #fail(item: PlayedItem, reason: string): void {
    item.close();
    if (this.#options.quiet !== true) this.#options.logger.warn({ item: item.cued.url }, `item cannot be played: ${reason}`);
    this.#options.listener.onFailed(item.cued, reason);
  }

  /** Where an item belongs, ms of the channel, were there nothing before it. */
  #wantedAt({ cued, at: wall, joint, live }: PlayedItem): number {
    const at = this.#ofWall(wall);
    return live || joint === null ? at : Math.max(at, at + joint - cued.from);
  }

  /** Where the item on air is cut, ms of the channel. */
  #cutOf({ until }: Airing): number {
    const ends = this.#ofWall(until);
    return this.#cued?.ready === true ? Math.min(ends, this.#output.beginOf(this.#wantedAt(this.#cued))) : ends;
  }

  /** Where the media of an item ends, ms of the channel; Infinity while that is not known. */
  #mediaEnd(item: PlayedItem): number {
    const { end } = item;
    return end === null ? Number.POSITIVE_INFINITY : item.offset + end;
  }

  #switchTo(item: PlayedItem): void {
    const begin = this.#output.beginOf(this.#wantedAt(item));
    const before = this.#air;
    this.#cued = null;
    this.#air = null;
    if (before !== null && this.#send(before, Number.POSITIVE_INFINITY, Math.min(begin, this.#ofWall(before.until)))) this.#retire(before);
    const splice = this.#output.splice(item, begin, { follows: before !== null || this.#options.present !== undefined });
    const air = { item, splice, until: item.cued.until, told: false, toldEnd: null };
    this.#air = air;
    try {
      this.#output.announce(splice);
    } catch (error) {
      this.#lose(air, error);
      return;
    }
    this.#send(air, this.#now, this.#cutOf(air));
  }

  /** False when its tracks cannot be announced: it is off air then. */
  #send(air: Airing, until: number, cut: number): boolean {
    try {
      this.#output.send(air.splice, until, cut);
      return true;
    } catch (error) {
      this.#lose(air, error);
      return false;
    }
  }

  #lose(air: Airing, error: unknown): void {
    if (!(error instanceof ProtocolError)) throw error;
    if (this.#air === air) this.#air = null;
    this.#retire(air);
    this.#fail(air.item, messageOf(error));
  }

  /** It is off air. */
  #retire({ splice, item }: Airing): void {
    this.#output.leave(splice);
    item.close();
  }

  /** Reports changes of the item on air; true if there were any. */
  #tell(air: Airing): boolean {
    const { listener } = this.#options;
    const { item } = air;
    if (!air.told) {
      air.told = true;
      if (this.#options.quiet !== true) this.#options.logger.info({ item: item.cued.url }, `on air: ${item.cued.url}`);
      listener.onAir(item.cued);
      return true;
    }
    const cut = this.#ofWall(air.until);
    const ends = Math.min(this.#mediaEnd(item), cut);
    if (!Number.isFinite(ends) || ends - this.#now > NOTICE_MS) return false;
    const wall = this.#toWall(ends);
    if (air.toldEnd !== null && Math.abs(wall - air.toldEnd) < 1) return false;
    air.toldEnd = wall;
    listener.onEnding(item.cued, wall, this.#mediaEnd(item) <= cut ? item.end : null);
    return true;
  }

  /** Ends the item on air when it has no more media and no item is cued. */
  #finish(air: Airing): boolean {
    const { item } = air;
    const frame = item.peek();
    if (frame !== null && item.offset + frame.dts < this.#ofWall(air.until)) return false;
    if (frame === null && !item.ended) {
      const reason = item.failure ?? this.#starvation(air);
      if (reason === null) return false;
      this.#air = null;
      this.#retire(air);
      this.#fail(item, reason);
      return true;
    }
    if (this.#cued !== null) return false;
    this.#air = null;
    this.#retire(air);
    this.#options.listener.onEnded(item.cued);
    return true;
  }

  /** Why an item that has nothing to play is given up; null: it may still come. */
  #starvation(air: Airing): string | null {
    const now = this.#now;
    air.splice.starvedSince ??= now;
    const limit = air.item.live ? this.#options.errorToleranceMs : STALL_MS;
    if (now - air.splice.starvedSince < limit) return null;
    return air.item.live ? `no packet came for ${limit} ms` : `nothing could be read for ${limit} ms`;
  }

  /** Until it has to look again, ms. */
  #restMs(): number {
    const now = this.#now;
    let wait = LOOK_MS;
    const frame = this.#air?.item.peek() ?? null;
    if (this.#air !== null && frame !== null) wait = Math.min(wait, this.#air.item.offset + frame.dts - now);
    else if (this.#air !== null) wait = Math.min(wait, AWAITING_LOOK_MS);
    if (this.#cued?.ready === false) wait = Math.min(wait, AWAITING_LOOK_MS);
    if (this.#cued?.ready === true) wait = Math.min(wait, this.#wantedAt(this.#cued) - this.#cued.lead - now);
    return wait;
  }

  /** At least `ms`, so that channels that can wait wake up at the same times: a process that sleeps in between costs less. */
  #inStep(ms: number): number {
    const now = this.#now;
    const bundle = BUNDLE_MS[this.#options.stream.urgency];
    // Timers are early by a moment at times.
    const at = Math.ceil((now + Math.max(ms, bundle / 2)) / bundle) * bundle;
    return at - now;
  }
}

function later(action: () => void, ms: number): () => void {
  const timer = setTimeout(action, ms);
  return () => clearTimeout(timer);
}
