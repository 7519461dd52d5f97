/** A scheduled channel: decides what is on air, and has a `Playout` that plays it. */
import type { CuedItem, Playout, PlayoutListener } from '../../playout/playout.ts';
import type { Clock } from '../../util/clock.ts';
import { counted } from '../../util/counted.ts';
import type { Logger } from '../../util/logger.ts';
import { messageOf } from '../../util/message-of.ts';
import { FallbackProgram } from './fallback-program.ts';
import type { Lengths } from './file-lengths.ts';
import {
  type ChannelSettings,
  type ItemOnAir,
  isLive,
  type Program,
  type ScheduleDefinition,
  type ScheduleItem,
} from './schedule-definition.ts';
import { isDue, isSameSlot, ScheduleTimeline, type ScheduleTimelineOptions, type Slot, sameItems, samePlay } from './schedule-timeline.ts';
import { TroubleLog } from './trouble-log.ts';
import { WorkInTurn } from './work-in-turn.ts';

/** The next item is opened this long before it is on air: an item that has to be converted needs some seconds. */
const LEAD_MS = 5000;
/** Retrying a failed item may delay opening the next fallback item until this long before its time, and does not begin shortly before. */
const FALLBACK_LEAD_MS = 2000;
const ATTEMPT_MS = 500;
/** During a shorter fallback item the failed item is tried all the time. */
const SHORT_FALLBACK_MS = 3000;
const RETRY_MS = 1000;
/**
 * An item this late leaves the air to the fallback program until it is ready; the playout has a shorter limit for files that open at once.
 */
const MAX_LATE_MS = 900;
/** If the playout reports nothing about the due item for this long it has lost it, because its own limits are shorter. */
const OPENING_MS = 6000;
/** An item joined less late than this begins at its beginning. */
const LATE_MS = 1000;
/** A larger distance from the slot means that the process slept, or that its clock was set: the position is found anew. */
const ASTRAY_MS = 10_000;
/** Media that ends less than this before its slot changes nothing: the next item stays on time. */
const PUNCTUAL_MS = 20;
/** Lengths of a program are looked up this long before it begins. */
const PREPARE_MS = 60_000;
/** Items that give way to the next one in a row, before that waits for `RETRY_MS`. */
const MAX_SKIPPED = 20;
/** Limit for a disk to tell lengths, ms: after it a definition is in force without them. */
const LENGTHS_MS = 2000;

/**
 * Opens the player of a channel. Throws if its stream is refused; `onLost` is called when another client ends the stream, and nothing after
 * it.
 */
export type OpenPlayout = (settings: ChannelSettings, listener: PlayoutListener, onLost: (reason: string) => void) => Playout;

/** Dependencies of a channel. */
export interface ScheduledChannelOptions {
  readonly definition: ScheduleDefinition;
  readonly open: OpenPlayout;
  readonly lengths: Lengths;
  /** Whether the stream of a live item is there. */
  readonly isRunning: (url: string) => boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface Cue {
  readonly kind: 'program' | 'fallback';
  readonly cued: CuedItem;
  slot: Slot;
  readonly cuedAt: number;
  /** The state last given to the playout. */
  until: number;
}

/**
 * Driven by `tick`, ten times a second, and by reports of its playout. The clock alone decides what is due (`ScheduleTimeline`); a failed
 * item gives way to the fallback program, or to the next item, and is retried every second.
 */
export class ScheduledChannel {
  readonly #options: ScheduledChannelOptions;
  readonly #settings: ChannelSettings;
  readonly trouble: TroubleLog;
  #timeline: ScheduleTimeline;
  #fallback: FallbackProgram;
  /** A definition that is in force as soon as lengths are known. */
  #coming: { readonly definition: ScheduleDefinition; readonly since: number } | null = null;
  #playout: Playout | null = null;
  /** Not to be opened earlier. */
  #openAt = Number.NEGATIVE_INFINITY;
  /** The slot of the moment; null before the first definition is in force. */
  #slot: Slot | null = null;
  /** The following slot, once requested. */
  #next: Slot | null = null;
  #air: Cue | null = null;
  #cue: Cue | null = null;
  /** Slots whose items have failed, with the moment from which on they are tried again. */
  readonly #failed = new WeakMap<Slot, number>();
  /** Consecutive items that gave way. */
  #skipped = 0;
  #probing: Slot | null = null;
  /** The failed slot whose media was there when it was tried last; null: none. */
  #vain: Slot | null = null;
  readonly #prepared = new WeakSet<Program>();
  readonly #work: WorkInTurn;

  constructor(options: ScheduledChannelOptions) {
    this.#options = options;
    this.#settings = options.definition.stream;
    this.trouble = new TroubleLog(options.clock, options.logger);
    this.#timeline = this.#timelineOf([], options.definition);
    this.#fallback = this.#fallbackOf(options.definition);
    this.#work = new WorkInTurn({ clock: options.clock, logger: options.logger, follow: (now) => this.#plan(now) });
    this.#take(options.definition);
  }

  /** The settings as they were when the channel began. */
  get settings(): ChannelSettings {
    return this.#settings;
  }

  /** The item of a program that viewers see, if they see one. */
  get onAir(): ItemOnAir | null {
    const { item = null, program = null, startsAt = 0 } = this.#air?.slot ?? {};
    if (this.#air?.kind !== 'program' || item === null || program === null) return null;
    const now = this.#options.clock.now();
    const position = isLive(item) ? now - startsAt : (this.#playout?.position ?? item.start) - item.start;
    return { item, programStartsAt: program.startsAt, position: Math.max(0, Math.floor(position)) };
  }

  /** Switches to another definition; an item on air continues if the new definition has it, too. The stream stays. */
  update(definition: ScheduleDefinition): void {
    if (JSON.stringify(definition.stream) !== JSON.stringify(this.#settings)) {
      this.#options.logger.warn(
        {},
        'the Stream part of a running channel cannot be changed: it takes effect with the next start of the server',
      );
    }
    this.#take(definition);
  }

  /** To be called ten times a second. */
  tick(): void {
    this.#work.do((now) => {
      if (this.#coming !== null && now - this.#coming.since >= LENGTHS_MS) this.#apply(this.#coming.definition, now);
      this.#prepare(now);
    });
  }

  /** Ends the stream. Idempotent. */
  close(): void {
    this.#work.close();
    this.#playout?.close();
    this.#playout = null;
  }

  #take(definition: ScheduleDefinition): void {
    const now = this.#options.clock.now();
    const coming = { definition, since: now };
    this.#coming = coming;
    const program = this.#timelineOf(definition.programs, definition).programAt(now);
    if (program !== null) this.#prepared.add(program);
    this.#work.doAfter(this.#look([...definition.fallback, ...(program?.items ?? [])]), (then) => {
      // Another one may have come meanwhile.
      if (this.#coming === coming) this.#apply(definition, then);
    });
  }

  #apply(definition: ScheduleDefinition, now: number): void {
    this.#coming = null;
    const before = this.#slot;
    this.#timeline = this.#timelineOf(definition.programs, definition);
    if (!sameItems(this.#fallback.items, definition.fallback)) this.#fallback = this.#fallbackOf(definition);
    const same = definition.programs.find((program) => before?.program != null && samePlay(program, before.program));
    if (before !== null && same !== undefined && this.#timeline.programAt(now) === same) {
      // Regardless of earlier failures of its items.
      const next = this.#next?.program === before.program ? this.#next : null;
      before.program = same;
      if (next !== null) next.program = same;
      this.#next = next?.startsAt === this.#timeline.endOf(before) ? next : null;
      return;
    }
    const slot = this.#timeline.at(now);
    const air = this.#air;
    const kept = air?.kind === 'program' && isSameSlot(air.slot, slot, LATE_MS) ? air.slot : null;
    if (kept !== null) Object.assign(kept, { program: slot.program, length: slot.length });
    this.#enter(kept ?? slot);
  }

  #fallbackOf(definition: ScheduleDefinition): FallbackProgram {
    return new FallbackProgram(definition.fallback, this.#timing(definition));
  }

  #timelineOf(programs: readonly Program[], definition: ScheduleDefinition): ScheduleTimeline {
    return new ScheduleTimeline(programs, this.#timing(definition));
  }

  #timing({ fallback }: ScheduleDefinition): ScheduleTimelineOptions {
    const { lengths } = this.#options;
    // A live source may return; a missing file has further files after it.
    const skips = (item: ScheduleItem): boolean => !item.fallbackOnErr || (fallback.length === 0 && !isLive(item));
    return { lengthOf: (item) => lengths.of(item), skips };
  }

  /** Looks up the lengths of coming items; unknown ones are used when the lookup is done. */
  #prepare(now: number): void {
    const program = this.#timeline.programAfter(this.#timeline.programAt(now));
    if (program === null || program.startsAt - now > PREPARE_MS || this.#prepared.has(program)) return;
    this.#prepared.add(program);
    void this.#look(program.items);
  }

  async #look(items: readonly ScheduleItem[]): Promise<void> {
    await Promise.all(items.map((item) => this.#options.lengths.look(item, items.length === 1)));
    const slot = this.#slot;
    const next = this.#next;
    if (slot?.item != null && slot.length === null) slot.length = this.#timeline.lengthOf(slot.item);
    if (next?.item != null && !this.#failed.has(next)) next.length = this.#timeline.lengthOf(next.item);
  }

  #plan(now: number): void {
    if (this.#slot === null || !this.#opened(now)) return;
    const slot = this.#advance(this.#slot, now);
    if (this.#air?.kind === 'program' && this.#air.slot === slot) this.#goOn(this.#air, now);
    else if (slot.item !== null && !this.#failed.has(slot)) this.#begin(slot, now);
    else this.#standIn(slot, now);
  }

  #advance(from: Slot, now: number): Slot {
    let slot = from;
    if (now - this.#timeline.endOf(slot) > ASTRAY_MS || slot.startsAt - now > ASTRAY_MS) slot = this.#enter(this.#timeline.at(now));
    while (this.#timeline.endOf(slot) <= now) slot = this.#enter(this.#upcoming(slot));
    return slot;
  }

  #enter(slot: Slot): Slot {
    const { program } = slot;
    if (program !== null && program.startsAt !== this.#slot?.program?.startsAt) {
      const { name, items, scheduled } = program;
      this.#options.logger.info(
        { program: name, scheduled },
        `${name === '' ? 'a program' : `program '${name}'`} with ${counted(items.length, 'item')} is on, scheduled for ${scheduled}`,
      );
    }
    this.#slot = slot;
    this.#next = null;
    const { item } = this.#upcoming(slot);
    // The file may be another one by now.
    if (item !== null) void this.#look([item]);
    return slot;
  }

  #upcoming(slot: Slot): Slot {
    // If nothing at all was playable, the position follows the clock, not the skipped items.
    const isAnew = this.#failed.get(slot) === Number.POSITIVE_INFINITY && (slot.program?.items.length ?? 0) <= MAX_SKIPPED;
    this.#next ??= isAnew ? this.#timeline.at(this.#timeline.endOf(slot)) : this.#timeline.after(slot, this.#timeline.endOf(slot));
    return this.#next;
  }

  /** The right item is on air. */
  #goOn(air: Cue, now: number): void {
    const end = this.#timeline.endOf(air.slot);
    this.#endAt(air, end);
    const next = this.#upcoming(air.slot);
    if (end - now > LEAD_MS) this.#takeBack();
    else if (next.item !== null && !this.#failed.has(next)) this.#cueItem(next.item, next, now);
    else if (this.#fallback.exists) this.#cueFallback(end);
    else this.#takeBack();
  }

  /** Something should be on air that is not. */
  #begin(slot: Slot, now: number): void {
    if (slot.item !== null) this.#cueItem(slot.item, slot, now);
    const since = Math.max(this.#cue?.cuedAt ?? now, slot.startsAt, this.#air?.until ?? slot.startsAt);
    const limit = this.#fallback.fails ? OPENING_MS : MAX_LATE_MS;
    if (!this.#fallback.exists || now - since < limit) return;
    this.#fail(slot, `it is not ready ${limit} ms after its time`, now);
    if (this.#slot === slot && this.#failed.has(slot)) this.#standIn(slot, now);
  }

  /** Nothing is scheduled, or it has failed. */
  #standIn(slot: Slot, now: number): void {
    const next = this.#upcoming(slot);
    const begins = this.#timeline.endOf(slot);
    const air = this.#air;
    const plays = air?.kind === 'fallback' && air.slot.program === this.#fallback.program;
    // Only one item can be opened at a time: the item that fills the gap comes first.
    const reaches = !plays || air.until > begins - PUNCTUAL_MS;
    const comes = next.item !== null && !this.#failed.has(next) && begins - now <= LEAD_MS && reaches;
    const retrying = this.#cue?.kind === 'program' && this.#cue.slot === slot;
    // A slow item would never be ready beside an unplayable fallback program.
    const opens = retrying && this.#fallback.fails && now - (this.#cue?.cuedAt ?? 0) < OPENING_MS;
    if (!plays && !opens && this.#fallback.isDue(now)) {
      this.#cueFallback(now);
      return;
    }
    if (!plays && air !== null && air.until > now) {
      this.#playout?.stop();
      this.#air = null;
    }
    if (comes && next.item !== null) {
      this.#cueItem(next.item, next, now);
      return;
    }
    if (plays) {
      const rest = air.until - now;
      const isShort = air.until - air.cued.at <= SHORT_FALLBACK_MS;
      const gives = !retrying || (isShort ? now - (this.#cue?.cuedAt ?? 0) >= ATTEMPT_MS : rest <= FALLBACK_LEAD_MS);
      if (rest <= LEAD_MS && gives && this.#fallback.isDue(now)) this.#cueFallback(air.until);
      // A failed item is retried once beside each item on air: a waiting conversion would start over every time.
      const hopeless = this.#vain === slot && rest <= LEAD_MS && now - air.cued.at > RETRY_MS;
      if (!isShort && (hopeless || rest <= FALLBACK_LEAD_MS + ATTEMPT_MS)) return;
    } else if (this.#cue !== null && !retrying) this.#takeBack();
    if (!retrying && isDue(this.#failed.get(slot) ?? Number.POSITIVE_INFINITY, now, RETRY_MS)) this.#retry(slot, now);
  }

  /** Tries a slot again that has failed, when there is a chance. */
  #retry(slot: Slot, now: number): void {
    const { item } = slot;
    if (item === null || this.#probing === slot) return;
    const judge = (isThere: boolean, then: number): void => {
      if (this.#probing === slot) this.#probing = null;
      if (slot !== this.#slot || this.#timeline.endOf(slot) <= then) return;
      this.#vain = isThere ? slot : null;
      if (isThere) this.#cueItem(item, slot, then);
      else this.#failed.set(slot, then + RETRY_MS);
    };
    this.#probing = slot;
    if (isLive(item)) judge(this.#options.isRunning(item.url), now);
    else this.#work.doAfter(this.#look([item]), (then) => judge(this.#options.lengths.of(item) !== null, then));
  }

  #opened(now: number): boolean {
    if (this.#playout !== null) return true;
    if (!isDue(this.#openAt, now, RETRY_MS)) return false;
    this.#openAt = now + RETRY_MS;
    let playout: Playout | null = null;
    const listener: PlayoutListener = {
      onAir: (cued) => this.#work.do((then) => this.#went(cued, then)),
      onEnding: (cued, endsAt, mediaEnd) => this.#work.do(() => this.#learn(cued, endsAt, mediaEnd)),
      onEnded: (cued) => this.#work.do((then) => this.#ended(cued, then)),
      onFailed: (cued, reason) => this.#work.do((then) => this.#gaveUp(cued, reason, then)),
    };
    try {
      playout = this.#options.open(this.#settings, listener, (reason) => this.#work.do((then) => this.#lost(playout, reason, then)));
    } catch (error) {
      this.trouble.tell('', `the stream cannot begin: ${messageOf(error)}`);
      return false;
    }
    this.#playout = playout;
    this.trouble.over('', 'the stream has begun');
    return true;
  }

  #lost(playout: Playout | null, reason: string, now: number): void {
    if (playout === null || playout !== this.#playout) return;
    playout.close();
    this.#playout = null;
    this.#air = null;
    this.#cue = null;
    this.#openAt = now + RETRY_MS;
    this.#options.logger.warn({ reason }, `the stream was ended: ${reason}`);
  }

  #cueItem(item: ScheduleItem, slot: Slot, now: number): void {
    const cue = this.#cue;
    if (cue?.kind === 'program' && cue.slot === slot) return;
    const late = now - slot.startsAt;
    const at = late > 0 && late < LATE_MS ? now : slot.startsAt;
    if (cue?.kind === 'program' && cue.cued.url === item.url && cue.cued.from === item.start && cue.cued.at === at) cue.slot = slot;
    else this.#put('program', slot, { url: item.url, from: item.start, at, until: this.#timeline.endOf(slot) });
  }

  #cueFallback(at: number): void {
    const cue = this.#cue;
    // Moved only by an item that was on air for a different time than expected.
    const stands = cue?.kind === 'fallback' && cue.slot.program === this.#fallback.program && cue.cued.at <= at;
    const slot = this.#fallback.slot(at);
    if (stands || slot === null || slot.item === null) return;
    const { url, start } = slot.item;
    this.#put('fallback', slot, { url, from: start, at: slot.startsAt, until: this.#fallback.endOf(slot) });
  }

  #put(kind: Cue['kind'], slot: Slot, cued: CuedItem): void {
    this.#cue = { kind, slot, cued, cuedAt: this.#options.clock.now(), until: cued.until };
    this.#playout?.cue(cued);
  }

  #takeBack(): void {
    if (this.#cue === null) return;
    this.#cue = null;
    this.#playout?.cue(null);
  }

  #endAt(air: Cue, end: number): void {
    if (air.until === end) return;
    air.until = end;
    this.#playout?.endAt(end);
  }

  #went(cued: CuedItem, now: number): void {
    const cue = this.#cue;
    if (cue?.cued !== cued) return;
    this.#air = cue;
    this.#cue = null;
    this.#options.logger.debug({ url: cued.url, kind: cue.kind }, 'on air');
    if (cue.kind === 'fallback') {
      this.#fallback.went(cue.slot);
      return;
    }
    this.#skipped = 0;
    this.#fallback.rewind();
    this.#vain = null;
    this.#failed.delete(cue.slot);
    this.trouble.over(cued.url, `${cued.url} is on air again`);
    // By the clock of the media it may be a moment early.
    if (cue.slot === this.#next && cue.slot.startsAt - now < LATE_MS) this.#enter(cue.slot);
  }

  /** The current item ends with its media. */
  #learn(cued: CuedItem, endsAt: number, mediaEnd: number | null): void {
    const air = this.#air;
    if (air?.cued !== cued) return;
    const { slot } = air;
    const timeline = air.kind === 'program' ? this.#timeline : this.#fallback;
    if (timeline.endOf(slot) - endsAt < PUNCTUAL_MS) return;
    slot.length = Math.max(0, endsAt - slot.startsAt);
    // Not by the wall clock: if that was set, the file would become shorter for good.
    if (mediaEnd !== null && slot.item !== null && !isLive(slot.item)) this.#options.lengths.learn(slot.item, mediaEnd);
    if (air.kind === 'fallback') this.#endAt(air, endsAt);
    else if (slot === this.#slot) this.#next = null;
  }

  #ended(cued: CuedItem, now: number): void {
    if (this.#cue?.cued === cued) this.#gaveUp(cued, 'there is nothing in it', now);
    const air = this.#air;
    if (air?.cued !== cued) return;
    this.#air = null;
    const { slot } = air;
    if (air.kind === 'fallback') return;
    const early = this.#timeline.endOf(slot) - now;
    if (slot !== this.#slot || slot.item === null || early < PUNCTUAL_MS) return;
    if (isLive(slot.item)) {
      this.#fail(slot, 'the stream has ended', now);
      return;
    }
    if (Number.isFinite(early)) this.trouble.tell(slot.item.url, `${slot.item.url} ended ${Math.round(early)} ms early`);
    slot.length = Math.max(0, now - slot.startsAt);
    this.#next = null;
  }

  #gaveUp(cued: CuedItem, reason: string, now: number): void {
    const cue = this.#cue?.cued === cued ? this.#cue : this.#air;
    if (cue?.cued !== cued) return;
    if (cue === this.#cue) this.#cue = null;
    else this.#air = null;
    if (cue.kind === 'program') this.#fail(cue.slot, reason, now);
    else this.#failFallback(cue.slot, reason, now);
  }

  /** The item of a slot gives way to the fallback program, or to the next one. */
  #fail(slot: Slot, reason: string, now: number): void {
    const { item, program } = slot;
    if (item === null || program === null || (slot !== this.#slot && slot !== this.#next)) return;
    const skips = !item.fallbackOnErr || (!this.#fallback.exists && !isLive(item));
    const instead = skips ? 'the next item' : this.#fallback.exists ? 'the fallback program' : 'nothing';
    this.trouble.tell(item.url, `${item.url} cannot be played, ${instead} is on instead: ${reason}`);
    if (!skips) {
      this.#failed.set(slot, now + RETRY_MS);
      return;
    }
    this.#skipped += 1;
    // When all of them have failed, or very many, there is no hurry.
    const held = this.#skipped >= Math.min(program.items.length, MAX_SKIPPED);
    if (held) {
      this.#skipped = 0;
      this.#failed.set(slot, Number.POSITIVE_INFINITY);
    }
    slot.length = Math.max(0, now - slot.startsAt) + (held ? RETRY_MS : 0);
    if (slot === this.#slot) this.#next = null;
    else if (!held) this.#next = this.#timeline.after(slot, this.#timeline.endOf(slot));
  }

  #failFallback(slot: Slot, reason: string, now: number): void {
    const { item, program } = slot;
    if (program === null || program !== this.#fallback.program) return;
    if (item !== null) this.trouble.tell(item.url, `${item.url} of the fallback program cannot be played: ${reason}`);
    this.#fallback.failed(slot, now);
  }
}
