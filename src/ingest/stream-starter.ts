/** Holds packets back until the tracks of a source are known, for every provider whose tracks tell their parameters with the media. */
import type { IngestStream, SourcePacket, SourceTrack } from '../core/ingest.ts';

/** Limits of one source before its stream has started. */
export interface StarterLimits {
  /** From the first usable track until the stream starts without those still missing, ms. */
  readonly trackWait: number;
  /** Packets of one track held back until the stream starts. */
  readonly heldPackets: number;
  /** Bytes of all packets held back until the stream starts. */
  readonly heldBytes: number;
}

/** Parameter sets come with keyframes only, and those may be seconds apart. */
const DEFAULT_STARTER_LIMITS: StarterLimits = { trackWait: 5000, heldPackets: 500, heldBytes: 16_777_216 };

/** The stream stays its provider's, which also closes it. */
export interface StreamStarterOptions {
  readonly stream: Pick<IngestStream, 'setTracks' | 'push'>;
  readonly limits?: Partial<StarterLimits>;
  /** The core knows the tracks now. */
  readonly onStarted?: (tracks: readonly SourceTrack[]) => void;
}

interface ExpectedTrack {
  /** Null while its parameters are not known. */
  source: SourceTrack | null;
  held: number;
}

/**
 * Holds packets back until every expected track is known, then starts the stream and hands everything on in the order it came.
 * The stream starts with the first packet after the last track became known, when one track or all together have filled the hold,
 * or when the wait is over (`checkStart`): a track that keeps us waiting too long is left out and joins when it is known.
 */
export class StreamStarter {
  /** Packets of tracks whose parameters were unknown, or changed before the stream started. */
  undecodable = 0;
  readonly #stream: StreamStarterOptions['stream'];
  readonly #limits: StarterLimits;
  readonly #onStarted: (tracks: readonly SourceTrack[]) => void;
  #tracks = new Map<number, ExpectedTrack>();
  #held: SourcePacket[] = [];
  #heldBytes = 0;
  #started = false;
  #readySince: number | null = null;

  constructor(options: StreamStarterOptions) {
    this.#stream = options.stream;
    this.#limits = { ...DEFAULT_STARTER_LIMITS, ...options.limits };
    this.#onStarted = options.onStarted ?? (() => undefined);
  }

  /** True once the core knows the tracks. */
  get started(): boolean {
    return this.#started;
  }

  /** Sets the expected tracks; those named in `fresh` start over, others keep their known parameters. */
  expect(ids: readonly number[], fresh: ReadonlySet<number>): void {
    const left = [...this.#tracks].some(([id, { source }]) => source !== null && (!ids.includes(id) || fresh.has(id)));
    const tracks = ids.map((id): [number, ExpectedTrack] => {
      const known = fresh.has(id) ? undefined : this.#tracks.get(id);
      return [id, known ?? { source: null, held: 0 }];
    });
    this.#tracks = new Map(tracks);
    if (this.#started && left) this.#announce();
  }

  /** The parameters of a track; a running stream gets them if `tell` is set or the track is new to it. */
  describe(source: SourceTrack, { tell }: { readonly tell: boolean }): void {
    const track = this.#tracks.get(source.id);
    if (track === undefined) return;
    const joins = track.source === null;
    track.source = source;
    if (this.#started && (joins || tell)) this.#announce();
  }

  /** Hands a packet on, or holds it until the stream starts. */
  push(packet: SourcePacket): void {
    const track = this.#tracks.get(packet.trackId);
    if (track === undefined || track.source === null) {
      this.undecodable += 1;
      return;
    }
    if (!this.#started && this.#complete) this.#start();
    if (this.#started) this.#stream.push(packet);
    else this.#hold(track, packet);
  }

  /** Drops the held packets of a track whose parameters have changed; nothing is held once the stream has started. */
  forgetHeld(trackId: number): void {
    const track = this.#tracks.get(trackId);
    if (track === undefined || track.held === 0) return;
    this.undecodable += track.held;
    track.held = 0;
    this.#held = this.#held.filter((packet) => packet.trackId !== trackId);
    this.#heldBytes = this.#held.reduce((sum, packet) => sum + packet.data.length, 0);
  }

  /**
   * Starts without the tracks that keep us waiting too long. `now` is monotonic, ms; call it some times a second.
   * Like `push`, it throws `ProtocolError` when the parameters of no track can be read.
   */
  checkStart(now: number): void {
    if (this.#started || ![...this.#tracks.values()].some(isMedia)) return;
    this.#readySince ??= now;
    if (now - this.#readySince >= this.#limits.trackWait) this.#start();
  }

  /** Starts at once when every track is known, although no packet has come. */
  startIfComplete(): void {
    if (!this.#started && this.#tracks.size > 0 && this.#complete) this.#start();
  }

  get #complete(): boolean {
    for (const { source } of this.#tracks.values()) {
      if (source === null) return false;
    }
    return true;
  }

  #hold(track: ExpectedTrack, packet: SourcePacket): void {
    track.held += 1;
    this.#held.push(packet);
    this.#heldBytes += packet.data.length;
    if (track.held >= this.#limits.heldPackets || this.#heldBytes >= this.#limits.heldBytes) this.#start();
  }

  #start(): void {
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    for (const track of this.#tracks.values()) track.held = 0;
    const tracks = this.#announce();
    this.#started = true;
    for (const packet of held) this.#stream.push(packet);
    this.#onStarted(tracks);
  }

  #announce(): readonly SourceTrack[] {
    const tracks = [...this.#tracks.values()].flatMap(({ source }) => (source === null ? [] : [source]));
    this.#stream.setTracks(tracks);
    return tracks;
  }
}

function isMedia({ source }: ExpectedTrack): boolean {
  return source !== null && source.type !== 'data';
}
