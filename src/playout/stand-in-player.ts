/** Plays the stand-in of an encoder: like a channel, on a stream that belonged to an encoder until now. */
import type { StandInConfig } from '../config/index.ts';
import type { SourcePacket, SourceTrack } from '../core/ingest.ts';
import type { StandIn, StandInStage, StandIns } from '../core/stand-in.ts';
import type { Transcoder } from '../core/transcoding.ts';
import { isMediaTrack } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { ChannelPlayout, type Later, type Readiness } from './channel-playout.ts';
import type { ItemSources } from './item-source.ts';
import type { CuedItem, PlayoutListener } from './playout.ts';

/** Maximum time without packets of a live stand-in, ms. */
const TOLERANCE_MS = 1000;
/** Limit of the missed time that is made up at once, ms. */
const MAX_LATE_MS = 1500;
/** Maximum of a cue, ms, that may remain on screen when the encoder is back: its return is unpredictable. */
const CUE_PIECE_MS = 1000;
/** Never, as wall clock. */
const FAR = 8.64e15;

/** Dependencies shared by the stand-ins of a server. All of it stays its owner's. */
export interface StandInPlayersOptions {
  /** Opens the items that a stand-in may play. */
  readonly sources: (settings: StandInConfig, stage: StandInStage) => ItemSources;
  readonly transcoder: Transcoder | null;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Timers, for tests that turn the clock themselves. */
  readonly later?: Later;
}

/** Makes the stand-ins of the streams of a server. */
export function standInPlayers(options: StandInPlayersOptions): StandIns {
  return (settings, stage) => new StandInPlayer(settings, stage, options);
}

/**
 * The stand-in of one stream. Items that need no conversion are opened when needed. Slow items (conversions, live streams that need a
 * keyframe) are kept ready while the encoder is there: a resting process, and the newest GOP.
 */
class StandInPlayer implements StandIn, PlayoutListener {
  readonly #settings: StandInConfig;
  readonly #stage: StandInStage;
  readonly #options: StandInPlayersOptions;
  readonly #sources: ItemSources;
  #playout: ChannelPlayout | null = null;
  #playing = false;
  /** Codecs of the last preparation. */
  #preparedFor = '';
  /** More videos than one: all have the same frames. By the id of the first. */
  #copies: readonly SourceTrack[] = [];
  #closed = false;

  constructor(settings: StandInConfig, stage: StandInStage, options: StandInPlayersOptions) {
    this.#settings = settings;
    this.#stage = stage;
    this.#options = options;
    this.#sources = options.sources(settings, stage);
  }

  prepare(): void {
    const codecs = codecsOf(this.#stage);
    if (this.#closed || this.#playing || this.#preparedFor === codecs) return;
    this.#drop();
    this.#preparedFor = codecs;
    this.#cue(FAR);
  }

  play(since: number): void {
    if (this.#closed) return;
    this.#playing = true;
    const at = Math.max(since, this.#options.clock.now() - MAX_LATE_MS);
    if (this.#playout !== null && this.#preparedFor === codecsOf(this.#stage)) this.#playout.retime(at);
    else {
      this.#drop();
      this.#cue(at);
    }
  }

  rest(): void {
    if (this.#playing) this.#playout?.stop();
    this.#playing = false;
    this.#preparedFor = '';
    this.#drop();
  }

  wake(): void {
    this.#playout?.wake();
  }

  close(): void {
    this.#closed = true;
    this.#playing = false;
    this.#drop();
  }

  onAir(): void {}

  onEnding({ url }: CuedItem, endsAt: number): void {
    if (url.startsWith('file:')) this.#playout?.cue({ url, from: 0, at: endsAt, until: Number.POSITIVE_INFINITY });
  }

  onEnded(): void {
    if (!this.#playing) return;
    this.#drop();
    this.#cue(this.#options.clock.now());
  }

  onFailed(_item: CuedItem, reason: string): void {
    // The next round of an item that is still on air: its end is reported, too.
    if (this.#playing && this.#playout?.onAir !== null) return;
    this.#preparedFor = '';
    this.#drop();
    this.#stage.onFailed(reason);
  }

  #onReady({ live, slow }: Readiness): void {
    if (!this.#playing && !live && !slow) this.#drop();
  }

  #drop(): void {
    this.#playout?.close();
    this.#playout = null;
  }

  #cue(at: number): void {
    const { transcoder, clock, logger, later } = this.#options;
    const { tracks, address } = this.#stage;
    const stage = this.#stage;
    const videos = tracks.filter(({ type }) => type === 'video').length;
    this.#playout = new ChannelPlayout({
      stream: {
        setTracks: (announced) => this.#setTracks(announced, videos),
        push: (packet) => this.#push(packet),
        pushCue: (language, cue) => stage.pushCue(language, cue),
        // Events and cues of the stand-in's source are not passed on.
        pushEvent: () => false,
        // None of its packets has arrived.
        countBytes: () => undefined,
        get urgency() {
          return stage.urgency;
        },
        get closed() {
          return stage.closed;
        },
      },
      ...{ video: videos > 0, audio: tracks.filter(({ type }) => type === 'audio').map(() => ({})), present: tracks },
      ...{
        sources: this.#sources,
        transcoder,
        address,
        clock,
        errorToleranceMs: TOLERANCE_MS,
        listener: this,
        quiet: true,
        cuePieceMs: CUE_PIECE_MS,
      },
      ...(later !== undefined && { later }),
      logger: logger.limited.child({ vhost: address.vhost, app: address.app, stream: address.stream }),
      onReady: (item) => this.#onReady(item),
    });
    this.#playout.cue({ url: this.#settings.url, from: 0, at, until: Number.POSITIVE_INFINITY });
  }

  #setTracks(announced: readonly SourceTrack[], videos: number): void {
    const [first] = announced;
    this.#copies =
      first?.type === 'video' ? Array.from({ length: videos - 1 }, (_, index) => ({ ...first, id: first.id + 1 + index })) : [];
    this.#stage.setTracks(first === undefined ? [] : [first, ...this.#copies, ...announced.slice(1)]);
  }

  #push(packet: SourcePacket): void {
    this.#stage.push(packet);
    if (packet.trackId !== 0) return;
    for (const { id } of this.#copies) this.#stage.push({ ...packet, trackId: id });
  }
}

/** The codecs, on which conversion depends. */
function codecsOf({ tracks }: StandInStage): string {
  return tracks.map((track) => (isMediaTrack(track) ? track.codec : '')).join();
}
