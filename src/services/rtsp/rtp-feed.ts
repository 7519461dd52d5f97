/** RTP and RTCP of one session → source tracks and packets on one time. */
import { parameterSetsOf, updateConfig } from '../../codecs/parameter-sets.ts';
import { reorderingDepth } from '../../codecs/reordering.ts';
import type { PullSink } from '../../core/pull.ts';
import { countMalformed, type MalformedCounters } from '../../ingest/malformed.ts';
import { StreamStarter } from '../../ingest/stream-starter.ts';
import { VideoCodec } from '../../media/codec.ts';
import { MPEG_90K } from '../../media/timebase.ts';
import type { Clock } from '../../util/clock.ts';
import { DecodeOrder } from '../../wire/rtp/decode-order.ts';
import type { DepacketizedUnit } from '../../wire/rtp/depacketizer.ts';
import { Reception } from '../../wire/rtp/reception.ts';
import { buildReceiverReport, parseRtcp, type SenderReport } from '../../wire/rtp/rtcp-packet.ts';
import { RtpClock } from '../../wire/rtp/rtp-clock.ts';
import { parseRtpPacket, type RtpPacket } from '../../wire/rtp/rtp-packet.ts';
import { SequenceBuffer } from '../../wire/rtp/sequence-buffer.ts';
import type { MediaDescription } from '../../wire/rtsp/rtsp-description.ts';
import { type MediaFormat, rtspTrack } from './media-track.ts';

/** Sender reports are waited for this long after the first packet. */
const REPORT_WAIT_MS = 5000;
/** Units held back while sender reports are missing. */
const MAX_HELD_UNITS = 900;
const MAX_HELD_BYTES = 16_777_216;
/** Packets behind a gap that are kept for the missing one, over UDP. */
const REORDER_DEPTH = 64;
/** Wait for a missing packet, ms: of audio, as many packets would be more than a second. */
const REORDER_WAIT_MS = 200;
/** The first packet lies at most this far, seconds, from the start that the server announced. */
const MAX_ANNOUNCED_S = 10;
/** By arrival, a restarted source lies at most this far, seconds, from its place. Reports that say more belong to another wall clock. */
const MAX_ARRIVAL_ERROR_S = 2;
/** A report moves a running track back by this much, seconds, at most: a stream takes more for a jump of the clock. */
const MAX_STEP_BACK_S = 0.4;
/** Audio and video may be this far apart, seconds, before the video is moved: reports are as inexact, and viewers do not notice. */
const MIN_DRIFT_S = 0.04;
/** A report corrects this share of the present deviation, up to this many seconds. */
const DRIFT_SHARE = 1 / 8;
const MAX_DRIFT_STEP_S = 0.05;
const USUAL_FRAME_TICKS = 3000;
/** Ours in receiver reports. */
const OWN_SSRC = 0x4d_69_6c_6c;
const OWN_NAME = 'millrace';

/** Without `ordered` packets wait for those they have overtaken. */
export interface RtpFeedOptions {
  readonly sink: PullSink;
  readonly clock: Clock;
  readonly ignoreSenderReports: boolean;
  /** The network keeps the order (interleaved data). */
  readonly ordered: boolean;
}

/** Unusable data, of all tracks together. */
export interface RtpFeedCounters extends MalformedCounters {
  /** Packets of unannounced payload types. */
  unknown: number;
}

interface FeedTrack {
  readonly id: number;
  readonly media: MediaDescription;
  readonly format: MediaFormat;
  clock: RtpClock;
  sequence: SequenceBuffer;
  ssrc: number;
  /** The next packet is the first of its source. */
  begins: boolean;
  config: Uint8Array | null;
  order: DecodeOrder | null;
  /** Timestamp of the first unit and when it came, ms of the session; null before it. */
  first: { readonly timestamp: number; readonly atMs: number } | null;
  /** `rtptime` that the server named for the beginning; null when it did not. */
  announced: number | null;
  /** The last unit that went out: its time, seconds of the session (NaN before it), and when that was, ms. */
  placed: number;
  placedAtMs: number;
  /** The last sender report of the source. */
  report: SenderReport | null;
  /** The last one of any other, whose packets may be still to come. */
  strangeReport: SenderReport | null;
  /** False while a restarted source is placed only by its arrival. */
  aligned: boolean;
  reception: Reception;
  left: boolean;
}

interface HeldUnit {
  readonly track: FeedTrack;
  readonly ticks: number;
  readonly data: Uint8Array;
}

/**
 * Audio and video have separate clocks, which only sender reports relate. Until every track has had a report, units wait; then, or when the
 * wait is over, they are passed on.
 */
export class RtpFeed {
  readonly counters: RtpFeedCounters = { malformed: 0, unknown: 0, firstFault: null };
  readonly #options: RtpFeedOptions;
  readonly #tracks = new Map<number, FeedTrack>();
  readonly #starter: StreamStarter;
  readonly #startedAt: number;
  #held: HeldUnit[] = [];
  #heldBytes = 0;
  #synchronised = false;
  #originNtp: number | null = null;
  /** When the first unit of any track came, ms of the session. */
  #waitsSince: number | null = null;

  constructor(options: RtpFeedOptions) {
    this.#options = options;
    this.#starter = new StreamStarter({ stream: options.sink });
    this.#startedAt = options.clock.monotonic();
  }

  /** Every source has said goodbye. */
  get left(): boolean {
    return this.#tracks.size > 0 && [...this.#tracks.values()].every(({ left }) => left);
  }

  /** Adds a track before the session plays. Throws `ProtocolError` when its parameters cannot be understood. */
  addTrack(id: number, media: MediaDescription, format: MediaFormat): void {
    const { config, clockRate } = format;
    this.#tracks.set(id, {
      id,
      media,
      format,
      clock: new RtpClock(clockRate),
      sequence: this.#newSequence(),
      reception: new Reception(clockRate),
      ssrc: -1,
      begins: true,
      config,
      order: null,
      first: null,
      announced: null,
      placed: Number.NaN,
      placedAtMs: 0,
      report: null,
      strangeReport: null,
      aligned: true,
      left: false,
    });
    this.#starter.expect([...this.#tracks.keys()], new Set());
    if (config !== null || !format.needsConfig) this.#starter.describe(rtspTrack(id, media, format, config), { tell: false });
  }

  /** The server has said at which timestamp a track begins. */
  announceStart(id: number, rtpTime: number): void {
    const track = this.#tracks.get(id);
    if (track !== undefined) track.announced = rtpTime;
  }

  /** The session plays: announces the tracks at once when the description told everything. */
  start(): void {
    this.#starter.startIfComplete();
  }

  /** A packet of a track. */
  pushRtp(id: number, data: Uint8Array): void {
    this.#options.sink.countBytes(data.length);
    const track = this.#tracks.get(id);
    if (track === undefined) return;
    this.#guarded(() => {
      const packet = parseRtpPacket(data);
      if (packet.payloadType !== track.media.payloadType) {
        this.counters.unknown += 1;
        return;
      }
      if (packet.ssrc !== track.ssrc) this.#followSource(track, packet.ssrc);
      const now = this.#now;
      track.reception.arrived(packet.timestamp, now);
      track.sequence.push(packet, now, (ordered, lost) => this.#depacketize(track, ordered, lost));
    });
  }

  /** A control packet of a track. */
  pushRtcp(id: number, data: Uint8Array): void {
    this.#options.sink.countBytes(data.length);
    const track = this.#tracks.get(id);
    if (track === undefined) return;
    this.#guarded(() => {
      const { reports, byes } = parseRtcp(data);
      const report = reports.find(({ ssrc }) => ssrc === track.ssrc) ?? reports[0];
      if (report !== undefined) this.#takeReport(track, report);
      if (byes.length > 0 && (track.ssrc < 0 || byes.includes(track.ssrc))) track.left = true;
    });
  }

  /** The receiver report for the sender of a track. */
  receiverReport(id: number): Uint8Array | null {
    const track = this.#tracks.get(id);
    if (track === undefined || track.ssrc < 0) return null;
    return buildReceiverReport(OWN_SSRC, OWN_NAME, [track.reception.report(track.ssrc, track.sequence, this.#now)]);
  }

  /** Looks at the clock; call it some times a second. */
  checkDeadlines(): void {
    this.#guarded(() => {
      if (!this.#synchronised && this.#waitsSince !== null && this.#now - this.#waitsSince >= REPORT_WAIT_MS) this.#goOnWithoutReports();
      for (const track of this.#tracks.values()) {
        track.sequence.giveUp(this.#now - REORDER_WAIT_MS, (ordered, lost) => this.#depacketize(track, ordered, lost));
      }
      this.#starter.checkStart(this.#options.clock.monotonic());
    });
  }

  /** Milliseconds of the session. */
  get #now(): number {
    return this.#options.clock.monotonic() - this.#startedAt;
  }

  #newSequence(): SequenceBuffer {
    return new SequenceBuffer(this.#options.ordered ? 0 : REORDER_DEPTH);
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      countMalformed(this.counters, error);
    }
  }

  /** A camera whose encoder restarts sends from another source within the same session: numbers and timestamps begin anywhere. */
  #followSource(track: FeedTrack, ssrc: number): void {
    const begun = track.ssrc >= 0;
    track.ssrc = ssrc;
    if (!begun) return;
    track.begins = true;
    track.sequence = this.#newSequence();
    track.reception = new Reception(track.format.clockRate);
    track.left = false;
    track.clock = new RtpClock(track.format.clockRate);
    track.first = null;
    track.announced = null;
    track.aligned = this.#options.ignoreSenderReports;
    // They have times of a clock that is gone.
    this.#held = this.#held.filter((unit) => unit.track !== track);
    this.#heldBytes = this.#held.reduce((bytes, { data }) => bytes + data.length, 0);
    const early = track.strangeReport;
    track.report = null;
    track.strangeReport = null;
    if (early?.ssrc === ssrc) this.#takeReport(track, early);
  }

  #depacketize(track: FeedTrack, packet: RtpPacket, lost: boolean): void {
    // The rest of the previous source's open unit will never come.
    const isCut = lost || track.begins;
    track.begins = false;
    this.#guarded(() => track.format.depacketizer.push(packet, isCut, (unit) => this.#takeUnit(track, unit)));
  }

  #takeUnit(track: FeedTrack, { timestamp, data }: DepacketizedUnit): void {
    // Not for each packet: payloads that cannot be read are no media.
    this.#options.sink.heard();
    if (track.format.needsConfig) this.#followConfig(track, data);
    const ticks = track.clock.unwrap(timestamp);
    track.first ??= { timestamp, atMs: this.#now };
    this.#waitsSince ??= track.first.atMs;
    if (!this.#synchronised && (this.#options.ignoreSenderReports || this.#tracks.size === 1)) this.#goOnWithoutReports();
    if (this.#synchronised) {
      this.#emit(track, ticks, data);
      return;
    }
    this.#held.push({ track, ticks, data });
    this.#heldBytes += data.length;
    if (this.#held.length >= MAX_HELD_UNITS || this.#heldBytes >= MAX_HELD_BYTES) this.#goOnWithoutReports();
  }

  #followConfig(track: FeedTrack, data: Uint8Array): void {
    const { codec } = track.format;
    if (codec !== VideoCodec.H264 && codec !== VideoCodec.H265) return;
    const sets = parameterSetsOf(codec, data);
    const config = sets === null ? track.config : updateConfig(codec, track.config, sets);
    if (config === null || config === track.config) return;
    this.#starter.describe(rtspTrack(track.id, track.media, track.format, config), { tell: false });
    track.config = config;
    track.order = null;
  }

  #takeReport(track: FeedTrack, report: SenderReport): void {
    if (report.ssrc !== track.ssrc && track.ssrc >= 0) {
      track.strangeReport = report;
      return;
    }
    track.report = report;
    track.reception.senderReport(report.compactNtp, this.#now);
    if (this.#synchronised) {
      this.#align(track);
      this.#keepInStep(track);
    }
    // The first relation is kept, except for the drift of the clocks: following each report would make time jitter.
    if (this.#synchronised || track.clock.synchronised) return;
    this.#originNtp ??= report.ntp;
    track.clock.follow(report, this.#originNtp);
    if ([...this.#tracks.values()].every(({ clock }) => clock.synchronised)) this.#release();
  }

  /**
   * Brings a track whose source restarted into step with another track, once both have had a report; a large distance takes several
   * reports.
   */
  #align(track: FeedTrack): void {
    if (track.aligned) return;
    for (const other of this.#tracks.values()) {
      const error = errorBetween(track, other);
      if (error === null) continue;
      const step = Math.max(error, -MAX_STEP_BACK_S);
      move(track, step);
      track.aligned = step === error;
      return;
    }
  }

  /** Clocks of audio and video run apart, by seconds in some days: the video follows, because audio has to stay without gaps. */
  #keepInStep(track: FeedTrack): void {
    if (this.#options.ignoreSenderReports || !track.aligned || track.media.type !== 'video') return;
    for (const other of this.#tracks.values()) {
      const error = other.media.type === 'audio' ? errorBetween(track, other) : null;
      if (error === null) continue;
      const step = Math.max(-MAX_DRIFT_STEP_S, Math.min(MAX_DRIFT_STEP_S, error * DRIFT_SHARE));
      if (Math.abs(error) > MIN_DRIFT_S) move(track, step);
      return;
    }
  }

  #goOnWithoutReports(): void {
    for (const track of this.#tracks.values()) relate(track);
    this.#release();
  }

  #release(): void {
    this.#synchronised = true;
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    for (const { track, ticks, data } of held) this.#emit(track, ticks, data);
  }

  #emit(track: FeedTrack, ticks: number, data: Uint8Array): void {
    // A track that was silent until now, or whose source restarted.
    if (!track.clock.synchronised) {
      relate(track);
      this.#align(track);
    }
    track.placed = track.clock.seconds(ticks);
    track.placedAtMs = this.#now;
    const pts = track.placed * MPEG_90K.den;
    if (track.media.type !== 'video') {
      this.#starter.push({ trackId: track.id, pts, dts: pts, keyframe: true, data });
      return;
    }
    track.order ??= new DecodeOrder(reorderingDepth(track.format.codec, track.config), USUAL_FRAME_TICKS);
    const shown = Math.round(pts);
    this.#starter.push({ trackId: track.id, pts: shown, dts: track.order.next(shown), keyframe: null, data });
  }
}

/** How much later than it lies, seconds, a track belongs by its last report and that of another one; null when these do not tell. */
function errorBetween(track: FeedTrack, other: FeedTrack): number | null {
  const { clock, report } = track;
  if (other === track || !clock.synchronised || report?.ssrc !== track.ssrc) return null;
  if (!other.clock.synchronised || other.report?.ssrc !== other.ssrc) return null;
  const wanted = other.clock.secondsAt(other.report.rtpTimestamp) + report.ntp - other.report.ntp;
  const error = wanted - clock.secondsAt(report.rtpTimestamp);
  return Math.abs(error) > MAX_ARRIVAL_ERROR_S ? null : error;
}

/** Makes a track with a report later by `seconds`. */
function move({ clock, report }: FeedTrack, seconds: number): void {
  if (report !== null) clock.synchronise(report.rtpTimestamp, clock.secondsAt(report.rtpTimestamp) + seconds);
}

/**
 * Relates the clock of a track to the session: by the start that the server announced, else by the arrival of the first unit; for a source
 * that began again, by the time since the last unit of the previous one. Some servers announce a start unrelated to their packets.
 */
function relate({ announced, first, clock, placed, placedAtMs }: FeedTrack): void {
  if (first === null) return;
  if (!Number.isNaN(placed)) {
    clock.synchronise(first.timestamp, placed + (first.atMs - placedAtMs) / 1000);
    return;
  }
  const isRight = announced !== null && Math.abs((first.timestamp - announced) | 0) < clock.rate * MAX_ANNOUNCED_S;
  if (isRight) clock.synchronise(announced, 0);
  else clock.synchronise(first.timestamp, first.atMs / 1000);
}
