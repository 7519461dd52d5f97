/** One track of a publisher: makes frames of packets in any order, and requests missing packets and keyframes from the sender. */
import { describeKeyframe, isKeyframe, parameterSetsOf, updateConfig } from '../../../codecs/describe.ts';
import { reorderingDepth } from '../../../codecs/reordering.ts';
import { countMalformed, type MalformedCounters } from '../../../ingest/malformed.ts';
import type { StreamStarter } from '../../../ingest/stream-starter.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { DecodeOrder } from '../../../wire/rtp/decode-order.ts';
import type { DepacketizedUnit, Depacketizer } from '../../../wire/rtp/depacketizer.ts';
import { Reception } from '../../../wire/rtp/reception.ts';
import type { ReceptionReport, SenderReport } from '../../../wire/rtp/rtcp-packet.ts';
import type { RtpPacket } from '../../../wire/rtp/rtp-packet.ts';
import { type ReceiveCounters, RtpReceiveBuffer } from '../../../wire/rtp/rtp-receive-buffer.ts';
import {
  createDepacketizer,
  type IngestCodec,
  type IngestVideoCodec,
  ingestClockRate,
  isAudioCodec,
  opusTrack,
  videoTrack,
} from './ingest-codecs.ts';
import type { IngestMedia, IngestPayload } from './ingest-negotiation.ts';
import type { LipSync, SyncedTrack } from './lip-sync.ts';
import type { VideoCapability } from './oven-capabilities.ts';

/** A request for a keyframe is repeated after this, ms. */
const KEYFRAME_RETRY_MS = 500;
/** Damaged frames are left out for at most this long, ms, while a keyframe is requested. */
const KEYFRAME_TIMEOUT_MS = 3000;
/** Frames between decoding and presentation order of a stream that reorders although its parameters say that it does not. */
const UNANNOUNCED_REORDERING = 2;
const USUAL_FRAME_TICKS = 3000;

const NOTHING: readonly number[] = [];

/** In addition to the counters of packets (`received`). */
export interface TrackCounters extends MalformedCounters {
  /** Frames left out because a frame that they refer to was lost. */
  skipped: number;
  keyframeRequests: number;
}

/** Options of a track. Starter and lip-sync are shared by all tracks of the publisher. */
export interface IngestTrackOptions {
  readonly id: number;
  readonly media: IngestMedia;
  /** Restriction identifier of a simulcast layer; empty without simulcast. */
  readonly layer: string;
  readonly starter: StreamStarter;
  readonly lipSync: LipSync;
  /** Asks for a keyframe when none came for this long, ms; 0 never does without need. */
  readonly keyframeInterval: number;
  /** Final size of its frames, if the publisher announced it. */
  readonly announced?: VideoCapability | undefined;
  /** The encoder sends B-frames; once. */
  readonly onReordered: () => void;
}

/** State that lasts while the codec stays the same. */
interface Reader {
  readonly codec: IngestCodec;
  readonly depacketizer: Depacketizer;
}

/** Takes the packets that the feed has assigned; frames go to the starter within `push`, `repeat` and `check`. Needs no closing. */
export class IngestTrack {
  readonly id: number;
  readonly media: IngestMedia;
  readonly layer: string;
  readonly counters: TrackCounters = { malformed: 0, skipped: 0, keyframeRequests: 0, firstFault: null };
  readonly #options: IngestTrackOptions;
  readonly #synced: SyncedTrack;
  #reception: Reception;
  #ssrc = -1;
  #payload: IngestPayload | null = null;
  #payloadType = -1;
  #reader: Reader | null = null;
  #buffer: RtpReceiveBuffer | null = null;
  /** Counters of the SSRCs before the present one. */
  #earlier: ReceiveCounters = { received: 0, lost: 0, late: 0, recovered: 0, requested: 0 };
  /** Packets are missing before the next that has a payload. */
  #gap = false;
  #config: Uint8Array | null = null;
  #size = { width: 0, height: 0 };
  #order: DecodeOrder | null = null;
  /** RTP timestamp of the last frame, 32 bits; null before the first of a source. */
  #lastTimestamp: number | null = null;
  #isReordered = false;
  /** Since when frames cannot be decoded, ms; null when they can. */
  #brokenSince: number | null = null;
  #keyframeAt: number | null = null;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** A viewer waits for a keyframe. */
  #isWanted = false;
  #now = 0;

  constructor(options: IngestTrackOptions) {
    const { id, media, layer, lipSync } = options;
    this.id = id;
    this.media = media;
    this.layer = layer;
    this.#options = options;
    const isAudio = media.kind === 'audio';
    const rate = ingestClockRate(isAudio ? 'OPUS' : 'H264');
    this.#synced = lipSync.add({ isAudio, rate });
    this.#reception = new Reception(rate);
    if (isAudio) options.starter.describe(opusTrack(id), { tell: false });
  }

  /** -1 before the first packet. */
  get ssrc(): number {
    return this.#ssrc;
  }

  /** Null before the first packet. */
  get codec(): IngestCodec | null {
    return this.#reader?.codec ?? null;
  }

  get received(): ReceiveCounters {
    const now = this.#buffer?.counters;
    if (now === undefined) return this.#earlier;
    return {
      received: this.#earlier.received + now.received,
      lost: this.#earlier.lost + now.lost,
      late: this.#earlier.late + now.late,
      recovered: this.#earlier.recovered + now.recovered,
      requested: this.#earlier.requested + now.requested,
    };
  }

  /** A packet of the track. `now`: ms of the session; `arrivedAt`: ms of any monotonic clock. */
  push(packet: RtpPacket, now: number, arrivedAt: number): void {
    this.#now = now;
    if (packet.ssrc !== this.#ssrc) this.#begin(packet.ssrc);
    this.#reception.arrived(packet.timestamp, arrivedAt);
    this.#bufferFor(packet.payloadType)?.push(packet, now, this.#sink);
  }

  /** A packet of the track that was sent again. */
  repeat(packet: RtpPacket, now: number): void {
    this.#now = now;
    this.#buffer?.repeat(packet, now, this.#sink);
  }

  /** Gives up packets that are missing too long; returns the numbers to request. */
  check(now: number): readonly number[] {
    this.#now = now;
    return this.#buffer?.check(now, this.#sink) ?? NOTHING;
  }

  /** Message that requests a keyframe, if a request is due; null if not. */
  keyframeWanted(now: number): 'pli' | 'fir' | null {
    const how = this.#payload?.keyframe ?? null;
    const { keyframeInterval } = this.#options;
    if (how === null || this.media.kind !== 'video' || now - this.#askedAt < KEYFRAME_RETRY_MS) return null;
    const isOverdue = keyframeInterval > 0 && now - Math.max(this.#keyframeAt ?? 0, this.#askedAt) >= keyframeInterval;
    // Every encoder begins with a keyframe: it is on its way while the first packets come.
    const isBroken = this.#brokenSince !== null && (this.#keyframeAt !== null || now - this.#brokenSince >= KEYFRAME_RETRY_MS / 2);
    if (!isOverdue && !isBroken && !this.#isWanted) return null;
    this.#askedAt = now;
    this.counters.keyframeRequests += 1;
    return how;
  }

  /** A viewer waits for a keyframe: asks for one with the next `keyframeWanted`. */
  requestKeyframe(): void {
    this.#isWanted = true;
  }

  senderReport(report: SenderReport, now: number): void {
    this.#reception.senderReport(report.compactNtp, now);
    this.#options.lipSync.report(this.#synced, report);
  }

  /** The report for the sender; null before the first packet. */
  receptionReport(now: number): ReceptionReport | null {
    return this.#buffer === null ? null : this.#reception.report(this.#ssrc, this.#buffer, now);
  }

  /** The publisher sends under another SSRC, with new sequence numbers and timestamps. */
  #begin(ssrc: number): void {
    if (this.#ssrc >= 0) {
      this.#earlier = this.received;
      this.#options.lipSync.restart(this.#synced);
      this.#reception = new Reception(this.#synced.rate);
      this.#order = null;
      this.#lastTimestamp = null;
      this.#gap = true;
    }
    this.#ssrc = ssrc;
    this.#buffer = null;
    if (this.media.kind === 'video') this.#brokenSince ??= this.#now;
  }

  /** Null for a format that was not negotiated. */
  #bufferFor(payloadType: number): RtpReceiveBuffer | null {
    if (payloadType === this.#payloadType && this.#buffer !== null) return this.#buffer;
    const payload = this.media.payloads.get(payloadType);
    if (payload === undefined) {
      countMalformed(this.counters, new ProtocolError('RTP_TYPE', `payload type ${payloadType} was not agreed on`));
      return null;
    }
    this.#payload = payload;
    this.#payloadType = payloadType;
    this.#buffer ??= new RtpReceiveBuffer({ repeats: payload.repeats });
    return this.#buffer;
  }

  readonly #sink = (packet: RtpPacket, lost: boolean): void => {
    this.#gap ||= lost;
    // Padding, sent to probe the path's capacity.
    if (packet.payload.length === 0) return;
    const gap = this.#gap;
    this.#gap = false;
    if (gap && this.media.kind === 'video') this.#brokenSince ??= this.#now;
    try {
      this.#readerFor(packet.payloadType)?.depacketizer.push(packet, gap, this.#takeUnit);
    } catch (error) {
      countMalformed(this.counters, error);
      if (this.media.kind === 'video') this.#brokenSince ??= this.#now;
    }
  };

  #readerFor(payloadType: number): Reader | null {
    const codec = this.media.payloads.get(payloadType)?.codec;
    if (codec === undefined) return null;
    if (this.#reader?.codec !== codec) {
      this.#reader = { codec, depacketizer: createDepacketizer(codec) };
      this.#config = null;
      this.#size = { width: 0, height: 0 };
      this.#order = null;
      if (!isAudioCodec(codec)) this.#brokenSince ??= this.#now;
    }
    return this.#reader;
  }

  readonly #takeUnit = ({ timestamp, data }: DepacketizedUnit): void => {
    const codec = this.#reader?.codec;
    if (codec === undefined) return;
    const { starter, lipSync } = this.#options;
    const seconds = lipSync.place(this.#synced, timestamp, this.#now / 1000);
    const pts = Math.round(seconds * this.#synced.rate);
    if (isAudioCodec(codec)) {
      starter.push({ trackId: this.id, pts, dts: pts, keyframe: true, data });
      return;
    }
    const keyframe = isKeyframe(codec, data);
    if (keyframe) {
      this.#keyframeAt = this.#now;
      this.#brokenSince = null;
      this.#isWanted = false;
      this.#describe(codec, data);
    } else if (this.#isBroken()) {
      this.counters.skipped += 1;
      return;
    }
    this.#watchOrder(timestamp);
    starter.push({ trackId: this.id, pts, dts: this.#decodingTime(codec, pts), keyframe, data });
  };

  /** True while frames refer to lost frames. The wait for a sender without keyframes is limited. */
  #isBroken(): boolean {
    if (this.#brokenSince === null) return false;
    if (this.#keyframeAt !== null && this.#now - this.#brokenSince > KEYFRAME_TIMEOUT_MS) this.#brokenSince = null;
    return this.#brokenSince !== null;
  }

  #describe(codec: IngestVideoCodec, data: Uint8Array): void {
    const { starter, announced } = this.#options;
    const sets = parameterSetsOf(codec, data);
    if (sets !== null) {
      const config = updateConfig(codec, this.#config, sets);
      if (config === null || config === this.#config) return;
      this.#config = config;
      this.#order = null;
      starter.describe(videoTrack(this.id, { codec, config, size: this.#size, announced }), { tell: true });
      return;
    }
    const described = describeKeyframe(codec, data);
    if (described === null || (described.width === this.#size.width && described.height === this.#size.height)) return;
    this.#size = { width: described.width, height: described.height };
    starter.describe(videoTrack(this.id, { codec, config: null, size: this.#size, announced }), { tell: true });
  }

  /** Compares timestamps of the sender, because lip-sync may set times of the session back. */
  #watchOrder(timestamp: number): void {
    const step = this.#lastTimestamp === null ? 0 : (timestamp - this.#lastTimestamp) | 0;
    this.#lastTimestamp = timestamp;
    if (step >= 0 || this.#isReordered) return;
    this.#isReordered = true;
    this.#order = null;
    this.#options.onReordered();
  }

  #decodingTime(codec: IngestVideoCodec, pts: number): number {
    if (this.#order === null) {
      const announced = reorderingDepth(codec, this.#config);
      this.#order = new DecodeOrder(this.#isReordered ? Math.max(announced, UNANNOUNCED_REORDERING) : announced, USUAL_FRAME_TICKS);
    }
    return this.#order.next(pts);
  }
}
