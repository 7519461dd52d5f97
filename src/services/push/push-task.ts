/** A push task: waits for its stream, connects, sends, and calls again when the receiver is lost. */
import { PublisherKind } from '../../core/kinds.ts';
import type { Notices } from '../../core/notices/notice.ts';
import { postTask } from '../../core/notices/task-notices.ts';
import type { PublishableStream } from '../../core/publishing.ts';
import type { QueueRegistry } from '../../core/queue-registry.ts';
import { FollowingTask, NO_TOTALS, type TaskOrigin, type TaskTotals } from '../../core/tasks/following-task.ts';
import type { Packet } from '../../media/packet.ts';
import { isMediaTrack, isVideoTrack, type Track } from '../../media/track.ts';
import type { BoundedQueue } from '../../util/bounded-queue.ts';
import type { Clock } from '../../util/clock.ts';
import { growingPause } from '../../util/growing-pause.ts';
import { type KnownSecrets, withoutOwnSecrets } from '../../util/known-secrets.ts';
import type { Logger } from '../../util/logger.ts';
import type { OpenDestination, PushTimeouts } from './destination.ts';
import { PushFailure } from './push-failure.ts';
import type { PushCounts } from './push-metrics.ts';
import { type PushRequest, receiverOf, secretsOfPush } from './push-request.ts';
import { PushSession } from './push-session.ts';
import { MAX_SEND_QUEUE_PACKETS } from './send-queue.ts';
import { leftOut, pushedTracks } from './track-selection.ts';

/** Words of the API. */
export const PushState = {
  READY: 'ready',
  CONNECTING: 'connecting',
  PUSHING: 'pushing',
  STOPPING: 'stopping',
  STOPPED: 'stopped',
  ERROR: 'error',
} as const;
/** Any of these words. */
export type PushState = (typeof PushState)[keyof typeof PushState];

/** How long a task waits before it calls its receiver again. */
const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 15_000;
/** Tasks that lost one receiver together must not reconnect together. */
const RETRY_JITTER = 0.2;
/** A connection that lasted this long was a good one, ms: the next failure is the first again. */
const STABLE_MS = 10_000;

/** Dependencies shared by tasks. */
export interface PushContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly queues: QueueRegistry;
  readonly notices: Notices;
  /** Receivers may echo it; the echo is never shown. */
  readonly secrets: KnownSecrets;
  readonly open: OpenDestination;
  /** 0 to 1. */
  readonly random: () => number;
  /** Counters of the server; absent: none. */
  readonly counts?: PushCounts;
  /** A connection that had sent media is over: totals have changed. */
  readonly onConnectionOver: (task: PushTask) => void;
}

/** Owned by the registry of the publisher. Calls a lost receiver again after a pause that grows, for as long as its stream is there. */
export class PushTask extends FollowingTask<PushRequest> {
  readonly #context: PushContext;
  readonly #logger: Logger;
  #state: PushState = PushState.READY;
  #reason: string | null = null;
  /** Totals of closed connections. */
  #totals: TaskTotals;
  #stream: PublishableStream | null = null;
  #timeouts: PushTimeouts | null = null;
  #selected: readonly Track[] = [];
  #session: PushSession | null = null;
  #queue: BoundedQueue<Packet> | null = null;
  #startedAt: number | null = null;
  #finishedAt: number | null = null;
  #openedAt = 0;
  /** The receiver takes media. */
  #pushing = false;
  /** Figures of the last connection, until there is another. */
  #lastBytes = 0;
  #lastTime = 0;
  #countedBytes = 0;
  #failures = 0;
  #retry: NodeJS.Timeout | null = null;
  #stopping: Promise<void> | null = null;
  readonly #closing = new Set<Promise<void>>();

  constructor(origin: TaskOrigin<PushRequest>, context: PushContext) {
    super(origin);
    this.#totals = origin.totals ?? NO_TOTALS;
    this.#context = context;
    const { id, streamName, protocol } = origin.request;
    this.#logger = context.logger.child({ vhost: origin.vhost, app: origin.app, stream: streamName, push: id, protocol });
  }

  get state(): PushState {
    return this.#state;
  }

  #become(state: PushState, reason: string | null = null): void {
    const isNew = state !== this.#state || reason !== this.#reason;
    this.#state = state;
    this.#reason = reason;
    if (isNew) postTask(this.#context.notices, 'push', this);
  }

  /** The error in the state `error`, else null. */
  get reason(): string | null {
    return this.#reason;
  }

  /** When sending of media began and ended, for the last connection; ms since the epoch, null for never. */
  get startTime(): number | null {
    return this.#startedAt;
  }
  get finishTime(): number | null {
    return this.#finishedAt;
  }

  /** Bytes and ms of this connection, or of the last. */
  get sentBytes(): number {
    return this.#session?.sentBytes ?? this.#lastBytes;
  }
  get sentTime(): number {
    return this.#pushing ? Math.round(this.#context.clock.monotonic() - this.#openedAt) : this.#lastTime;
  }

  /** Totals of all connections, the present one included. */
  override get totals(): TaskTotals {
    const { sequence, bytes, time } = this.#totals;
    return { sequence, bytes: bytes + (this.#session?.sentBytes ?? 0), time: time + (this.#pushing ? this.sentTime : 0) };
  }

  /** The stream is there. Its tracks follow with `setTracks`. */
  begin(stream: PublishableStream, timeouts: PushTimeouts): void {
    if (this.#stopping !== null) return;
    this.#stream = stream;
    this.#timeouts = timeouts;
    this.#failures = 0;
  }

  /** The present tracks: connects, or reconnects if the selected tracks have changed. */
  setTracks(tracks: readonly Track[]): void {
    if (this.#stream === null || this.#stopping !== null) return;
    let selected: readonly Track[];
    try {
      selected = pushedTracks(this.request, tracks);
    } catch (error) {
      if (!(error instanceof PushFailure)) throw error;
      this.#selected = [];
      this.#end(error.message);
      this.#fault(error.message);
      return;
    }
    const same = sameTracks(selected, this.#selected);
    this.#selected = selected;
    const left = same ? '' : leftOut(this.request, tracks);
    if (left !== '') this.#logger.warn({ tracks: left }, `push '${this.request.id}' leaves out ${left}: the protocol cannot carry it`);
    if (same && (this.#session !== null || this.#retry !== null)) return;
    this.#end('tracks of the stream have changed');
    this.#connect();
  }

  push(packet: Packet): void {
    const session = this.#session;
    if (session === null) return;
    const { id } = packet.track;
    for (const track of this.#selected) {
      if (track.id === id) {
        session.push(packet);
        return;
      }
    }
  }

  /** Sends pushed packets. */
  flush(): void {
    this.#session?.flush();
    this.#count();
  }

  /** An unexpected error: drops the connection and reconnects later. */
  fail(error: unknown): void {
    if (this.#stream !== null && this.#stopping === null) this.#failed(new PushFailure('internal', 'internal error', { cause: error }));
  }

  /** The stream is gone: the task waits for it again. */
  streamEnded(): void {
    this.#end('the stream ended');
    this.#stream = null;
    this.#selected = [];
    if (this.#stopping !== null) return;
    this.#become(PushState.READY);
  }

  /** Takes leave of the receiver for good; resolves when that is done. Idempotent. */
  override stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#become(PushState.STOPPING);
    this.#end('the task was stopped');
    this.#stream = null;
    await this.settled();
    this.#become(PushState.STOPPED);
  }

  /** Resolves when connections that were ended are gone. */
  override async settled(): Promise<void> {
    await Promise.all(this.#closing);
  }

  #connect(): void {
    const { clock, queues, open } = this.#context;
    const { request } = this;
    if (this.#stream === null || this.#timeouts === null) return;
    this.#become(PushState.CONNECTING);
    this.#lastBytes = 0;
    this.#lastTime = 0;
    this.#countedBytes = 0;
    const urn = `mngq:v=${this.vhost}#${this.app}:s=/${request.streamName}:p=pub:r=streamworker_[push]_${request.id}`;
    const queue = queues.create<Packet>({ urn, type: 'Packet', threshold: MAX_SEND_QUEUE_PACKETS });
    this.#queue = queue;
    const shared = { request, owner: this, logger: this.#logger, tracks: this.#selected, timeouts: this.#timeouts, clock, open, queue };
    try {
      this.#session = new PushSession({ ...shared, onOpen: () => this.#opened(), onFailed: (failure) => this.#failed(failure) });
    } catch (error) {
      if (!(error instanceof PushFailure)) {
        this.fail(error);
        return;
      }
      this.#end(error.message);
      this.#fault(error.message);
      return;
    }
    // There are no encoders to wait for.
    for (const track of this.#selected) if (isVideoTrack(track)) this.#stream.requestKeyframe(track.id);
  }

  #opened(): void {
    const { clock } = this.#context;
    this.#become(PushState.PUSHING);
    if (this.#context.counts !== undefined) this.#context.counts.connections += 1;
    this.#pushing = true;
    this.#startedAt = clock.now();
    this.#openedAt = clock.monotonic();
    this.#stream?.meter.connect(PublisherKind.PUSH);
    const tracks = this.#selected.map(kindOf);
    this.#logger.info({ receiver: receiverOf(this.request.url), tracks }, `push '${this.request.id}' runs`);
  }

  #failed(failure: PushFailure): void {
    const { clock, random } = this.#context;
    if (this.#pushing && clock.monotonic() - this.#openedAt >= STABLE_MS) this.#failures = 0;
    const why = this.#context.secrets.masked(withoutOwnSecrets(failure.message, secretsOfPush(this.request)));
    this.#end(why);
    this.#failures += 1;
    if (failure.code === 'internal') this.#logger.error({ err: failure.cause }, 'push failed inside the server');
    this.#fault(why);
    const delay = retryDelay(this.#failures, random());
    this.#retry = setTimeout(() => {
      this.#retry = null;
      try {
        this.#connect();
      } catch (error) {
        this.fail(error);
      }
    }, delay);
  }

  /** A repeated fault is logged once per attempt; attempts are rare. */
  #fault(reason: string): void {
    this.#become(PushState.ERROR, reason);
    if (this.#context.counts !== undefined) this.#context.counts.failures += 1;
    this.#logger.warn(
      { receiver: receiverOf(this.request.url), failures: this.#failures, reason },
      `push '${this.request.id}' failed: ${reason}`,
    );
  }

  /** Ends the connection, if there is one, and keeps its figures. */
  #end(why: string): void {
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    const session = this.#session;
    if (session !== null) {
      // Waiting packets still leave, so figures are taken after them.
      const closing = session.close();
      const gone = closing.catch((error: unknown) => this.#logger.error({ err: error }, 'the connection of a push could not be closed'));
      this.#closing.add(gone);
      void gone.finally(() => this.#closing.delete(gone));
      this.#count();
      const time = this.#pushing ? this.sentTime : null;
      this.#session = null;
      this.#pushing = false;
      if (time !== null) this.#keepFigures(session, time, why);
    }
    if (this.#queue !== null) this.#context.queues.remove(this.#queue);
    this.#queue = null;
  }

  #keepFigures({ sentBytes, dropped }: PushSession, lasted: number, why: string): void {
    const { clock, onConnectionOver, counts } = this.#context;
    if (counts !== undefined) counts.dropped += dropped;
    this.#lastBytes = sentBytes;
    this.#lastTime = lasted;
    this.#finishedAt = clock.now();
    const { sequence, bytes, time } = this.#totals;
    this.#totals = { sequence: sequence + 1, bytes: bytes + sentBytes, time: time + lasted };
    this.#stream?.meter.disconnect(PublisherKind.PUSH);
    const { id, url } = this.request;
    this.#logger.info(
      { receiver: receiverOf(url), sentBytes, durationMs: lasted, dropped, reason: why },
      `push '${id}' disconnected: ${why}`,
    );
    onConnectionOver(this);
  }

  /** Adds the bytes sent since the last time to the counters of the stream. */
  #count(): void {
    const sent = this.#session?.sentBytes ?? 0;
    if (sent > this.#countedBytes) {
      this.#stream?.meter.countBytes(sent - this.#countedBytes);
      if (this.#context.counts !== undefined) this.#context.counts.bytes += sent - this.#countedBytes;
    }
    this.#countedBytes = sent;
  }
}

/** Whether the tracks are the same, regardless of their parameters. */
function sameTracks(a: readonly Track[], b: readonly Track[]): boolean {
  return a.length === b.length && a.every((track, index) => kindOf(track) === kindOf(b[index]));
}

function kindOf(track: Track | undefined): string {
  if (track === undefined) return '';
  return `${track.id}:${isMediaTrack(track) ? track.codec : track.type}`;
}

/** Milliseconds before the next attempt after `failures` in a row; `random` is 0 to 1. */
export function retryDelay(failures: number, random: number): number {
  return Math.round(growingPause(failures - 1, FIRST_RETRY_MS, MAX_RETRY_MS) * (1 - RETRY_JITTER + 2 * RETRY_JITTER * random));
}
