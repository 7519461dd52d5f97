import type { StandInConfig } from '../config/index.ts';
import type { Track } from '../media/track.ts';
import type { Clock } from '../util/clock.ts';
import { guarded } from '../util/guarded.ts';
import type { Logger } from '../util/logger.ts';
import { TokenBucket } from '../util/token-bucket.ts';
import { EncoderGate } from './encoder-gate.ts';
import type { CloseReason, SourcePacket, SourceTrack } from './ingest.ts';
import type { GatedStream, StandIn, StandInStage, StandIns } from './stand-in.ts';
import { addressOf } from './stream-address.ts';

const LOOK_MS = 100;
/** A check this much later than planned, ms, was held up, and so was the reading of data sent meanwhile. */
const HELD_UP_MS = 200;
/** Pauses before a stand-in that cannot be played is tried again, ms: while it is needed, and while it is only prepared. */
const RETRY_MS = 1000;
const PREPARE_AGAIN_MS = 10_000;
/** Time after which a stream without encoder and stand-in ends, ms, unless it is kept for longer (`KeepStreamMs`). */
const NOTHING_MS = 10_000;
/** An encoder that has sent within this time, ms, is present, and the stream does not end for lack of one. */
const PRESENT_MS = 1000;
/** Limit of an encoder's returns. A flapping encoder stays behind the stand-in for longer. */
const RETURNS = { burst: 5, perSecond: 0.5 } as const;

/** An encoder's first burst puts the stream ahead of the clock, and viewers as far behind. More than this, ms, is not kept. */
const MAX_AHEAD_MS = 1000;
/** A larger change of the difference, ms, means that the clock of the source has jumped. */
const MAX_JUMP_MS = 10_000;

/** The parts of the stream that a stand-in changes. */
export interface CoveredStream extends GatedStream {
  readonly app: string;
  readonly tracks: readonly Track[];
  /** Another source follows. `keepsTime`: its times may be kept. */
  changeSource(options: { readonly keepsTime: boolean }): void;
  /** End of the media passed on so far, ms of the stream. */
  readonly mediaEnd: number;
  /** Since the encoder sent audio or video, ms. */
  readonly silence: number;
  /** As `setTracks` and `push` of the stream, but without counting for the encoder. */
  takeTracks(tracks: readonly SourceTrack[]): void;
  take(packet: SourcePacket): void;
  terminate(reason: CloseReason): void;
}

/** Options that decide when a stand-in plays. */
export interface StandInControllerOptions {
  readonly settings: StandInConfig;
  /** How long the stream is kept without a source, ms. */
  readonly keepMs: number;
  readonly open: StandIns;
  readonly stream: CoveredStream;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Puts the stand-in of a stream on air when its encoder leaves or falls silent, and takes it off when an encoder is back: from then on
 * encoders have to pass a gate. Each stream with a stand-in has one, and closes it.
 */
export class StandInController {
  readonly url: string;
  readonly #options: StandInControllerOptions;
  readonly #standIn: StandIn;
  /** The present encoder's gate. */
  #gate: EncoderGate | null = null;
  /** `called`: the stand-in begins as soon as it can. */
  #state: 'resting' | 'called' | 'on air' = 'resting';
  /** Why it was called, and when; monotonic ms. */
  #cause: CloseReason = { code: 'timeout', detail: '' };
  #calledAt = 0;
  /** Monotonic ms of the next attempt; null: the stand-in has not failed. */
  #againAt: number | null = null;
  /** Since when both encoder and stand-in have been absent; monotonic ms. */
  #nothingSince: number | null = null;
  /** Reason of the last failure in the log, where a repeated reason appears once. */
  #told = '';
  #tracksChanged = false;
  #flows = false;
  /** Difference between stream time and clock when the first encoder left, ms. */
  #base = Number.NEGATIVE_INFINITY;
  readonly #returns = new TokenBucket(RETURNS);
  readonly #timer: NodeJS.Timeout;
  #lookedAt: number;
  #closed = false;
  /** Number of times on air. */
  airings = 0;

  constructor(options: StandInControllerOptions) {
    this.#options = options;
    const { stream, settings, clock, logger } = options;
    this.url = settings.url;
    const stage: StandInStage = {
      address: addressOf(stream),
      get tracks() {
        return stream.tracks;
      },
      get urgency() {
        return stream.urgency;
      },
      get closed() {
        return stream.closed;
      },
      setTracks: (tracks) => this.#play(tracks),
      push: (packet) => {
        if (this.onAir) stream.take(packet);
      },
      pushCue: (language, cue) => this.onAir && stream.pushCue(language, cue),
      onFailed: (reason) => this.fail(reason),
    };
    this.#standIn = options.open(settings, stage);
    this.#lookedAt = clock.monotonic();
    this.#timer = setInterval(
      guarded(logger, 'the stand-in of a stream', () => this.#look()),
      LOOK_MS,
    );
  }

  /** Viewers see the stand-in. */
  get onAir(): boolean {
    return this.#state === 'on air';
  }

  /** Encoders have to wait: the stand-in is on air, or it is about to be because no encoder was there. */
  get isCalled(): boolean {
    return this.#state !== 'resting';
  }

  /** Viewers have received media that it can continue. */
  get canStandIn(): boolean {
    return this.#flows && !this.#closed;
  }

  /** A packet of the stream has been passed on. */
  flows(): void {
    this.#flows = true;
  }

  /** The tracks that viewers have may have changed. */
  tracksChanged(): void {
    this.#tracksChanged = true;
  }

  wake(): void {
    if (this.isCalled) this.#standIn.wake();
  }

  /** The gate of a new encoder; the previous encoder's gate no longer counts. */
  gate(): EncoderGate {
    const gate = new EncoderGate({
      stream: this.#options.stream,
      now: () => this.#now,
      onReady: () => this.#gate === gate && this.#return(),
    });
    this.#gate = gate;
    if (this.isCalled) gate.shut();
    return gate;
  }

  /** The encoder has left. */
  encoderLeft(reason: CloseReason): void {
    this.#gate = null;
    if (this.isCalled) this.#cause = reason;
    else this.#call(reason, 'the encoder left');
  }

  /** The stand-in cannot be played, or no longer. */
  fail(reason: string): void {
    if (this.#closed || this.#againAt !== null) return;
    const { logger } = this.#options;
    this.#standIn.rest();
    this.#againAt = this.#now + (this.isCalled ? RETRY_MS : PREPARE_AGAIN_MS);
    if (this.onAir) this.#state = 'called';
    if (this.isCalled) this.#nothingSince ??= this.#now;
    if (this.#told !== reason) logger.warn({ standIn: this.url }, `the stand-in cannot be played: ${reason}`);
    this.#told = reason;
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#timer);
    this.#standIn.close();
  }

  get #now(): number {
    return this.#options.clock.monotonic();
  }

  #call(cause: CloseReason, what: string): void {
    const { clock, logger, stream } = this.#options;
    this.#state = 'called';
    this.#cause = cause;
    this.#calledAt = this.#now;
    this.#nothingSince = null;
    this.#againAt = null;
    logger.info({ standIn: this.url, reason: cause.code }, `${what}, stand-in ${this.url}: ${cause.detail}`);
    this.#standIn.play(clock.now() - stream.silence + this.#excess());
  }

  /**
   * How much further than allowed the stream is ahead of the clock, ms. The stand-in begins this much later, so that viewers first play
   * what they have.
   */
  #excess(): number {
    const { stream } = this.#options;
    const base = stream.mediaEnd - (this.#now - stream.silence);
    const ahead = base - this.#base;
    if (Math.abs(ahead) < MAX_JUMP_MS) return Math.max(0, ahead - MAX_AHEAD_MS);
    this.#base = base;
    return 0;
  }

  /** The stand-in begins, or continues with other tracks. */
  #play(tracks: readonly SourceTrack[]): void {
    const { stream } = this.#options;
    if (!this.isCalled || this.#closed) return;
    if (!this.onAir) {
      this.#state = 'on air';
      this.airings += 1;
      this.#againAt = null;
      this.#nothingSince = null;
      this.#told = '';
      this.#gate?.shut();
      stream.changeSource({ keepsTime: false });
    }
    stream.takeTracks(tracks);
  }

  /** The encoder has sent a packet with which the stream can continue; false if it must wait. */
  #return(): boolean {
    const { logger, stream } = this.#options;
    if (this.#closed || !this.#returns.take(this.#now)) return false;
    const seconds = ((this.#now - this.#calledAt) / 1000).toFixed(1);
    this.#rest();
    stream.changeSource({ keepsTime: true });
    logger.info({ seconds: Number(seconds) }, `the encoder is back after ${seconds} s`);
    this.#gate?.open();
    return true;
  }

  #rest(): void {
    this.#standIn.rest();
    this.#state = 'resting';
    this.#againAt = null;
    this.#tracksChanged = true;
  }

  #look(): void {
    const now = this.#now;
    const isHeldUp = now - this.#lookedAt > LOOK_MS + HELD_UP_MS;
    this.#lookedAt = now;
    if (this.#closed || isHeldUp) return;
    if (this.#state === 'resting') this.#lookAtEncoder(now);
    else this.#lookAtDuty(now);
  }

  #lookAtEncoder(now: number): void {
    const { settings, stream } = this.#options;
    if (this.#gate === null || !this.#flows) return;
    const { silence } = stream;
    if (settings.afterMs > 0 && silence >= settings.afterMs) {
      this.#call({ code: 'timeout', detail: `no audio and no video for ${Math.round(silence)} ms` }, 'the encoder is silent');
      return;
    }
    const isAgain = this.#againAt !== null && now >= this.#againAt;
    if (!this.#tracksChanged && !isAgain) return;
    this.#tracksChanged = false;
    this.#againAt = null;
    this.#standIn.prepare();
  }

  #lookAtDuty(now: number): void {
    const { clock, settings, stream, keepMs, logger } = this.#options;
    const isPresent = this.#gate !== null && stream.silence < PRESENT_MS;
    // The encoder was only silent, and viewers have not seen the stand-in.
    if (this.#state === 'called' && this.#gate?.isShut === false && stream.silence < settings.afterMs) {
      logger.info({}, 'the encoder sends again');
      this.#rest();
      return;
    }
    const { code, detail } = this.#cause;
    if (settings.keepMs > 0 && now - this.#calledAt >= settings.keepMs && !isPresent) {
      stream.terminate({ code, detail: `no encoder came within ${settings.keepMs} ms (StandIn/KeepMs) after: ${detail}` });
      return;
    }
    const limit = Math.max(keepMs, NOTHING_MS);
    if (this.#gate === null && this.#nothingSince !== null && now - this.#nothingSince >= limit) {
      stream.terminate({ code, detail: `neither an encoder nor the stand-in came within ${limit} ms after: ${detail}` });
      return;
    }
    if (this.#againAt === null || now < this.#againAt) return;
    this.#againAt = null;
    this.#standIn.play(clock.now());
  }
}
