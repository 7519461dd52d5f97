/** Packages one track: cuts it, writes fragments, stores their bytes and reports the servable resources. */
import type { BoxWriter } from '../../../../containers/isobmff/box-writer.ts';
import { type FragmentSample, writeFragmentHeader } from '../../../../containers/isobmff/fragment.ts';
import { buildInitSegment } from '../../../../containers/isobmff/init-segment.ts';
import { hasSampleEntry } from '../../../../containers/isobmff/sample-entry.ts';
import type { Span } from '../../../../delivery/feed/messages.ts';
import type { Packet } from '../../../../media/packet.ts';
import type { SegmentedTrack } from '../../../../media/segment-mark.ts';
import { rescale, type Timebase, toMilliseconds } from '../../../../media/timebase.ts';
import { type AudioTrack, isMediaTrack, type Track, type VideoTrack } from '../../../../media/track.ts';
import type { LlhlsUpdate } from '../../wire/fmp4/update.ts';
import type { CutSchedule } from './cut-schedule.ts';
import type { TrackProgress } from './readiness.ts';
import { createTimeline, type SampleTimeline, type TimedSample } from './sample-timeline.ts';
import type { SegmentLimits } from './segment-limits.ts';
import type { BegunSegment } from './segment-numbering.ts';
import type { CutPart, SegmentSink } from './segment-sink.ts';
import { Segmenter } from './segmenter.ts';
import { ShortRest } from './short-rest.ts';
import type { TimedMetadata } from './timed-metadata.ts';

/** Every file holds one track, so its number inside the file is always the same. */
const FILE_TRACK_ID = 1;

/** Sequence numbers of fragments reserved for a segment. */
const PARTS_PER_SEGMENT = 4096;

/** The track can be packaged: its codec has a sample entry and its configuration is known. */
export function isServableInFmp4(track: Track): track is VideoTrack | AudioTrack {
  return isMediaTrack(track) && hasSampleEntry(track);
}

/** A stream as its tracks see it. */
export interface PackagingContext {
  readonly chunkDuration: number;
  readonly schedule: CutSchedule;
  readonly limits: SegmentLimits;
  readonly metadata: TimedMetadata;
  /** Another server's decisions for the track; undefined: none. */
  readonly decided: (trackId: number) => SegmentedTrack | undefined;
  /** Discontinuities before the first segment. */
  readonly discontinuities: () => number;
  /** ms added to all times in fragments, so that none is negative. */
  readonly offset: number;
  /** Scratch memory for fragment headers, shared by the tracks. */
  readonly writer: BoxWriter;
  store(chunks: readonly Uint8Array[]): readonly Span[];
  emit(update: LlhlsUpdate): void;
  /** A segment begins, which may be listed later. */
  began(trackId: number, segment: BegunSegment): void;
  /** A video segment began without a keyframe. */
  dependentSegment(): void;
}

/** Lives as long as its track; the window of the stream releases the stored bytes. */
export class TrackPackager implements SegmentSink {
  readonly #context: PackagingContext;
  readonly #segmenter: Segmenter;
  readonly #rest: ShortRest;
  #track: VideoTrack | AudioTrack;
  #timeline: SampleTimeline;
  #generation = 0;
  #parts = 0;
  #duration = 0;
  #segments = 0;
  #segmentBytes = 0;
  #peakBitrate = 0;
  #longestSegment = 0;
  #decodedUntil = Number.NEGATIVE_INFINITY;
  #startTime = 0;
  /** End of the written samples, ticks; null before the first sample of a configuration. */
  #writtenEnd: number | null = null;
  /** Packets left out because their time lies before the stream's beginning. */
  discarded = 0;

  constructor(track: VideoTrack | AudioTrack, context: PackagingContext) {
    this.#track = track;
    this.#context = context;
    this.#timeline = createTimeline(track, context.offset);
    const { partTicks = 0, generation = 0 } = context.decided(track.id) ?? {};
    this.#generation = generation;
    this.#rest = new ShortRest((update) => this.#list(update));
    this.#rest.push({ type: 'track', trackId: track.id, mediaType: track.type });
    const discontinuities = context.discontinuities();
    if (discontinuities > 0) this.#rest.push({ type: 'discontinuities', trackId: track.id, count: discontinuities });
    this.#segmenter = new Segmenter({
      video: track.type === 'video',
      chunkDuration: context.chunkDuration,
      timescale: this.#timeline.timescale,
      jitter: this.#timeline.jitter,
      schedule: context.schedule,
      limits: context.limits,
      sink: this,
      partTicks,
    });
    this.#emitInit();
  }

  get track(): VideoTrack | AudioTrack {
    return this.#track;
  }

  get leads(): boolean {
    return this.#segmenter.leads;
  }

  set leads(leads: boolean) {
    this.#segmenter.leads = leads;
  }

  get started(): boolean {
    return this.#segmenter.msn >= 0;
  }

  get progress(): TrackProgress {
    return { leads: this.leads, parts: this.#parts, segments: this.#segments, duration: this.#duration };
  }

  /** Part target and number of the configuration, for other servers. */
  get decisions(): SegmentedTrack {
    return { id: this.#track.id, partTicks: this.#segmenter.partTicks, generation: this.#generation };
  }

  /** Last keyframe interval in seconds; null when unknown, 0 for audio. */
  get gop(): number | null {
    return this.#track.type === 'video' ? this.#segmenter.gop : 0;
  }

  /** Highest bit rate of a whole segment so far, container included; 0 before the first. */
  get peakBitrate(): number {
    return this.#peakBitrate;
  }

  /** Seconds. */
  get longestSegment(): number {
    return this.#longestSegment;
  }

  /** Decoding time (ms) up to which the track has been passed on. */
  get decodedUntil(): number {
    return this.#decodedUntil;
  }

  /** Presentation time (ms) of the first frame. */
  get startTime(): number {
    return this.#startTime;
  }

  /** Earliest presentation time (ms) at which a new segment of this track may begin. */
  get earliestCut(): number {
    return this.#segmenter.earliestCut;
  }

  /** True when it is already known where the next segment begins. */
  get nextCutKnown(): boolean {
    return this.started && this.#context.schedule.cut(this.#segmenter.msn + 1) !== null;
  }

  /** Decoding time (ms) before which no packet makes anything new to list: see `Segmenter.nextClose`. */
  get nextListed(): number {
    return Math.min(this.#segmenter.nextClose - this.#context.offset, this.#rest.heldUntil);
  }

  /** Takes the next packet of the track; its track object may be a newer one. */
  push(packet: Packet): void {
    if (packet.track !== this.#track && isMediaTrack(packet.track)) this.#follow(packet.track, packet);
    const sample = this.#timeline.place(packet);
    if (sample.dts < 0) {
      this.discarded += 1;
      return;
    }
    if (!this.started) this.#startTime = sample.time;
    const { timebase } = packet.track;
    if (toMilliseconds(packet.dts, timebase) >= this.#rest.heldUntil) this.#rest.release();
    this.#segmenter.push(sample);
    this.#decodedUntil = toMilliseconds(packet.dts + packet.duration, timebase);
  }

  /** Other tracks have begun a segment: see `Segmenter.passPause`. */
  passPause(): void {
    this.#segmenter.passPause();
  }

  /** Closes open parts and segments. */
  flush(): void {
    this.#segmenter.flush();
    this.listRest();
  }

  /** Lists the held-back segment: its memory belongs to the window. */
  listRest(): void {
    this.#rest.release();
  }

  segmentOpened(segment: { msn: number; time: number; discontinuity: boolean; independent: boolean }): void {
    if (!segment.independent) this.#context.dependentSegment();
    this.#open(segment, false);
  }

  gapPassed({ msn, time, duration, discontinuity }: { msn: number; time: number; duration: number; discontinuity: boolean }): void {
    // Players decode the next media from its own time on, without lead-in.
    this.#writtenEnd = null;
    this.#rest.release();
    this.#open({ msn, time, discontinuity }, true);
    this.#rest.push({ type: 'segment-close', trackId: this.#track.id, duration });
  }

  partTargetChosen(seconds: number): void {
    this.#rest.push({ type: 'part-target', trackId: this.#track.id, seconds });
  }

  partClosed(part: CutPart): void {
    const { writer } = this.#context;
    const chunks: Uint8Array[] = [];
    let payload = 0;
    for (const sample of part.samples) {
      chunks.push(sample.data);
      payload += sample.data.length;
    }
    writer.reset();
    this.#writeHeader(writer, part);
    chunks.unshift(writer.view());
    const spans = this.#context.store(chunks);
    this.#segmentBytes += writer.length + payload;
    const { msn, duration, independent, likelyLast, last } = part;
    // No part of the first segment can be loaded before it is complete.
    if (last && part.part > 0 && this.#segments > 0) this.#rest.hold(duration, this.#decodedUntil, this.#context.chunkDuration);
    else this.#rest.release();
    this.#rest.push({ type: 'part', trackId: this.#track.id, msn, part: part.part, duration, independent, likelyLast, spans });
  }

  segmentClosed(duration: number): void {
    this.#longestSegment = Math.max(this.#longestSegment, duration);
    // BANDWIDTH is a peak over at least half a target duration (rfc8216bis §4.1).
    if (duration >= this.#context.limits.segmentDuration / 2)
      this.#peakBitrate = Math.max(this.#peakBitrate, (this.#segmentBytes * 8) / duration);
    this.#rest.push({ type: 'segment-close', trackId: this.#track.id, duration });
  }

  #list(update: LlhlsUpdate): void {
    if (update.type === 'segment-close') this.#segments += 1;
    else if (update.type === 'part') {
      this.#parts += 1;
      this.#duration += update.duration;
    }
    this.#context.emit(update);
  }

  #open({ msn, time, discontinuity }: { msn: number; time: number; discontinuity: boolean }, gap: boolean): void {
    this.#segmentBytes = 0;
    // All tracks take the wall clock of the same moment.
    const { epoch = 0, tags = '' } = this.#context.schedule.cut(msn) ?? {};
    const { id: trackId } = this.#track;
    const described = { msn, startTime: epoch + time, generation: this.#generation, discontinuity, gap, tags };
    this.#context.began(trackId, described);
    this.#rest.push({ type: 'segment-open', trackId, ...described });
  }

  #writeHeader(writer: BoxWriter, part: CutPart): void {
    const { timescale } = this.#timeline;
    const first = part.samples[0];
    if (first === undefined) return;
    const { metadata, offset } = this.#context;
    if (!metadata.isEmpty) {
      const end = first.time + ((part.end - first.dts) / timescale) * 1000;
      metadata.write(writer, this.#track, { start: first.time, end, offset, timescale, leads: this.leads });
    }
    const video = this.#track.type === 'video';
    const baseDecodeTime = video ? Math.min(this.#writtenEnd ?? first.dts, first.dts) : first.dts;
    const samples = fragmentSamples(part, baseDecodeTime);
    this.#writtenEnd = samples.reduce((end, sample) => end + sample.duration, baseDecodeTime);
    // The same at all servers that number alike.
    const sequence = (part.msn * PARTS_PER_SEGMENT + part.part + 1) >>> 0;
    writeFragmentHeader(writer, { trackId: FILE_TRACK_ID, sequence, baseDecodeTime, video, samples });
  }

  /** The track object changed: only what decoders must know makes a new init segment. */
  #follow(track: VideoTrack | AudioTrack, packet: Packet): void {
    const previous = this.#track;
    this.#track = track;
    if (isSameForDecoders(previous, track)) return;
    const first = this.#timeline.place(inTimebase(packet, previous.timebase));
    this.#timeline = createTimeline(track, this.#context.offset);
    this.#segmenter.changeTimeline(this.#timeline.timescale, this.#timeline.jitter, first);
    this.#writtenEnd = null;
    this.#generation += 1;
    this.#emitInit();
  }

  #emitInit(): void {
    const bytes = buildInitSegment(this.#track, { timescale: this.#timeline.timescale, trackId: FILE_TRACK_ID });
    this.#rest.push({ type: 'init', trackId: this.#track.id, generation: this.#generation, bytes });
  }
}

/**
 * The samples of `part`, decoded back to back from `start` (ticks). The duration of a part's last sample is an estimate, because the next
 * frame is not known yet. If that frame comes later, its decoding time stays at the estimate and its composition offset makes up for it:
 * browsers take a gap of two frames in decoding times for a discontinuity and drop everything up to the next keyframe (Media Source
 * Extensions, coded frame processing, step 1.6). A frame that comes earlier overlaps, which browsers accept.
 */
function fragmentSamples(part: CutPart, start: number): FragmentSample[] {
  const { samples, end, shownUntil } = part;
  const times = shownUntil === null ? null : lateDecodingTimes(samples, end, shownUntil);
  let at = start;
  return samples.map((sample, index) => {
    const { dts, compositionOffset, keyframe, data } = sample;
    const shown = dts + compositionOffset;
    const next = times?.[index + 1] ?? samples[index + 1]?.dts ?? end;
    const duration = Math.max(1, Math.min(next - at, (shownUntil ?? Number.POSITIVE_INFINITY) - shown));
    const written = { size: data.length, duration, compositionOffset: shown - at, keyframe };
    at += duration;
    return written;
  });
}

/**
 * Decoding times before a change of configuration: the last frames are decoded later than they might be, so that decoding ends at `end` and
 * no frame is shown beyond `until`. Players place the next media behind both: with B-frames, decoded ahead, they would leave a gap.
 */
function lateDecodingTimes(samples: readonly TimedSample[], end: number, until: number): number[] {
  const times = samples.map(({ dts }) => dts);
  let next = end;
  for (let index = samples.length - 1; index >= 0; index -= 1) {
    const { dts = 0, compositionOffset = 0 } = samples[index] ?? {};
    const latest = next - (until - dts - compositionOffset);
    if (latest <= dts) break;
    times[index] = latest;
    next = latest;
  }
  return times;
}

function inTimebase(packet: Packet, timebase: Timebase): Packet {
  const from = packet.track.timebase;
  if (from.num === timebase.num && from.den === timebase.den) return packet;
  const [pts, dts] = [rescale(packet.pts, from, timebase), rescale(packet.dts, from, timebase)];
  return { ...packet, pts, dts, duration: rescale(packet.duration, from, timebase) };
}

function isSameForDecoders(a: VideoTrack | AudioTrack, b: VideoTrack | AudioTrack): boolean {
  if (a.type !== b.type || a.codec !== b.codec || a.codecString !== b.codecString) return false;
  if (a.timebase.num !== b.timebase.num || a.timebase.den !== b.timebase.den) return false;
  if (a.type === 'video' && b.type === 'video' && (a.width !== b.width || a.height !== b.height)) return false;
  if (a.type === 'audio' && b.type === 'audio' && (a.sampleRate !== b.sampleRate || a.channels !== b.channels)) return false;
  if (a.config === null || b.config === null) return a.config === b.config;
  return Buffer.compare(a.config, b.config) === 0;
}
