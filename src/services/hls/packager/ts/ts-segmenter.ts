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

/** Where a segmenter puts what it makes. */
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
/** The last frame before a change of the tracks may be listed as so much longer, ms, than its source said. */
const MAX_STRETCH_MS = 100;
/** However little media time it holds, a segment ends behind so many bytes: ten seconds of 100 Mbit/s. */
const MAX_SEGMENT_BYTES = 128 * 1024 * 1024;

/** Tells its sink within `push`, `change` and `finish`; it has no timer and needs no closing. */
export class TsSegmenter {
  readonly #schedule: SlotSchedule;
  readonly #numberOf: (slot: number) => number;
  readonly #sink: TsSegmentSink;
  readonly #output = new TsBuffer();
  readonly #muxer: TsMuxer;
  #variant: HlsVariant;
  #leads: boolean;
  #segment: OpenSegment | null = null;
  /** The open segment before a change of tracks: its length is known with the first frame after it, and players rely on it. */
  #ending: OpenSegment | null = null;
  /** Where the frames end, ms; of variants without video the audio that leads. */
  #leadEnd = 0;
  /** Null before the first segment. */
  #nextNumber: number | null = null;
  /** Of the last finished segment. */
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
    const isLead = packet.track.id === this.#leadTrackId();
    if (isLead && !this.#followLead(packet)) return;
    if (!isLead && packet.track.type === 'audio') this.#followAudio(packet);
    if (this.#segment === null || (packet.track.type === 'data' && packet.event === undefined && !isId3(packet.data))) return;
    try {
      this.#muxer.writePacket(packet, this.#output);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#brokenPackets += 1;
    }
    if (this.#output.length >= PIECE_LENGTH) this.#flush();
  }

  /** Ends the open segment where it is, if there is one. */
  finish(): void {
    if (this.#ending !== null) this.#conclude(this.#ending, this.#ending.end);
    if (this.#segment !== null) this.#close(this.#segment.end);
  }

  /** Opens and closes segments; false when the packet is not to be written because no decoder could start at it. */
  #followLead(packet: Packet): boolean {
    const { timebase } = packet.track;
    const time = toMilliseconds(packet.pts, timebase);
    const open = this.#segment;
    if (open === null) {
      if (!packet.keyframe) return false;
      this.#open(time, this.#schedule.slotAt(time));
    } else if (
      open.bytes >= MAX_SEGMENT_BYTES ||
      this.#schedule.cutsAt({ slot: open.slot, start: open.start, time, keyframe: packet.keyframe, leads: this.#leads })
    ) {
      this.#close(time);
      this.#open(time, open.slot + 1);
    }
    this.#leadEnd = time + toMilliseconds(packet.duration, timebase);
    if (this.#segment !== null) this.#segment.end = Math.max(this.#segment.end, this.#leadEnd);
    return true;
  }

  /** Goes on without frames while these pause. */
  #followAudio(packet: Packet): void {
    const { timebase } = packet.track;
    const time = toMilliseconds(packet.pts, timebase);
    const open = this.#segment;
    if (open === null || time - this.#leadEnd < PAUSE_MS) return;
    if (
      open.bytes >= MAX_SEGMENT_BYTES ||
      this.#schedule.cutsAt({ slot: open.slot, start: open.start, time, keyframe: true, leads: this.#leads })
    ) {
      this.#close(time);
      this.#open(time, open.slot + 1);
    }
    if (this.#segment !== null) this.#segment.end = time + toMilliseconds(packet.duration, timebase);
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
      // A segment that was cut because tracks changed goes on in the same slot.
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
