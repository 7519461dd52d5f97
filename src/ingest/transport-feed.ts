/** Turns a transport stream into source tracks and packets of one inbound stream, over any transport. */

import { parseSplice } from '../containers/markers/splice-info.ts';
import type { ElementaryUnit, UnitReader } from '../containers/mpegts/elementary-unit.ts';
import type { StreamDescription } from '../containers/mpegts/stream-kind.ts';
import { type PesPacket, TsDemuxer, type TsProgram } from '../containers/mpegts/ts-demuxer.ts';
import { unitReader } from '../containers/mpegts/unit-reader.ts';
import type { IngestStream, SourceTrack } from '../core/ingest.ts';
import { MPEG_90K } from '../media/timebase.ts';
import { EventFormat } from '../media/timed-event.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { ProtocolError } from '../util/protocol-error.ts';
import { TokenBucket } from '../util/token-bucket.ts';
import { countMalformed, type MalformedCounters } from './malformed.ts';
import { type StarterLimits, StreamStarter } from './stream-starter.ts';
import { type AudioMapEntry, type ReadableKind, transportTrack } from './transport-track.ts';

/** Program maps that say something new: a switch has one, and two sources on one address have one with each packet. */
const PROGRAMS = { burst: 60, perSecond: 1 } as const;
/** Payloads that cannot be read: more than a whole broken track has, a few seconds long. */
const MALFORMED = { burst: 500, perSecond: 100 } as const;
/** Kinds of streams that are of no use here and are named in the log: more are no mistake. */
const MAX_TOLD_KINDS = 8;
const TAKEN = 'a transport stream can bring H.264, H.265, AAC, MP3, Opus, ID3 and SCTE-35';

/** The stream stays its provider's, which also closes it. */
export interface TransportFeedOptions {
  readonly stream: Pick<IngestStream, 'setTracks' | 'push' | 'pushEvent'>;
  readonly logger: Logger;
  /** Labels for the audio tracks, in the order of the program map table. */
  readonly audioLabels?: readonly AudioMapEntry[];
  /** Number of the program to take; absent: the first. */
  readonly program?: number;
  readonly limits?: Partial<StarterLimits>;
  /** The core knows the tracks now. */
  readonly onStarted?: (tracks: readonly SourceTrack[]) => void;
  /** By which a source is given up whose program changes all the time or that cannot be read; absent: none is, as with files. */
  readonly clock?: Clock;
}

/** Units that were received and discarded; the demuxer counts the rest. */
export interface TransportFeedCounters extends MalformedCounters {
  /** Program maps, the first one and its changes. */
  programs: number;
  /** PES packets with an unintelligible payload, and attempts to start a stream that is entirely unreadable. */
  malformed: number;
}

interface TrackState {
  readonly pid: number;
  readonly kind: ReadableKind;
  readonly description: StreamDescription;
  readonly label: AudioMapEntry | null;
  readonly reader: UnitReader;
  /** The configuration that the core has; null while the parameters are unknown. */
  known: Uint8Array | null;
}

/**
 * Holds packets back until every track of the program has told its parameters, then starts the stream. A track that is
 * unknown for too long is left out and joins when it is ready. Track ids are PIDs.
 */
export class TransportFeed {
  readonly counters: TransportFeedCounters = { programs: 0, malformed: 0, firstFault: null };
  readonly demuxer: TsDemuxer;
  readonly #logger: Logger;
  readonly #labels: readonly AudioMapEntry[];
  readonly #starter: StreamStarter;
  readonly #stream: TransportFeedOptions['stream'];
  #tracks = new Map<number, TrackState>();
  readonly #clock: Clock | null;
  readonly #programs = new TokenBucket(PROGRAMS);
  readonly #malformed = new TokenBucket(MALFORMED);
  readonly #toldKinds = new Set<string>();
  /** Why nothing more is read. */
  #unusable: ProtocolError | null = null;

  constructor(options: TransportFeedOptions) {
    const { stream, limits, onStarted } = options;
    this.#clock = options.clock ?? null;
    this.#stream = stream;
    this.#logger = options.logger;
    this.#labels = options.audioLabels ?? [];
    this.#starter = new StreamStarter({ stream, ...(limits && { limits }), ...(onStarted && { onStarted }) });
    this.demuxer = new TsDemuxer(
      {
        onProgram: (program) => this.#guarded(() => this.#follow(program)),
        onPes: (packet) => this.#take(packet),
        onSplice: (section) => this.#guarded(() => this.#takeSplice(section)),
      },
      options.program === undefined ? {} : { program: options.program },
    );
  }

  /** True once the core knows the tracks. */
  get started(): boolean {
    return this.#starter.started;
  }

  /** The reason why the stream has no tracks, in words for people; null if unknown. */
  get fault(): string | null {
    return this.demuxer.missingProgram ?? this.counters.firstFault;
  }

  /** Frames of tracks that had not told their parameters. */
  get undecodable(): number {
    return this.#starter.undecodable;
  }

  /**
   * Takes bytes of the transport stream, cut anywhere; they may be used again after the call. Throws `ProtocolError` when the
   * source is of no use, from then on each time.
   */
  push(data: Uint8Array): void {
    this.demuxer.push(data);
    if (this.#unusable !== null) throw this.#unusable;
  }

  /** Starts without the tracks that let wait too long. `now` is monotonic, ms; call it some times a second. */
  checkStart(now: number): void {
    this.#guarded(() => this.#starter.checkStart(now));
  }

  /** The source has ended: passes on unfinished units. Does not close the stream. */
  end(): void {
    this.demuxer.flush();
    for (const track of this.#tracks.values()) this.#guarded(() => track.reader.end?.((unit) => this.#takeUnit(track, unit)));
  }

  #follow(program: TsProgram): void {
    this.counters.programs += 1;
    if (this.#isTooMuch(this.#programs)) {
      const { perSecond, burst } = PROGRAMS;
      const often = `more than ${perSecond} time a second, ${burst} times at once`;
      this.#unusable ??= new ProtocolError('TS_PROGRAMS', `the program map changes ${often}: are there two sources?`);
    }
    if (this.#unusable !== null) return;
    const tracks = new Map<number, TrackState>();
    const unsupported: string[] = [];
    let audio = 0;
    for (const description of program.streams) {
      const { kind, pid } = description;
      if (kind.type === 'unsupported') {
        unsupported.push(kind.what);
        continue;
      }
      if (kind.type === 'splices') continue;
      const label = kind.type === 'audio' ? (this.#labels[audio] ?? null) : null;
      if (kind.type === 'audio') audio += 1;
      const before = this.#tracks.get(pid);
      tracks.set(pid, before !== undefined && before.description === description ? before : this.#open(description, kind, label));
    }
    this.#report(program, unsupported);
    const fresh = new Set([...tracks.keys()].filter((pid) => tracks.get(pid) !== this.#tracks.get(pid)));
    this.#tracks = tracks;
    this.#starter.expect([...tracks.keys()], fresh);
    for (const { description, kind, label } of tracks.values()) {
      if (kind.type === 'data') this.#starter.describe(transportTrack(description, kind, { config: null, label }), { tell: false });
    }
  }

  /** Logs the tracks once, and each kind of unusable stream once, because a source may change them repeatedly. */
  #report({ programNumber, streams }: TsProgram, unsupported: readonly string[]): void {
    if (this.counters.programs === 1) {
      const words = streams.map(({ pid, kind }) => `${pid} ${kind.type === 'unsupported' ? kind.what : nameOf(kind)}`);
      this.#logger.info({ program: programNumber, streams: words }, `transport stream has program ${programNumber}`);
    }
    const fresh = unsupported.filter((what) => !this.#toldKinds.has(what));
    if (fresh.length === 0 || this.#toldKinds.size >= MAX_TOLD_KINDS) return;
    for (const what of fresh) this.#toldKinds.add(what);
    this.#logger.warn({ unsupported: fresh }, `streams left out: ${fresh.join(', ')}; ${TAKEN}`);
  }

  #isTooMuch(budget: TokenBucket): boolean {
    return this.#clock !== null && !budget.take(this.#clock.monotonic());
  }

  #open(description: StreamDescription, kind: ReadableKind, label: AudioMapEntry | null): TrackState {
    return { pid: description.pid, kind, description, label, reader: unitReader(kind), known: null };
  }

  #take(packet: PesPacket): void {
    const track = this.#tracks.get(packet.pid);
    if (track === undefined || this.#unusable !== null) return;
    this.#guarded(() => track.reader.read(packet, (unit) => this.#takeUnit(track, unit)));
  }

  /** Splices before the start have nothing to cut. */
  #takeSplice(section: Uint8Array): void {
    if (this.#unusable !== null || !this.started) return;
    const splice = parseSplice(section);
    if (splice === null) return;
    const at = splice.time === null ? null : this.demuxer.timeNear(splice.time) / MPEG_90K.den;
    this.#stream.pushEvent({ format: EventFormat.SCTE35, target: 'all', data: section.slice(), at });
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      countMalformed(this.counters, error);
      if (!this.#isTooMuch(this.#malformed)) return;
      const detail = `more than ${MALFORMED.perSecond} payloads a second cannot be read, the first one: ${this.counters.firstFault}`;
      this.#unusable ??= new ProtocolError('TS_MALFORMED', detail);
    }
  }

  #takeUnit(track: TrackState, unit: ElementaryUnit): void {
    const { config } = track.reader;
    if (config !== track.known) this.#adopt(track, config);
    const keyframe = track.kind.type === 'video' ? null : true;
    this.#starter.push({ trackId: track.pid, pts: unit.pts, dts: unit.dts, keyframe, data: unit.data });
  }

  #adopt(track: TrackState, config: Uint8Array | null): void {
    const { description, kind, label } = track;
    track.known = config;
    // The router reads changed parameter sets of video out of the packets itself.
    this.#starter.describe(transportTrack(description, kind, { config, label }), { tell: kind.type !== 'video' });
  }
}

function nameOf(kind: ReadableKind | { readonly type: 'splices' }): string {
  if (kind.type === 'splices') return 'SCTE-35';
  return kind.type === 'data' ? 'ID3' : kind.codec;
}
