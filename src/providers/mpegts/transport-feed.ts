/** Turns a transport stream into source tracks and packets of one inbound stream, whatever brings its bytes. */
import type { ElementaryUnit, UnitReader } from '../../containers/mpegts/elementary-unit.ts';
import type { StreamDescription } from '../../containers/mpegts/stream-kind.ts';
import { type PesPacket, TsDemuxer, type TsProgram } from '../../containers/mpegts/ts-demuxer.ts';
import { unitReader } from '../../containers/mpegts/unit-reader.ts';
import type { IngestStream, SourcePacket, SourceTrack } from '../../core/ingest.ts';
import type { Logger } from '../../util/logger.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import { type AudioLabel, type ReadableKind, sourceTrack } from './source-track.ts';

/** What one source may cost before its stream has started. */
export interface FeedLimits {
  /** From the first usable track until the stream starts without those still missing, ms. */
  readonly trackWait: number;
  /** Packets of one track held back until the stream starts. */
  readonly heldPackets: number;
  /** Bytes of all packets held back until the stream starts. */
  readonly heldBytes: number;
}

/** Parameter sets come with keyframes only, and those may be seconds apart. */
export const DEFAULT_FEED_LIMITS: FeedLimits = { trackWait: 5000, heldPackets: 500, heldBytes: 16_777_216 };

export interface TransportFeedOptions {
  readonly stream: IngestStream;
  readonly logger: Logger;
  /** Labels for the audio tracks, in the order of the program map table. */
  readonly audioLabels?: readonly AudioLabel[];
  /** Number of the program to take; absent: the first. */
  readonly program?: number;
  readonly limits?: Partial<FeedLimits>;
  /** The core knows the tracks now. */
  readonly onStarted?: (tracks: readonly SourceTrack[]) => void;
}

/** What came and was not handed on; the demuxer counts the rest. */
export interface FeedCounters {
  /** Program maps, the first one and its changes. */
  programs: number;
  /** PES packets whose payload could not be understood. */
  malformed: number;
  /** Frames of tracks that had not told their parameters. */
  undecodable: number;
  /** What the first malformed payload was; null when there was none. */
  firstFault: string | null;
}

interface TrackState {
  readonly pid: number;
  readonly kind: ReadableKind;
  readonly description: StreamDescription;
  readonly label: AudioLabel | null;
  readonly reader: UnitReader;
  /** Configuration `source` was made of. */
  known: Uint8Array | null;
  /** What the core is told; null while the parameters are not known. */
  source: SourceTrack | null;
  held: number;
}

/**
 * Holds packets back until every track of the program has told its parameters, then starts the stream. A track that lets
 * wait too long is left out and joins when it is ready. Track ids are PIDs.
 */
export class TransportFeed {
  readonly counters: FeedCounters = { programs: 0, malformed: 0, undecodable: 0, firstFault: null };
  readonly demuxer: TsDemuxer;
  readonly #stream: IngestStream;
  readonly #logger: Logger;
  readonly #labels: readonly AudioLabel[];
  readonly #limits: FeedLimits;
  readonly #onStarted: (tracks: readonly SourceTrack[]) => void;
  #tracks = new Map<number, TrackState>();
  #held: SourcePacket[] = [];
  #heldBytes = 0;
  #started = false;
  #readySince: number | null = null;

  constructor(options: TransportFeedOptions) {
    this.#stream = options.stream;
    this.#logger = options.logger;
    this.#labels = options.audioLabels ?? [];
    this.#limits = { ...DEFAULT_FEED_LIMITS, ...options.limits };
    this.#onStarted = options.onStarted ?? (() => undefined);
    this.demuxer = new TsDemuxer(
      { onProgram: (program) => this.#follow(program), onPes: (packet) => this.#take(packet) },
      options.program === undefined ? {} : { program: options.program },
    );
  }

  /** True once the core knows the tracks. */
  get started(): boolean {
    return this.#started;
  }

  /** Takes bytes of the transport stream, cut anywhere; they may be used again after the call. */
  push(data: Uint8Array): void {
    this.demuxer.push(data);
  }

  /** Starts without the tracks that let wait too long. `now` is monotonic, ms; call it some times a second. */
  checkStart(now: number): void {
    if (this.#started || ![...this.#tracks.values()].some(isMedia)) return;
    this.#readySince ??= now;
    if (now - this.#readySince >= this.#limits.trackWait) this.#start();
  }

  /** The source has ended: hands on what it left unfinished. Does not close the stream. */
  end(): void {
    this.demuxer.flush();
  }

  #follow(program: TsProgram): void {
    this.counters.programs += 1;
    const tracks = new Map<number, TrackState>();
    const unsupported: string[] = [];
    let audio = 0;
    for (const description of program.streams) {
      const { kind, pid } = description;
      if (kind.type === 'unsupported') {
        unsupported.push(kind.what);
        continue;
      }
      const label = kind.type === 'audio' ? (this.#labels[audio] ?? null) : null;
      if (kind.type === 'audio') audio += 1;
      const before = this.#tracks.get(pid);
      tracks.set(pid, before !== undefined && before.description === description ? before : this.#open(description, kind, label));
    }
    this.#report(program, unsupported);
    const left = [...this.#tracks.keys()].some((pid) => tracks.get(pid) !== this.#tracks.get(pid));
    this.#tracks = tracks;
    if (this.#started && left) this.#announce();
  }

  /** Says once what there is; a source may change its mind as often as it likes. */
  #report({ programNumber, streams }: TsProgram, unsupported: readonly string[]): void {
    if (this.counters.programs > 1) return;
    const words = streams.map(({ pid, kind }) => `${pid} ${kind.type === 'unsupported' ? kind.what : nameOf(kind)}`);
    this.#logger.info({ program: programNumber, streams: words }, `transport stream has program ${programNumber}`);
    if (unsupported.length > 0) this.#logger.warn({ unsupported }, `streams left out: ${unsupported.join(', ')}`);
  }

  #open(description: StreamDescription, kind: ReadableKind, label: AudioLabel | null): TrackState {
    const source = kind.type === 'data' ? sourceTrack(description, kind, { config: null, label }) : null;
    return { pid: description.pid, kind, description, label, reader: unitReader(kind), known: null, source, held: 0 };
  }

  #take(packet: PesPacket): void {
    const track = this.#tracks.get(packet.pid);
    if (track === undefined) return;
    try {
      track.reader.read(packet, (unit) => this.#takeUnit(track, unit));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.counters.malformed += 1;
      this.counters.firstFault ??= `${error.code}: ${error.message}`;
    }
  }

  #takeUnit(track: TrackState, unit: ElementaryUnit): void {
    const { config } = track.reader;
    if (config !== track.known) this.#adopt(track, config);
    if (track.source === null) {
      this.counters.undecodable += 1;
      return;
    }
    const keyframe = track.kind.type === 'video' ? null : true;
    const packet = { trackId: track.pid, pts: unit.pts, dts: unit.dts, keyframe, data: unit.data };
    if (!this.#started && this.#complete) this.#start();
    if (this.#started) this.#stream.push(packet);
    else this.#hold(track, packet);
  }

  #adopt(track: TrackState, config: Uint8Array | null): void {
    const joins = track.source === null;
    track.known = config;
    track.source = sourceTrack(track.description, track.kind, { config, label: track.label });
    // The router reads changed parameter sets of video out of the packets itself.
    if (this.#started && (joins || track.kind.type !== 'video')) this.#announce();
  }

  get #complete(): boolean {
    for (const track of this.#tracks.values()) {
      if (track.source === null) return false;
    }
    return true;
  }

  #hold(track: TrackState, packet: SourcePacket): void {
    track.held += 1;
    this.#held.push(packet);
    this.#heldBytes += packet.data.length;
    if (track.held >= this.#limits.heldPackets || this.#heldBytes >= this.#limits.heldBytes) this.#start();
  }

  #start(): void {
    this.#started = true;
    const tracks = this.#announce();
    const held = this.#held;
    this.#held = [];
    for (const packet of held) this.#stream.push(packet);
    this.#onStarted(tracks);
  }

  #announce(): readonly SourceTrack[] {
    const tracks = [...this.#tracks.values()].flatMap(({ source }) => (source === null ? [] : [source]));
    this.#stream.setTracks(tracks);
    return tracks;
  }
}

function isMedia(track: TrackState): boolean {
  return track.source !== null && track.kind.type !== 'data';
}

function nameOf(kind: ReadableKind): string {
  return kind.type === 'data' ? 'ID3' : kind.codec;
}
