/** One stream inside the WebRTC publisher: its packetised tracks and its viewers. */

import type { CloseReason } from '../../../core/ingest.ts';
import type { Playlist, PlaylistRendition } from '../../../core/playlist.ts';
import type { PublishableStream, PublisherStream } from '../../../core/publishing.ts';
import { addressOf, type StreamAddress } from '../../../core/stream-address.ts';
import { Urgency } from '../../../core/urgency.ts';
import type { Packet } from '../../../media/packet.ts';
import type { Track } from '../../../media/track.ts';
import type { Clock } from '../../../util/clock.ts';
import type { Logger } from '../../../util/logger.ts';
import type { ArrivalReport } from '../../../wire/rtp/arrival-report.ts';
import { MAX_SENDS_KEPT } from '../transport/fanout/fanout.ts';
import type { PeerTransport } from '../transport/peer-transport.ts';
import type { ViewerReports, ViewerTotals } from '../webrtc-metrics.ts';
import { isPlayable, type WebrtcTrack } from './codec-plan.ts';
import { MediaSource } from './media-source.ts';
import { type MissingMedia, missingMedia, type ViewerTerms } from './missing-media.ts';
import type { WebrtcSettings } from './settings.ts';

/** Minimum time between keyframes that one bad path can cause for all viewers of a track, ms. */
const REPAIR_INTERVAL_MS = 1000;

const REORDERING: MissingMedia = {
  key: 'B-frames',
  text: 'the video has B-frames, which browsers do not show over WebRTC: it will freeze there. Set B-frames to 0 in the encoder (x264: bframes=0 or tune zerolatency)',
};

/** A rendition with the sources behind it; a kind that the stream lacks is null. */
export interface StreamRendition {
  readonly name: string;
  readonly video: MediaSource | null;
  readonly audio: MediaSource | null;
}

/** A session as its stream sees it. */
interface StreamViewer {
  /** Its figures so far, for metrics. */
  readonly totals: ViewerTotals;
  /** A keyframe of `source` was sent. */
  keyframe(source: MediaSource): void;
  /** Adds the bytes since the last call to the stream's counters. */
  countBytes(): void;
  /** The stream's sources were replaced: renditions have to be looked up again. */
  refresh(): void;
  /** Ends the session. Idempotent. */
  close(reason: string): void;
  /** Tells the owner of the session that it has ended by itself. */
  closed(reason: string): void;
}

/** Dependencies of a stream. */
export interface WebrtcStreamOptions {
  readonly stream: PublishableStream;
  readonly settings: WebrtcSettings;
  readonly transport: PeerTransport;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly onClosed: (stream: WebrtcStream) => void;
  /** Takes the viewers' reports; absent: they are ignored. */
  readonly reports?: ViewerReports;
}

/** Made by the publisher, closed by the core: that ends its viewers and its sources. A second `close` has no effect. */
export class WebrtcStream implements PublisherStream {
  readonly settings: WebrtcSettings;
  /** The published stream: counts and lists the viewers. */
  readonly published: PublishableStream;
  /** For log lines. */
  readonly fields: StreamAddress;
  readonly #options: WebrtcStreamOptions;
  readonly #sources = new Map<number, MediaSource>();
  readonly #sessions = new Set<StreamViewer>();
  readonly #sends = new Uint32Array(2 * MAX_SENDS_KEPT);
  /** By track. */
  readonly #repairedAt = new Map<number, number>();
  /** Keys of reported cases, also of ended tracks, so that each is logged once. */
  readonly #toldOf = new Set<string>();
  readonly #warnings = new Map<string, string>();
  /** Figures of viewers that have left. */
  readonly #past = { packets: 0, lost: 0, nacked: 0, resent: 0, keyframeRequests: 0 };
  #closed = false;

  constructor(options: WebrtcStreamOptions) {
    this.#options = options;
    this.settings = options.settings;
    this.published = options.stream;
    this.fields = addressOf(options.stream);
  }

  get reports(): ViewerReports | undefined {
    return this.#options.reports;
  }

  /** Figures of its viewers, including departed viewers. */
  get totals(): ViewerTotals {
    const sums = { ...this.#past };
    let longest: number | undefined;
    let least: number | undefined;
    for (const session of this.#sessions) {
      const { roundTrip, estimate, ...counters } = session.totals;
      addCounters(sums, counters);
      if (roundTrip !== undefined) longest = Math.max(longest ?? 0, roundTrip);
      if (estimate !== undefined) least = Math.min(least ?? estimate, estimate);
    }
    return { ...sums, roundTrip: longest, estimate: least };
  }

  get viewers(): number {
    return this.#sessions.size;
  }

  /** Media that viewers did not get, or not well; empty without viewers. */
  get warnings(): readonly string[] {
    return [...this.#warnings.values()];
  }

  get urgency(): Urgency {
    return this.#sessions.size > 0 ? Urgency.REAL_TIME : Urgency.NONE;
  }

  /** The playlist with this file name; the publisher's own without one. */
  playlist(fileName: string): Playlist | undefined {
    return this.published.playlists.find((playlist) => playlist.fileName === fileName);
  }

  /** The renditions that WebRTC carries, in the order of the playlist; of a rendition, the tracks that it carries. */
  renditions(playlist: Playlist): StreamRendition[] {
    return playlist.renditions
      .map((rendition) => ({ name: rendition.name, video: this.#source('video', rendition), audio: this.#source('audio', rendition) }))
      .filter(({ video, audio }) => video !== null || audio !== null);
  }

  /** Bits per second of a rendition as announced, else as measured. */
  bitrate({ video, audio }: StreamRendition): number {
    let sum = 0;
    for (const source of [video, audio]) {
      if (source === null) continue;
      const { id, bitrateConf } = source.track;
      sum += bitrateConf > 0 ? bitrateConf : this.published.figures(id).bitrateAvg;
    }
    return sum;
  }

  /** Send times and sizes of the packets in a viewer's report, from the fanout; valid until the next call. */
  sends(viewer: number, { first, arrivals }: ArrivalReport): Uint32Array {
    const sends = this.#sends.subarray(0, 2 * arrivals.length);
    this.#options.transport.fanout.readSends(viewer, first, sends);
    return sends;
  }

  /** Requests a keyframe of a bypassed track from its source, for a viewer that cannot begin or continue without it. */
  requestKeyframe({ track }: MediaSource): void {
    // Encodes have keyframes at an interval that all renditions share: a new viewer waits for the next one.
    if (track.bypass) this.published.requestKeyframe(track.id);
  }

  /** A viewer lost frames for good and shows nothing until the next keyframe, which is requested from the encoder or the source. */
  repair({ track }: MediaSource): void {
    const now = this.#options.clock.monotonic();
    if (now - (this.#repairedAt.get(track.id) ?? Number.NEGATIVE_INFINITY) < REPAIR_INTERVAL_MS) return;
    this.#repairedAt.set(track.id, now);
    this.published.requestKeyframe(track.id);
  }

  /** A viewer has negotiated: media that it does not get is logged, once for the stream. */
  judge(terms: Omit<ViewerTerms, 'tracks'>): void {
    for (const missing of missingMedia({ ...terms, tracks: this.published.tracks })) this.#warn(missing);
  }

  add(session: StreamViewer): void {
    this.#sessions.add(session);
  }

  remove(session: StreamViewer): void {
    if (this.#sessions.delete(session)) addCounters(this.#past, session.totals);
  }

  onTracks(tracks: readonly Track[]): void {
    const playable = tracks.filter(isPlayable);
    let changed = false;
    for (const [id, source] of this.#sources) {
      const track = playable.find((candidate) => candidate.id === id);
      if (track !== undefined && track.type === source.track.type && track.codec === source.track.codec) source.update(track);
      else {
        this.#closeSource(source);
        this.#sources.delete(id);
        this.#repairedAt.delete(id);
        changed = true;
      }
    }
    for (const track of playable) if (this.#add(track)) changed = true;
    if (!changed) return;
    this.#warnings.clear();
    for (const session of this.#sessions) session.refresh();
  }

  onPacket(packet: Packet): void {
    const { track } = packet;
    const source = this.#sources.get(track.id);
    if (source === undefined) return;
    if (source.track !== track && isPlayable(track)) source.update(track);
    if (packet.pts !== packet.dts && track.type === 'video') this.#warnOfReordering();
    source.push(packet);
    if (packet.keyframe && track.type === 'video') for (const session of this.#sessions) session.keyframe(source);
  }

  /** Adds the bytes sent to viewers to the stream's counters. */
  countBytes(): void {
    for (const session of this.#sessions) session.countBytes();
  }

  close(reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const session of [...this.#sessions]) {
      session.close(`the stream ended: ${reason.detail}`);
      session.closed('the stream ended');
    }
    for (const source of this.#sources.values()) this.#closeSource(source);
    this.#sources.clear();
    this.#options.onClosed(this);
  }

  #add(track: WebrtcTrack): boolean {
    if (this.#sources.has(track.id)) return false;
    const { transport, clock } = this.#options;
    const epochMs = this.published.startedAt > 0 ? this.published.startedAt : clock.now();
    const onRefused = (reason: string): void => {
      const fields = { ...this.fields, track: track.id, codec: track.codec, reason };
      this.#options.logger.warn(fields, 'frames of a track cannot be sent over WebRTC: its viewers miss them');
    };
    this.#sources.set(track.id, new MediaSource({ fanout: transport.fanout, track, epochMs, fec: this.settings.ulpfec, onRefused }));
    return true;
  }

  #closeSource(source: MediaSource): void {
    source.close();
    if (source.refused === 0) return;
    const fields = { ...this.fields, track: source.track.id, refused: source.refused };
    this.#options.logger.warn(fields, 'frames of a track were not sent over WebRTC until its end');
  }

  #source(kind: 'video' | 'audio', rendition: PlaylistRendition): MediaSource | null {
    const video = kind === 'video';
    const variant = video ? rendition.videoVariantName : rendition.audioVariantName;
    const hint = video ? rendition.videoIndexHint : rendition.audioIndexHint;
    if (variant === '') return null;
    const tracks = this.published.tracks.filter((track) => track.type === kind && track.variantName === variant);
    const track = hint >= 0 ? tracks[hint] : tracks.find(isPlayable);
    return track === undefined ? null : (this.#sources.get(track.id) ?? null);
  }

  #warnOfReordering(): void {
    if (!this.#warnings.has(REORDERING.key)) this.#warn(REORDERING);
  }

  #warn({ key, text }: MissingMedia): void {
    this.#warnings.set(key, text);
    if (this.#toldOf.has(key)) return;
    this.#toldOf.add(key);
    this.#options.logger.warn(this.fields, text);
  }
}

type ViewerCounts = { -readonly [Name in Exclude<keyof ViewerTotals, 'roundTrip' | 'estimate'>]: number };

function addCounters(sums: ViewerCounts, counters: Readonly<ViewerCounts>): void {
  for (const name of ['packets', 'lost', 'nacked', 'resent', 'keyframeRequests'] as const) sums[name] += counters[name];
}
