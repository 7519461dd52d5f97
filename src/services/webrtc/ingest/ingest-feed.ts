/** RTP and RTCP of one publisher: finds the track of each packet, and sends the feedback that the sender needs. */
import { randomInt } from 'node:crypto';
import type { IngestStream } from '../../../core/ingest.ts';
import { StreamStarter } from '../../../ingest/stream-starter.ts';
import type { Clock } from '../../../util/clock.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { findExtension, readExtension16 } from '../../../wire/rtp/extension-reader.ts';
import { buildFir, buildNack, buildPli, buildRemb } from '../../../wire/rtp/receiver-feedback.ts';
import { buildReceiverReport, parseRtcp } from '../../../wire/rtp/rtcp-packet.ts';
import { parseRtpPacket, type RtpPacket } from '../../../wire/rtp/rtp-packet.ts';
import { TransportFeedback } from '../../../wire/rtp/transport-feedback.ts';
import { BandwidthLimit } from './bandwidth-limit.ts';
import type { IngestAgreement, IngestMedia } from './ingest-negotiation.ts';
import { IngestTrack } from './ingest-track.ts';
import { LipSync } from './lip-sync.ts';
import type { VideoCapability } from './oven-capabilities.ts';

/** Maximum of SSRCs of a publisher. A further SSRC replaces a silent one; without a silent one its packets are dropped. */
const MAX_SOURCES = 32;
/** An SSRC is silent after this many packets of others: some seconds. */
const SILENCE = 2048;
const REPORT_INTERVAL_MS = 500;
const TRANSPORT_FEEDBACK_MS = 50;
const REMB_INTERVAL_MS = 1000;
/** This many arrivals are reported early, so that the report stays small. */
const PENDING_ARRIVALS = 200;
/** The stream waits this long, ms, for a negotiated track without packets. */
const TRACK_WAIT_MS = 3000;
/** Limit of numbers in one NACK: half a usual packet, if none of them are adjacent. */
const MAX_NACKED = 150;
const OWN_NAME = 'millrace';

/** Options of the feed; `keyframeInterval` in ms, 0 asks only when a keyframe is needed. */
export interface IngestFeedOptions {
  readonly stream: IngestStream;
  readonly agreement: IngestAgreement;
  readonly clock: Clock;
  readonly keyframeInterval: number;
  /** Capabilities of the layers, by name; the empty name is the first video track without layers. */
  readonly capabilities?: ReadonlyMap<string, VideoCapability>;
  /** Sends RTCP to the publisher. */
  readonly send: (packet: Uint8Array) => void;
  readonly onStarted: (tracks: readonly string[]) => void;
  /** The encoder sends B-frames; once for each track. */
  readonly onReordered: (track: IngestTrack) => void;
}

/** Counts of packets without a track, and of retransmissions. */
export interface IngestFeedCounters {
  /** Packets that are no RTP or RTCP. */
  malformed: number;
  /** Packets of no track. */
  unknown: number;
  /** Packets sent again. */
  repeats: number;
}

interface Source {
  readonly track: IngestTrack;
  /** The SSRC of retransmissions of the track (RFC 4588). */
  readonly isRepeat: boolean;
  /** Number of packets of the publisher when the last packet of this SSRC came. */
  heard: number;
}

/** Lives as long as its session, which calls `tick`; has no timer and needs no closing. Invalid packets are counted, never thrown. */
export class IngestFeed {
  readonly counters: IngestFeedCounters = { malformed: 0, unknown: 0, repeats: 0 };
  readonly tracks: readonly IngestTrack[];
  readonly #options: IngestFeedOptions;
  readonly #ssrc = randomInt(1, 2 ** 32 - 1);
  readonly #starter: StreamStarter;
  readonly #sources = new Map<number, Source>();
  readonly #arrivals = new TransportFeedback();
  readonly #limit = new BandwidthLimit();
  readonly #transportCcId: number;
  readonly #hasRemb: boolean;
  readonly #startedAt: number;
  /** Received RTP packets. */
  #packets = 0;
  #reportedAt = 0;
  #feedbackAt = 0;
  #rembAt = 0;
  #firNumber = 0;

  constructor(options: IngestFeedOptions) {
    const { stream, agreement, clock, keyframeInterval } = options;
    this.#options = options;
    this.#startedAt = clock.monotonic();
    this.#starter = new StreamStarter({
      stream,
      limits: { trackWait: TRACK_WAIT_MS },
      onStarted: (tracks) => options.onStarted(tracks.map((track) => (track.type === 'data' ? 'data' : track.codec))),
    });
    const { medias } = agreement;
    const layers = medias.flatMap((media) => (media.layers.length === 0 ? [''] : media.layers).map((layer) => ({ media, layer })));
    this.#starter.expect([...layers.keys()], new Set());
    const lipSync = new LipSync();
    const firstVideo = medias.find(({ kind }) => kind === 'video');
    this.tracks = layers.map(({ media, layer }, id) => {
      const onReordered = (): void => options.onReordered(track);
      const announced = media === firstVideo ? options.capabilities?.get(layer) : undefined;
      const own = { id, media, layer, announced, onReordered };
      const track: IngestTrack = new IngestTrack({ ...own, starter: this.#starter, lipSync, keyframeInterval });
      return track;
    });
    this.#transportCcId = medias.find(({ extensions }) => extensions.transportCc !== 0)?.extensions.transportCc ?? 0;
    this.#hasRemb = medias.some(({ remb }) => remb);
    for (const track of this.tracks) {
      // Packets of simulcast layers name their layer.
      if (track.layer !== '') continue;
      for (const { ssrc, rtxSsrc } of track.media.sources.slice(0, 1)) {
        this.#sources.set(ssrc, { track, isRepeat: false, heard: 0 });
        if (rtxSsrc !== 0) this.#sources.set(rtxSsrc, { track, isRepeat: true, heard: 0 });
      }
    }
  }

  /** Takes a packet; `arrivedAt`: ms of any monotonic clock. */
  rtp(data: Buffer, arrivedAt: number): void {
    this.#options.stream.countBytes(data.length);
    this.#limit.received(data.length);
    try {
      const packet = parseRtpPacket(data);
      this.#noteArrival(data, arrivedAt);
      const source = this.#sourceOf(packet, data);
      if (source === null) this.counters.unknown += 1;
      else if (source.isRepeat) this.#repeat(source.track, packet);
      else source.track.push(packet, this.#now, arrivedAt);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.counters.malformed += 1;
    }
  }

  /** Takes a compound packet. */
  rtcp(data: Buffer): void {
    this.#options.stream.countBytes(data.length);
    try {
      for (const report of parseRtcp(data).reports) {
        const source = this.#sources.get(report.ssrc);
        if (source !== undefined && !source.isRepeat) source.track.senderReport(report, this.#now);
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.counters.malformed += 1;
    }
  }

  /** Looks at the clock; call it every 20 ms or so. */
  tick(): void {
    const now = this.#now;
    for (const track of this.tracks) {
      const lost = track.check(now);
      for (let at = 0; at < lost.length; at += MAX_NACKED) this.#send(buildNack(this.#ssrc, track.ssrc, lost.slice(at, at + MAX_NACKED)));
      this.#askForKeyframe(track, now);
    }
    if (now - this.#feedbackAt >= TRANSPORT_FEEDBACK_MS) this.#tellArrivals(now);
    if (now - this.#reportedAt >= REPORT_INTERVAL_MS) this.#report(now);
    if (this.#hasRemb && now - this.#rembAt >= REMB_INTERVAL_MS) this.#tellLimit(now);
    this.#starter.checkStart(now);
  }

  /** Milliseconds of the session. */
  get #now(): number {
    return this.#options.clock.monotonic() - this.#startedAt;
  }

  #send(packet: Uint8Array): void {
    this.#options.send(packet);
  }

  #noteArrival(data: Buffer, arrivedAt: number): void {
    if (this.#transportCcId === 0) return;
    const sequence = readExtension16(data, this.#transportCcId);
    if (sequence < 0) return;
    this.#arrivals.arrived(sequence, arrivedAt);
    if (this.#arrivals.pending >= PENDING_ARRIVALS) this.#tellArrivals(this.#now);
  }

  /** A packet in the format of retransmissions: its original sequence number precedes its payload. */
  #repeat(track: IngestTrack, packet: RtpPacket): void {
    const { payload, payloadType, marker, timestamp } = packet;
    const original = track.media.rtx.get(payloadType);
    // Without number it is padding; before the track has begun there is nothing to repeat.
    if (original === undefined || payload.length < 2 || track.ssrc < 0) return;
    this.counters.repeats += 1;
    const sequence = ((payload[0] ?? 0) << 8) | (payload[1] ?? 0);
    track.repeat({ marker, payloadType: original, sequence, timestamp, ssrc: track.ssrc, payload: payload.subarray(2) }, this.#now);
  }

  #sourceOf(packet: RtpPacket, data: Buffer): Source | null {
    this.#packets += 1;
    const known = this.#sources.get(packet.ssrc);
    if (known !== undefined) {
      known.heard = this.#packets;
      return known;
    }
    if (this.#sources.size >= MAX_SOURCES && !this.#forgetSilent()) return null;
    const found = this.#identify(packet.payloadType, data);
    if (found !== null) this.#sources.set(packet.ssrc, found);
    return found;
  }

  /** Makes room for another source; false when all are in use. */
  #forgetSilent(): boolean {
    const [oldest] = [...this.#sources].sort(([, a], [, b]) => a.heard - b.heard);
    return oldest !== undefined && this.#packets - oldest[1].heard >= SILENCE && this.#sources.delete(oldest[0]);
  }

  /** By the header extensions in the first packets of a source (RFC 8843 §9.2, RFC 8852), else by their format. */
  #identify(payloadType: number, data: Buffer): Source | null {
    const medias = new Set(this.tracks.map(({ media }) => media));
    const fitting = [...medias].filter(({ payloads, rtx }) => payloads.has(payloadType) || rtx.has(payloadType));
    const media = fitting.find((candidate) => textOf(data, candidate.extensions.mid) === candidate.mid) ?? onlyOne(fitting);
    if (media === null) return null;
    const isRepeat = media.rtx.has(payloadType);
    const tracks = this.tracks.filter((track) => track.media === media);
    const layer = textOf(data, isRepeat ? media.extensions.repairedRid : media.extensions.rid);
    const track = media.layers.length === 0 ? tracks[0] : tracks.find((candidate) => candidate.layer === layer);
    return track === undefined ? null : { track, isRepeat, heard: this.#packets };
  }

  #askForKeyframe(track: IngestTrack, now: number): void {
    const how = track.keyframeWanted(now);
    if (how === null) return;
    if (how === 'pli') this.#send(buildPli(this.#ssrc, track.ssrc));
    else {
      this.#firNumber += 1;
      this.#send(buildFir(this.#ssrc, track.ssrc, this.#firNumber));
    }
  }

  #tellArrivals(now: number): void {
    this.#feedbackAt = now;
    if (this.#arrivals.pending === 0) return;
    const media = this.tracks.find(({ ssrc }) => ssrc >= 0)?.ssrc ?? 0;
    for (const packet of this.#arrivals.take(this.#ssrc, media)) this.#send(packet);
  }

  #report(now: number): void {
    this.#reportedAt = now;
    const reports = this.tracks.flatMap((track) => track.receptionReport(now) ?? []);
    this.#send(buildReceiverReport(this.#ssrc, OWN_NAME, reports));
  }

  #tellLimit(now: number): void {
    const active = this.tracks.filter(({ ssrc }) => ssrc >= 0);
    let received = 0;
    let lost = 0;
    for (const track of active) {
      received += track.received.received;
      lost += track.received.lost + track.received.recovered;
    }
    const limit = this.#limit.evaluate(now - this.#rembAt, { received, lost });
    this.#rembAt = now;
    if (active.length > 0)
      this.#send(
        buildRemb(
          this.#ssrc,
          limit,
          active.map(({ ssrc }) => ssrc),
        ),
      );
  }
}

function textOf(data: Buffer, id: number): string {
  const value = id === 0 ? null : findExtension(data, id);
  return value === null ? '' : Buffer.from(value.buffer, value.byteOffset, value.length).toString('latin1');
}

function onlyOne(medias: readonly IngestMedia[]): IngestMedia | null {
  return medias.length === 1 ? (medias[0] ?? null) : null;
}
