/** Events of a stream on their way to its data track: judged, given a time, and breaks brought to their end. */
import type { Packet } from '../media/packet.ts';
import { toMilliseconds } from '../media/timebase.ts';
import { isMarker } from '../media/timed-event.ts';
import { type DataTrack, isVideoTrack, type Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { TokenBucket } from '../util/token-bucket.ts';
import { type BreakMarker, readMarker, returnOf } from './break-marker.ts';
import type { SourceEvent } from './ingest.ts';

/** Rate of events of one stream, including those of its source. */
const EVENTS = { burst: 100, perSecond: 50 } as const;
/** Maximum that fits into one PES packet with a length. */
export const MAX_EVENT_BYTES = 60_000;
/** Breaks of one stream that end by themselves, at once. */
const MAX_RETURNS = 16;
/** Markers do not wait for keyframes that are further apart than this, seconds. */
const MAX_LEAD = 10;
/** Maximum distance of a keyframe from its expected time, seconds. */
const JITTER = 0.02;

/** Counts of accepted and refused events of a stream. */
export interface EventCounters {
  /** Events passed on. */
  carried: number;
  /** Too large, too many, or before there was media. */
  refused: number;
  /** Events whose data does not have the declared format. */
  malformed: number;
}

/** Where keyframes of the source are, seconds of the timeline. */
export interface Keyframes {
  /** The last one; NaN: none has come. */
  readonly keyframeAt: number;
  /** Time between keyframes; NaN: unknown. */
  readonly keyframeSeconds: number;
}

/** Keyframes of the leading video track; null without video. */
export function keyframesOf(stream: { readonly tracks: readonly Track[]; figures(trackId: number): Keyframes }): Keyframes | null {
  const video = stream.tracks.find(isVideoTrack);
  return video === undefined ? null : stream.figures(video.id);
}

/** Everything belongs to the stream. */
export interface EventInjectorOptions {
  readonly clock: Clock;
  readonly router: { readonly eventTrack: DataTrack | null; readonly end: number; timeOf(seconds: number): number | null };
  /** Keyframe times of the leading video track; null without video. */
  readonly keyframes: () => Keyframes | null;
  /** Frames of the source reach viewers as they are, so that segments can be cut at its keyframes alone. */
  readonly passesVideo: () => boolean;
  readonly onPacket: (packet: Packet, urgent: boolean) => void;
}

interface Return {
  /** End of the break, ms of the timeline. */
  readonly at: number;
  readonly marker: BreakMarker;
  /** Same as at the beginning: both ends of a break bypass the delay, or neither does. */
  readonly urgent: boolean;
  readonly ofSource: boolean;
}

/** Puts events onto the data track of one inbound stream. Costs nothing while there are no events. */
export class EventInjector {
  readonly counters: EventCounters = { carried: 0, refused: 0, malformed: 0 };
  readonly #options: EventInjectorOptions;
  readonly #budget = new TokenBucket(EVENTS);
  #returns: Return[] = [];
  /** Earliest end of a break; infinite without breaks. */
  #nextReturn = Number.POSITIVE_INFINITY;

  constructor(options: EventInjectorOptions) {
    this.#options = options;
  }

  /** Breaks are open: `pass` has to be called. */
  get waits(): boolean {
    return this.#returns.length > 0;
  }

  /** Counts an event; false when it exceeds the limits. */
  admits({ data }: SourceEvent): boolean {
    const fits = data.length <= MAX_EVENT_BYTES && this.#options.router.eventTrack !== null;
    if (fits && this.#budget.take(this.#options.clock.monotonic())) return true;
    this.counters.refused += 1;
    return false;
  }

  /** Takes an admitted event when all earlier items have been processed. */
  carry(event: SourceEvent, urgent: boolean): void {
    const track = this.#options.router.eventTrack;
    if (track === null) {
      this.counters.refused += 1;
      return;
    }
    try {
      const own = event.at === null ? null : this.#options.router.timeOf(event.at);
      if (isMarker(event)) this.#mark(event, track, own, urgent);
      else this.#emit(event, track, own === null ? this.#now : own * 1000, urgent);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.counters.malformed += 1;
    }
  }

  /** A packet of the stream has passed: breaks that are about to end are ended. */
  pass(packet: Packet): void {
    const until = toMilliseconds(packet.dts, packet.track.timebase) + this.#lead * 1000;
    if (this.#nextReturn > until) return;
    const due = this.#returns.filter(({ at }) => at <= until);
    this.#keep(this.#returns.filter((each) => !due.includes(each)));
    const track = this.#options.router.eventTrack;
    if (track === null) return;
    for (const { at, marker, urgent } of due) {
      const event = { format: marker.format, target: 'all', data: returnOf(marker) } as const;
      this.#emit(event, track, this.#cutAt(at / 1000) * 1000, urgent);
    }
  }

  /** Call when the source changes: breaks of the previous source no longer end automatically. Breaks of the API are not affected. */
  forget(): void {
    this.#keep(this.#returns.filter(({ ofSource }) => !ofSource));
  }

  #keep(returns: Return[]): void {
    this.#returns = returns;
    this.#nextReturn = returns.reduce((first, { at }) => Math.min(first, at), Number.POSITIVE_INFINITY);
  }

  /** The break begins at the first keyframe where viewers can be switched: one keyframe interval ahead, unless the event has a time. */
  #mark(event: SourceEvent, track: DataTrack, own: number | null, urgent: boolean): void {
    const marker = readMarker(event.format, event.data);
    if (marker === null) return;
    const at = own ?? this.#cutAt(this.#now / 1000 + this.#lead);
    const returns = this.#returns.filter(
      ({ marker: { format, id } }) => format !== marker.format || id !== marker.id || marker.type === 'cont',
    );
    if (marker.returns && event.settled !== true && returns.length < MAX_RETURNS)
      returns.push({ at: at * 1000 + marker.duration, marker, urgent, ofSource: event.ofSource === true });
    this.#keep(returns);
    this.#emit(event, track, marker.type === 'cont' ? this.#now : at * 1000, urgent);
  }

  /** The first time at or after `seconds` at which all renditions can have a keyframe. */
  #cutAt(seconds: number): number {
    const keyframes = this.#options.keyframes();
    if (keyframes === null || !this.#options.passesVideo()) return seconds;
    const { keyframeAt, keyframeSeconds } = keyframes;
    if (!(keyframeSeconds > 0) || keyframeSeconds > MAX_LEAD) return seconds;
    return keyframeAt + Math.ceil((seconds - keyframeAt - JITTER) / keyframeSeconds) * keyframeSeconds;
  }

  #emit(event: Omit<SourceEvent, 'at'>, track: DataTrack, pts: number, urgent: boolean): void {
    const { format, target, keyframeOnly, data } = event;
    const described = { format, target, ...(keyframeOnly !== undefined && { keyframeOnly }) };
    this.counters.carried += 1;
    const dts = Math.round(this.#now);
    this.#options.onPacket({ track, pts: Math.round(pts), dts, duration: 0, keyframe: true, data, event: described }, urgent);
  }

  /** ms of the timeline. */
  get #now(): number {
    return this.#options.router.end * 1000;
  }

  /** How far ahead of the media a marker is sent, seconds. */
  get #lead(): number {
    const seconds = this.#options.keyframes()?.keyframeSeconds ?? 0;
    return seconds > 0 ? Math.min(seconds, MAX_LEAD) : 0;
  }
}
