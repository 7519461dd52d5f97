/** All clients that follow the server live. */
import type { Notice } from '../../core/notices/notice.ts';
import type { NoticeBoard } from '../../core/notices/notice-board.ts';
import { guarded } from '../../util/guarded.ts';
import type { LogLine, LogTail } from '../../util/log-tail.ts';
import type { Logger } from '../../util/logger.ts';
import type { FollowedBoard } from './followed-board.ts';
import { Follower, type FollowerOptions, type FollowerSink } from './follower.ts';

/** Limit of simultaneous followers. */
const MAX_FOLLOWERS = 64;
/** Maximum wait for open responses when the server ends, ms; a slow client delays nothing else. */
const END_MS = 500;
/** Times in milliseconds. */
const TIMES = {
  /** Events within this time are sent together. */
  gather: 50,
  /** Time without an event, after which a comment is sent. */
  beat: 15_000,
  /** Time limit of a write. */
  stall: 30_000,
  /** Interval of the checks for both. */
  sweep: 2500,
};

/** Options of a feed. */
export interface LiveFeedOptions<B> {
  readonly board: B;
  readonly logger: Logger;
  /** Default: 64. */
  readonly maxFollowers?: number;
  readonly times?: Partial<typeof TIMES>;
}

/** An answer that is ready for its body. */
export interface LiveAnswer extends FollowerSink {
  once(event: 'close', listener: () => void): unknown;
  on(event: 'error', listener: () => void): unknown;
}

/**
 * Wakes its followers at most once in 50 ms, and does nothing without followers. A client that reads nothing for half a minute is
 * disconnected. One for each board; the server closes it.
 */
export class LiveFeed<N extends { readonly type: string }, B extends FollowedBoard<N> = FollowedBoard<N>> {
  /** Clients refused for lack of room. */
  refused = 0;
  /** Clients that were disconnected because they did not read. */
  cut = 0;
  /** Entries that followers missed because they were too slow. */
  missed = 0;
  readonly #options: LiveFeedOptions<B>;
  readonly #times: typeof TIMES;
  readonly #followers = new Set<Follower<N>>();
  #unwatch: (() => void) | null = null;
  #sweeper: NodeJS.Timeout | null = null;
  #waking: NodeJS.Timeout | null = null;
  #closed = false;
  /** Called when the last response of a closed feed has ended. */
  #onEmpty: (() => void) | null = null;

  constructor(options: LiveFeedOptions<B>) {
    this.#options = options;
    this.#times = { ...TIMES, ...options.times };
  }

  get board(): B {
    return this.#options.board;
  }

  /** Number of followers. */
  get size(): number {
    return this.#followers.size;
  }

  /** Whether there is no room for another client; counts refused clients. */
  get isFull(): boolean {
    const isFull = this.#followers.size >= (this.#options.maxFollowers ?? MAX_FOLLOWERS);
    if (isFull) this.refused += 1;
    return isFull;
  }

  /** Streams entries to `answer` until it closes, which `onGone` reports. */
  follow(
    answer: LiveAnswer,
    { wants, after, back, onGone }: Pick<FollowerOptions<N>, 'wants' | 'after' | 'back'> & { readonly onGone?: () => void },
  ): void {
    const { board } = this.#options;
    const onMissed = (count: number): void => {
      this.missed += count;
    };
    const follower = new Follower<N>(
      { board, sink: answer, wants, after, ...(back !== undefined && { back }), onMissed },
      performance.now(),
    );
    if (this.#closed) {
      follower.end();
      onGone?.();
      return;
    }
    this.#followers.add(follower);
    // A `close` event follows.
    answer.on('error', () => undefined);
    answer.once('close', () => {
      follower.gone();
      this.#followers.delete(follower);
      onGone?.();
      if (this.#followers.size > 0) return;
      this.#rest();
      this.#onEmpty?.();
    });
    this.#watch();
    follower.pump(now);
  }

  /**
   * Ends all responses; new ones are ended at once. Resolves when the clients have left, after half a second at the latest. Idempotent.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#rest();
    for (const follower of this.#followers) follower.end();
    if (this.#followers.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onEmpty = resolve;
    const deadline = setTimeout(resolve, END_MS);
    await promise;
    clearTimeout(deadline);
    this.#followers.clear();
  }

  #watch(): void {
    const { board, logger } = this.#options;
    const wake = guarded(logger, 'the live events', () => this.#wake());
    this.#unwatch ??= board.watch(() => {
      this.#waking ??= setTimeout(wake, this.#times.gather);
    });
    this.#sweeper ??= setInterval(
      guarded(logger, 'the watch over live events', () => this.#sweep(performance.now())),
      this.#times.sweep,
    );
  }

  #rest(): void {
    this.#unwatch?.();
    this.#unwatch = null;
    if (this.#sweeper !== null) clearInterval(this.#sweeper);
    this.#sweeper = null;
    if (this.#waking !== null) clearTimeout(this.#waking);
    this.#waking = null;
  }

  #wake(): void {
    this.#waking = null;
    for (const follower of this.#followers) follower.pump(now);
  }

  #sweep(at: number): void {
    const { stall, beat } = this.#times;
    for (const follower of this.#followers) {
      const { stalledSince } = follower;
      if (stalledSince !== null && at - stalledSince > stall) {
        this.cut += 1;
        this.#options.logger.warn({}, `a client of the live events read nothing for ${stall} ms: it was disconnected`);
        follower.cut();
      } else if (at - follower.wroteAt >= beat) follower.beat(now);
    }
  }
}

const now = (): number => performance.now();

/** Serves the events (`GET /v1/events`). */
export type EventFeed = LiveFeed<Notice, NoticeBoard>;
/** Follows the log (`GET /v2/logs`). */
export type LogFeed = LiveFeed<LogLine, LogTail>;
