import type { Packet } from '../media/packet.ts';
import { MILLISECONDS, toSeconds } from '../media/timebase.ts';
import type { DataTrack, SubtitleTrack, Track } from '../media/track.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { AudioNormalizer } from './audio-normalizer.ts';
import { DataNormalizer } from './data-normalizer.ts';
import type { SourcePacket, SourceTrack } from './ingest.ts';
import { Timeline } from './timeline.ts';
import type { TrackNormalizer } from './track-normalizer.ts';
import { VideoNormalizer } from './video-normalizer.ts';

/** Maximum time that audio waits for the first keyframe of a video track, seconds. */
const KEYFRAME_WAIT_S = 5;

/** The router's output. */
export interface RouterOutput {
  /** All tracks, after a track was added, removed or changed. */
  onTracks(tracks: readonly Track[]): void;
  onPacket(packet: Packet): void;
}

/** Counts of packets that the router fixed or refused. */
export interface RouterCounters {
  /** Packets before the first keyframe, of unknown tracks or without parameters. */
  discarded: number;
  /** Packets and decoder configurations that could not be understood. */
  malformed: number;
  /** Fault of the first such packet; null without one. */
  firstFault: string | null;
}

/**
 * Normalises media of a provider: one layout per codec; a timeline that starts with the first keyframe (at 0, or at the source's time if
 * that is kept) and never jumps; durations, keyframe flags, and parameter sets that change mid-stream.
 */
export class MediaRouter {
  readonly counters: RouterCounters = { discarded: 0, malformed: 0, firstFault: null };
  readonly #output: RouterOutput;
  readonly #timeline: Timeline;
  /** By the id that the source gives the track; the track itself may have another one. */
  readonly #normalizers = new Map<number, TrackNormalizer>();
  /** Tracks of the previous source that the present source has not continued. */
  #vacant: TrackNormalizer[] = [];
  #announced: readonly Track[] = [];
  #started = false;
  /** Source time of the first packet seen, seconds. */
  #firstSeconds = Number.NaN;

  readonly #keepSourceTime: boolean;
  readonly #steadyTime: boolean;
  /** The run of the segment numbers that the present source brings; null: the source brings none. */
  #run: string | null = null;
  /** As configured. All get new ids when a track of the source takes one of theirs. */
  #subtitles: readonly SubtitleTrack[];
  /** The times of the present source are kept. */
  #keepsTime: boolean;

  constructor(
    output: RouterOutput,
    options: { keepSourceTime?: boolean; steadyTime?: boolean; subtitles?: readonly SubtitleTrack[] } = {},
  ) {
    this.#output = output;
    this.#subtitles = options.subtitles ?? [];
    this.#keepSourceTime = options.keepSourceTime ?? false;
    this.#steadyTime = options.steadyTime ?? false;
    this.#keepsTime = this.#keepSourceTime;
    this.#timeline = new Timeline({ keepsPauses: this.#keepSourceTime, steady: this.#steadyTime });
  }

  get tracks(): readonly Track[] {
    return this.#announced;
  }

  /** The parameters of every track are known. */
  get complete(): boolean {
    for (const { track } of this.#normalizers.values()) if (track === null) return false;
    return true;
  }

  /** Where events go: the first data track; null until media has told the time. */
  get eventTrack(): DataTrack | null {
    if (!this.#started) return null;
    for (const track of this.#announced) if (track.type === 'data') return track;
    return null;
  }

  /** The first media has started the timeline. */
  get started(): boolean {
    return this.#started;
  }

  /** Where the media ends, seconds of the timeline. */
  get end(): number {
    return this.#timeline.end;
  }

  /** A time of the source on the timeline, both in seconds; null before its first media. */
  timeOf(seconds: number): number | null {
    return this.#started ? this.#timeline.timeOf(seconds) : null;
  }

  /** Jumps of the source's clock bridged so far. */
  get jumps(): number {
    return this.#timeline.jumps;
  }

  /**
   * Announces the tracks of the source. A track whose decoder configuration cannot be read keeps its previous one or, if new, is left out;
   * returns the first such error. Throws that ProtocolError when no video or audio track is left.
   */
  setTracks(sources: readonly SourceTrack[]): ProtocolError | null {
    const wanted = withDataTrack(sources).map((source) => ({ source, before: this.#predecessor(source) }));
    const taken = new Set(wanted.flatMap(({ before }) => before?.source.id ?? []));
    const fresh = new Map<number, TrackNormalizer>();
    let fault: ProtocolError | null = null;
    for (const { source, before } of wanted) {
      const id = before?.source.id ?? freeId(source.id, taken);
      taken.add(id);
      if (before !== undefined && sameSource(before.source, source)) {
        fresh.set(source.id, before);
        continue;
      }
      const normalizer = this.#tryNormalizer(source.id === id ? source : { ...source, id });
      if (normalizer instanceof ProtocolError) {
        fault ??= normalizer;
        if (before === undefined) continue;
        if (before === this.#normalizers.get(source.id) && readAlike(before.source, source)) fresh.set(source.id, before);
        else this.#timeline.removeTrack(before.position);
        continue;
      }
      if (before !== undefined) {
        inheritPosition(before, normalizer);
        this.#timeline.removeTrack(before.position);
      }
      fresh.set(source.id, normalizer);
    }
    const kept = new Set([...fresh.values(), ...this.#vacant]);
    for (const normalizer of this.#normalizers.values()) if (!kept.has(normalizer)) this.#timeline.removeTrack(normalizer.position);
    this.#normalizers.clear();
    for (const [id, normalizer] of fresh) this.#normalizers.set(id, normalizer);
    if (fault !== null && ![...fresh.values()].some(({ source }) => source.type !== 'data')) throw fault;
    this.#announce();
    return fault;
  }

  /**
   * The next packets come from another source. After `setTracks` its tracks replace the previous ones by type and order, and its first
   * keyframe continues where they ended. `keepsTime` false: its times are unrelated.
   */
  changeSource({ keepsTime = true }: { readonly keepsTime?: boolean } = {}): void {
    this.#keepsTime = this.#keepSourceTime && keepsTime;
    this.#timeline.changeSource();
    if (this.#normalizers.size > 0) {
      for (const { position } of this.#vacant) this.#timeline.removeTrack(position);
      this.#vacant = [...this.#normalizers.values()].sort((a, b) => a.source.id - b.source.id);
      this.#normalizers.clear();
    }
    this.#started = false;
    this.#firstSeconds = Number.NaN;
  }

  push(source: SourcePacket): void {
    const normalizer = this.#normalizers.get(source.trackId);
    if (normalizer === undefined) {
      this.counters.discarded += 1;
      return;
    }
    const before = normalizer.track;
    let packet: Packet | null;
    try {
      packet = this.#started || this.#tryStart(normalizer, source) ? normalizer.normalize(source) : null;
    } catch (error) {
      this.#countMalformed(error);
      return;
    }
    if (packet === null) {
      this.counters.discarded += 1;
      return;
    }
    if (normalizer.track !== before) this.#announce();
    this.#output.onPacket(source.mark === undefined ? packet : { ...packet, mark: source.mark });
  }

  #tryNormalizer(source: SourceTrack): TrackNormalizer | ProtocolError {
    try {
      return createNormalizer(source, this.#timeline);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#countMalformed(error);
      return error;
    }
  }

  #countMalformed(error: unknown): void {
    this.counters.malformed += 1;
    this.counters.firstFault ??= error instanceof ProtocolError ? `${error.code}: ${error.message}` : String(error);
  }

  #tryStart(normalizer: TrackNormalizer, packet: SourcePacket): boolean {
    const seconds = toSeconds(packet.dts, normalizer.source.timebase);
    if (Number.isNaN(this.#firstSeconds)) this.#firstSeconds = seconds;
    const waitsForKeyframe = this.#hasVideo && Math.abs(seconds - this.#firstSeconds) < KEYFRAME_WAIT_S;
    const opens =
      normalizer.source.type === 'video' ? normalizer.isKeyframe(packet) : !waitsForKeyframe && normalizer.source.type === 'audio';
    if (!opens) return false;
    const { mark } = packet;
    const { timebase } = normalizer.position;
    const floor = this.#timeline.floorOf(toSeconds(packet.pts - packet.dts, normalizer.source.timebase));
    const isLater = floor === 0 || seconds > floor;
    // Packets from before a lost connection must not be sent twice.
    if (mark !== undefined && mark.run === this.#run && !isLater) return false;
    this.#started = true;
    this.#run = mark?.run ?? null;
    this.#timeline.steady = this.#steadyTime || mark !== undefined;
    const at = (this.#keepsTime || mark !== undefined) && isLater ? seconds : floor;
    this.#timeline.start(normalizer.position, (seconds * timebase.den) / timebase.num, at);
    return true;
  }

  /** The track that `source` changes, or whose place it takes. */
  #predecessor(source: SourceTrack): TrackNormalizer | undefined {
    const known = this.#normalizers.get(source.id);
    if (known?.source.type === source.type) return known;
    const index = this.#vacant.findIndex((vacant) => vacant.source.type === source.type);
    return index < 0 ? undefined : this.#vacant.splice(index, 1)[0];
  }

  get #hasVideo(): boolean {
    for (const normalizer of this.#normalizers.values()) {
      if (normalizer.source.type === 'video') return true;
    }
    return false;
  }

  #placeSubtitles(): readonly SubtitleTrack[] {
    const taken = new Set([...this.#normalizers.values(), ...this.#vacant].map(({ source }) => source.id));
    if (this.#subtitles.every(({ id }) => id >= 0 && !taken.has(id))) return this.#subtitles;
    const first = Math.max(-1, ...taken, ...this.#subtitles.map(({ id }) => id)) + 1;
    this.#subtitles = this.#subtitles.map((track, index) => ({ ...track, id: first + index }));
    return this.#subtitles;
  }

  #announce(): void {
    const tracks: Track[] = [];
    for (const { track } of this.#normalizers.values()) {
      if (track !== null) tracks.push(track);
    }
    if (this.#subtitles.length > 0) tracks.push(...this.#placeSubtitles());
    tracks.sort((a, b) => a.id - b.id);
    this.#announced = tracks;
    this.#output.onTracks(tracks);
  }
}

/** Every stream has a data track, so that events can be injected. */
function withDataTrack(sources: readonly SourceTrack[]): readonly SourceTrack[] {
  if (sources.some((source) => source.type === 'data')) return sources;
  const id = Math.max(-1, ...sources.map((source) => source.id)) + 1;
  return [...sources, { type: 'data', id, timebase: MILLISECONDS, bitrateConf: 0 }];
}

function sameSource(a: SourceTrack, b: SourceTrack): boolean {
  return a.variantName === b.variantName && readAlike(a, b) && (a.type === 'data' || b.type === 'data' || sameBytes(a.config, b.config));
}

/** Packets of both tracks are read in the same way; the decoder configurations may differ. */
function readAlike(a: SourceTrack, b: SourceTrack): boolean {
  if (a.type !== b.type || a.timebase.num !== b.timebase.num || a.timebase.den !== b.timebase.den) return false;
  return a.type === 'data' || b.type === 'data' || (a.codec === b.codec && a.format === b.format);
}

/** `wanted`, or the next number that is not taken. */
function freeId(wanted: number, taken: ReadonlySet<number>): number {
  return taken.has(wanted) ? Math.max(...taken) + 1 : wanted;
}

function sameBytes(a: Uint8Array | null, b: Uint8Array | null): boolean {
  if (a === null || b === null) return a === b;
  return Buffer.compare(a, b) === 0;
}

/** A track with new parameters continues at the position of the old one. */
function inheritPosition(from: TrackNormalizer, to: TrackNormalizer): void {
  const scale = (ticks: number): number =>
    Math.round((ticks * from.position.timebase.num * to.position.timebase.den) / (from.position.timebase.den * to.position.timebase.num));
  to.position.offset = from.position.offset === null ? null : scale(from.position.offset);
  to.position.lastDts = from.position.lastDts === null ? null : scale(from.position.lastDts);
  to.position.nextDts = scale(from.position.nextDts);
  to.position.shownTo = scale(from.position.shownTo);
}

/**
 * The normaliser for the kind of track, which takes its place on `timeline`. Throws `ProtocolError` when the configuration of the source
 * is broken.
 */
function createNormalizer(source: SourceTrack, timeline: Timeline): TrackNormalizer {
  switch (source.type) {
    case 'video':
      return new VideoNormalizer(source, timeline);
    case 'audio':
      return new AudioNormalizer(source, timeline);
    case 'data':
      return new DataNormalizer(source, timeline);
  }
}
