/**
 * One timeline for sources that each begin at 0, placed by the wall clock of their media time 0. Encodes of one inbound stream share a
 * clock and stay aligned to the tick; others are aligned as accurately as their clocks are known.
 */
import type { Timebase } from '../../media/timebase.ts';

/** A stream that knows the wall clock of its media time 0, which moves. */
interface Clocked {
  /** Wall clock, ms. Moves when it is off by more than a second. */
  readonly startedAt: number;
  /** The same as well as it is known now. */
  readonly estimatedStart: () => number;
}

/** The time of one channel while it plays. Sources `join` it and `leave` it. */
export class ChannelTime {
  readonly #sources = new Set<SourceTime>();
  /** Wall clock of channel time 0, ms; null before the first source has delivered. */
  #base: number | null = null;

  /** A source will deliver from now on. */
  join(stream: Clocked): SourceTime {
    const source = new SourceTime(stream, this);
    this.#sources.add(source);
    return source;
  }

  /** It no longer delivers. Idempotent. */
  leave(source: SourceTime): void {
    this.#sources.delete(source);
  }

  /**
   * Wall clock of channel time 0, for a source whose clock has become `startedAt`. A pause of all sources, or of a single source, is not a
   * gap in the channel: the base moves along.
   */
  baseFor(startedAt: number): number {
    this.#base ??= startedAt;
    const moves = Array.from(this.#sources, ({ move }) => move).filter(Number.isFinite);
    const [least, most] = [Math.min(...moves), Math.max(...moves)];
    if (moves.length > 0 && least > 0) this.#base += least;
    else if (moves.length > 0 && most < 0) this.#base += most;
    return this.#base;
  }
}

/** The place of one source's packets in the time of the channel. */
export class SourceTime {
  readonly #stream: Clocked;
  readonly #time: ChannelTime;
  /** The stream's latest start time; null before the first packet. */
  #told: number | null = null;
  /** Its start as the channel takes it, ms. */
  #startedAt = 0;
  /** Offset from the source's media time to the channel's, ms. */
  #offset = 0;

  constructor(stream: Clocked, time: ChannelTime) {
    this.#stream = stream;
    this.#time = time;
  }

  /** Unheeded movement of the source's clock, ms; infinite before its first packet. */
  get move(): number {
    if (this.#told === null) return Number.POSITIVE_INFINITY;
    return this.#stream.startedAt === this.#told ? 0 : this.#stream.startedAt - this.#startedAt;
  }

  /** Ticks to add to times of `timebase`, for a packet that comes now. */
  offset({ num, den }: Timebase): number {
    if (this.#stream.startedAt !== this.#told) this.#follow();
    return Math.round((this.#offset * den) / (1000 * num));
  }

  #follow(): void {
    const { startedAt } = this.#stream;
    // A clock that has moved was measured just now; before, an estimate over some seconds is better than the first packet.
    const clock = this.#told === null ? this.#stream.estimatedStart() : startedAt;
    const base = this.#time.baseFor(clock);
    this.#told = startedAt;
    this.#startedAt = clock;
    this.#offset = clock - base;
  }
}
