/** Muxes the tracks of one variant and cuts the result into segments. */

import { sameElementary } from '../../../../containers/mpegts/elementary.ts';
import { isId3 } from '../../../../containers/mpegts/id3-units.ts';
import { TsBuffer } from '../../../../containers/mpegts/ts-buffer.ts';
import { TsMuxer } from '../../../../containers/mpegts/ts-muxer.ts';
import type { Span } from '../../../../delivery/feed/messages.ts';
import { appendSpan } from '../../../../delivery/feed/spans.ts';
import type { Packet } from '../../../../media/packet.ts';
import { toMilliseconds } from '../../../../media/timebase.ts';
import type { Track } from '../../../../media/track.ts';
import { ProtocolError } from '../../../../util/protocol-error.ts';
import type { SlotSchedule } from './slot-schedule.ts';
import type { HlsVariant } from './variants.ts';

/** A segment as the segmenter made it. */
export interface FinishedSegment {
  readonly number: number;
  /** Media time of its first frame, ms. */
  readonly start: number;
  /** Seconds. */
  readonly duration: number;
  readonly discontinuity: boolean;
  readonly discontinuities: number;
  /** Lines of the playlist before it. */
  readonly tags: string;
  readonly spans: readonly Span[];
}

/** The output of a segmenter. */
export interface TsSegmentSink {
  /** Keeps bytes; they may be overwritten afterwards. */
  store(chunks: readonly Uint8Array[]): readonly Span[];
  finished(variantId: string, segment: FinishedSegment): void;
}

interface OpenSegment {
  readonly number: number;
  readonly slot: number;
  readonly start: number;
  /** End of the last frame of the leading track so far. */
  end: number;
  readonly discontinuity: boolean;
  readonly spans: Span[];
  /** Stored so far. */
  bytes: number;
}

/** Bytes are handed on in pieces of about this size: copying a whole segment at once would hold everything else up. */
const PIECE_LENGTH = 188 * 1024;
/**
 * When audio is this far ahead of video, ms, video pauses: segments then end by the audio, so that the playlist continues and no segment
 * exceeds the target duration. LL-HLS waits equally long for late frames.
 */
const PAUSE_MS = 3000;
/** A segment waits for audio that belongs to it, which an encoder may make late, until the frames are so far ahead of its end, ms. */
const MAX_AUDIO_LAG_MS = 3000;
/** Maximum of packets that may wait meanwhile, however short their time is. */
const MAX_AHEAD = 4000;
/** Timebases round. */
const ROUNDING_MS = 1;
/** Maximum time, ms, by which the last frame before a change of tracks is listed as longer than its packet says. */
const MAX_STRETCH_MS = 100;
/** Limit of a segment's bytes, however little media time it holds: ten seconds of 100 Mbit/s. */
const MAX_SEGMENT_BYTES = 128 * 1024 * 1024;

/** Calls its sink within `push`, `change` and `finish`; it has no timer and needs no closing. */
export class TsSegmenter {
  readonly #schedule: SlotSchedule;
  readonly #numberOf: (slot: number) => number;
  readonly #sink: TsSegmentSink;
  readonly #output = new TsBuffer();
  readonly #muxer: TsMuxer;
  #variant: HlsVariant;
  #leads: boolean;
  #segment: OpenSegment | null = null;
  /** The last segment before a change of tracks. Players rely on its length, which is known with the first frame after the change. */
  #ending: OpenSegment | null = null;
  /** End of the leading track, ms: the video, or the first audio of a variant without video. */
  #leadEnd = 0;
  /** End of each audio track, ms. */
  readonly #audioEnds = new Map<number, number>();
  /** The first frames of the next segment, while the audio of the open segment is still to come. */
  #ahead: Packet[] = [];
  #aheadBytes = 0;
  /** Audio has not come in time: segments do not wait for it before it is back in the open segment. */
  #isWithoutAudio = false;
  /** Null before the first segment. */
  #nextNumber: number | null = null;
  /** Slot of the last finished segment. */
  #listedSlot = -1;
  #discontinuity = false;
  #discontinuities = 0;
  #brokenPackets = 0;

  /** `leads`: this variant may decide where to cut. Throws `ProtocolError` when a decoder configuration is broken. */
  constructor(options: {
    readonly variant: HlsVariant;
    readonly leads: boolean;
    readonly schedule: SlotSchedule;
    /** Number of the first segment, which begins in `slot`; default: 0. */
    readonly numberOf?: (slot: number) => number;
    readonly sink: TsSegmentSink;
  }) {
    this.#variant = options.variant;
    this.#leads = options.leads;
    this.#schedule = options.schedule;
    this.#numberOf = options.numberOf ?? (() => 0);
    this.#sink = options.sink;
    this.#muxer = new TsMuxer(tracksOf(options.variant));
  }

  get variant(): HlsVariant {
    return this.#variant;
  }

  /** Packets that could not be muxed because they break their format. */
  get brokenPackets(): number {
    return this.#brokenPackets;
  }

  /** The tracks changed: if decoders must be reset the segment ends here and the next one begins with a discontinuity. */
  change(variant: HlsVariant, leads: boolean): void {
    this.#leads = leads;
    const before = tracksOf(this.#variant);
    const after = tracksOf(variant);
    this.#variant = variant;
    const same =
      before.length === after.length &&
      before.every((track, index) => after[index]?.id === track.id && sameElementary(track, after[index]));
    if (same) return;
    this.#waitNoMore();
    if (this.#segment !== null) {
      this.#flush();
      this.#ending = this.#segment;
      this.#segment = null;
    }
    this.#muxer.setTracks(after);
    this.#discontinuity = this.#nextNumber !== null;
  }

  /** Takes packets of any track; tracks of other variants are ignored. */
  push(packet: Packet): void {
    if (!this.#muxer.carries(packet.track.id)) return;
    if (packet.track.id === this.#leadTrackId()) this.#takeLead(packet);
    else if (packet.track.type === 'audio') this.#takeAudio(packet);
    else this.#takeData(packet);
  }

  /** Ends the open segment where it is, if there is one. */
  finish(): void {
    this.#waitNoMore();
    if (this.#ending !== null) this.#conclude(this.#ending, this.#ending.end);
    if (this.#segment !== null) this.#close(this.#segment.end);
  }

  #takeLead(packet: Packet): void {
    if (this.#ahead.length > 0) this.#wait(packet);
    else if (this.#followLead(packet)) this.#write(packet);
  }

  #takeAudio(packet: Packet): void {
    const { id, timebase } = packet.track;
    const time = toMilliseconds(packet.pts, timebase);
    this.#audioEnds.set(id, time + toMilliseconds(packet.duration, timebase));
    if (this.#segment !== null && time >= this.#segment.start) this.#isWithoutAudio = false;
    const cut = this.#nextCut;
    if (cut !== null && time >= cut - ROUNDING_MS && !this.#lacksAudio(cut)) this.#resume();
    this.#followAudio(packet);
    this.#write(packet);
    const end = this.#nextCut;
    if (end !== null && !this.#lacksAudio(end)) this.#resume();
  }

  #takeData(packet: Packet): void {
    const cut = this.#nextCut;
    if (cut !== null && toMilliseconds(packet.pts, packet.track.timebase) >= cut) this.#wait(packet);
    else if (packet.event !== undefined || isId3(packet.data)) this.#write(packet);
  }

  #write(packet: Packet): void {
    if (this.#segment === null) return;
    try {
      this.#muxer.writePacket(packet, this.#output);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#brokenPackets += 1;
    }
    if (this.#output.length >= PIECE_LENGTH) this.#flush();
  }

  /** End of the open segment, ms, which waits for its audio; null while nothing waits. */
  get #nextCut(): number | null {
    const [first] = this.#ahead;
    return first === undefined ? null : toMilliseconds(first.pts, first.track.timebase);
  }

  /** Audio from before `time`, ms, is still to come. */
  #lacksAudio(time: number): boolean {
    if (this.#isWithoutAudio || this.#variant.video === null) return false;
    return this.#variant.audios.some(({ id }) => (this.#audioEnds.get(id) ?? Number.NEGATIVE_INFINITY) < time - ROUNDING_MS);
  }

  #wait(packet: Packet): void {
    this.#ahead.push(packet);
    this.#aheadBytes += packet.data.length;
    const ahead = toMilliseconds(packet.pts, packet.track.timebase) - (this.#nextCut ?? 0);
    if (ahead >= MAX_AUDIO_LAG_MS || this.#aheadBytes >= MAX_SEGMENT_BYTES || this.#ahead.length >= MAX_AHEAD) this.#waitNoMore();
  }

  #waitNoMore(): void {
    if (this.#ahead.length === 0) return;
    this.#isWithoutAudio = true;
    this.#resume();
  }

  /** Ends the open segment; waiting frames enter the next segments, as far as these have their audio. */
  #resume(): void {
    const [first, ...others] = this.#ahead;
    this.#ahead = [];
    this.#aheadBytes = 0;
    if (first === undefined) return;
    this.#cut(toMilliseconds(first.pts, first.track.timebase));
    this.#lead(first);
    this.#write(first);
    for (const packet of others) this.push(packet);
  }

  /** Opens and closes segments; false when the packet is not to be written now, or not at all because no decoder could start at it. */
  #followLead(packet: Packet): boolean {
    const time = toMilliseconds(packet.pts, packet.track.timebase);
    const open = this.#segment;
    if (open === null) {
      if (!packet.keyframe) return false;
      this.#open(time, this.#schedule.slotAt(time));
    } else if (open.bytes >= MAX_SEGMENT_BYTES) this.#cut(time);
    else if (this.#schedule.cutsAt({ slot: open.slot, start: open.start, time, keyframe: packet.keyframe, leads: this.#leads })) {
      if (this.#lacksAudio(time)) {
        this.#wait(packet);
        return false;
      }
      this.#cut(time);
    }
    this.#lead(packet);
    return true;
  }

  #lead({ pts, duration, track }: Packet): void {
    this.#leadEnd = toMilliseconds(pts, track.timebase) + toMilliseconds(duration, track.timebase);
    if (this.#segment !== null) this.#segment.end = Math.max(this.#segment.end, this.#leadEnd);
  }

  /** Continues by the audio while video pauses. */
  #followAudio(packet: Packet): void {
    const { timebase } = packet.track;
    const time = toMilliseconds(packet.pts, timebase);
    const open = this.#segment;
    if (open === null || time - this.#leadEnd < PAUSE_MS) return;
    if (
      open.bytes >= MAX_SEGMENT_BYTES ||
      this.#schedule.cutsAt({ slot: open.slot, start: open.start, time, keyframe: true, leads: this.#leads })
    ) {
      this.#cut(time);
    }
    if (this.#segment !== null) this.#segment.end = time + toMilliseconds(packet.duration, timebase);
  }

  /** A segment ends at `time`, ms, and the next one begins. */
  #cut(time: number): void {
    const slot = (this.#segment?.slot ?? 0) + 1;
    this.#close(time);
    this.#open(time, slot);
  }

  #open(start: number, slot: number): void {
    const before = this.#ending;
    if (before !== null) this.#conclude(before, start > before.start && start - before.end <= MAX_STRETCH_MS ? start : before.end);
    if (this.#discontinuity) this.#discontinuities += 1;
    const number = this.#nextNumber ?? this.#numberOf(slot);
    this.#segment = { number, slot, start, end: start, discontinuity: this.#discontinuity, spans: [], bytes: 0 };
    this.#nextNumber = number + 1;
    this.#discontinuity = false;
    this.#muxer.writeTables(this.#output);
  }

  #close(end: number): void {
    const segment = this.#segment;
    if (segment === null) return;
    this.#flush();
    this.#segment = null;
    this.#conclude(segment, end);
  }

  #conclude(segment: OpenSegment, end: number): void {
    this.#ending = null;
    this.#sink.finished(this.#variant.id, {
      number: segment.number,
      start: segment.start,
      duration: Math.max(0, end - segment.start) / 1000,
      discontinuity: segment.discontinuity,
      discontinuities: this.#discontinuities,
      // A change of tracks can cut a segment within its slot; the tags of a slot are listed only once.
      tags: this.#listedSlot === segment.slot ? '' : this.#schedule.tagsOf(segment.slot),
      spans: segment.spans,
    });
    this.#listedSlot = segment.slot;
  }

  #flush(): void {
    if (this.#segment === null || this.#output.length === 0) return;
    for (const span of this.#sink.store([this.#output.view()])) appendSpan(this.#segment.spans, span);
    this.#segment.bytes += this.#output.length;
    this.#output.reset();
  }

  #leadTrackId(): number | undefined {
    return this.#variant.video?.id ?? this.#variant.audios[0]?.id;
  }
}

function tracksOf(variant: HlsVariant): Track[] {
  return [...(variant.video === null ? [] : [variant.video]), ...variant.audios, ...(variant.data === null ? [] : [variant.data])];
}
