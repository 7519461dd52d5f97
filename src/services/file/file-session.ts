/** Plays a file in real time, repeatedly, with continuous timestamps. */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { SourcePacket, SourceTrack } from '../../core/ingest.ts';
import type { PullSession, PullSink } from '../../core/pull.ts';
import { type Timebase, toSeconds } from '../../media/timebase.ts';
import type { FileEvent, MediaFile } from '../../playout/media-file.ts';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/message-of.ts';

/** Packets due within this time are sent together, ms. */
const TURN_MS = 10;
/** A file whose time jumps by more than this, or a disk that is late by more, does not make up for it, ms. */
const MAX_LEAD_MS = 5000;
/** A file that is over sooner would be a busy loop, seconds. */
const MIN_S = 0.1;

/** A file that is read in a loop. */
type RepeatedFile = Pick<MediaFile, 'next' | 'rewind'>;
type FilePacket = Extract<FileEvent, { type: 'packet' }>;

/** Facts about a track from one round through the file, seconds. */
interface Extent {
  readonly from: number;
  last: number;
  /** Duration of the last packet. */
  duration: number;
}

/** The core closes it. If the file cannot be read any further it ends and notifies the sink. `close` is idempotent. */
export class FileSession implements PullSession {
  readonly #file: RepeatedFile;
  readonly #sink: PullSink;
  readonly #clock: Clock;
  readonly #close: () => void;
  readonly #closing = new AbortController();
  readonly #extents = new Map<number, Extent>();
  /** The announced tracks; every round begins with them. */
  #tracks: readonly SourceTrack[] = [];
  /** Added to all times, seconds: the length of the rounds before. */
  #shift = 0;
  /** Monotonic time of second 0, ms; null before the first packet. */
  #origin: number | null = null;
  #paused: PromiseWithResolvers<void> | null = null;

  private constructor(file: RepeatedFile, options: { sink: PullSink; clock: Clock; close: () => void }) {
    this.#file = file;
    this.#sink = options.sink;
    this.#clock = options.clock;
    this.#close = options.close;
  }

  /** `close` gives the file back; it is called once. Rejects when there is nothing to play, and leaves the file to the caller then. */
  static async start(file: RepeatedFile, options: { sink: PullSink; clock: Clock; close: () => void }): Promise<FileSession> {
    const first = await file.next();
    if (first === null) throw new Error('the file has no playable media');
    const session = new FileSession(file, options);
    void session.#play(first);
    return session;
  }

  close(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.resume();
    this.#close();
  }

  pause(): void {
    if (!this.#closing.signal.aborted) this.#paused ??= Promise.withResolvers<void>();
  }

  resume(): void {
    this.#paused?.resolve();
    this.#paused = null;
  }

  async #play(first: FileEvent): Promise<void> {
    try {
      await this.#deliver(first);
      for (;;) {
        const event = await this.#file.next();
        if (this.#closing.signal.aborted) return;
        if (event === null) this.#begin();
        else await this.#deliver(event);
      }
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#sink.close({ code: 'peer-error', detail: messageOf(error) });
    }
  }

  /** From the beginning, behind everything of this round. */
  #begin(): void {
    let length = 0;
    for (const { from, last, duration } of this.#extents.values()) length = Math.max(length, last + duration - from);
    if (length < MIN_S) throw new Error(`the file has ${length.toFixed(3)} s of media, too little to play`);
    this.#shift += length;
    this.#extents.clear();
    this.#file.rewind();
  }

  async #deliver(event: FileEvent): Promise<void> {
    if (event.type === 'tracks') {
      if (sameTracks(this.#tracks, event.tracks)) return;
      this.#tracks = event.tracks;
      this.#sink.setTracks(event.tracks);
      return;
    }
    const { packet, timebase } = event;
    this.#measure(event);
    await this.#due(toSeconds(packet.dts, timebase) + this.#shift);
    if (this.#closing.signal.aborted) return;
    this.#sink.countBytes(packet.data.length);
    this.#sink.push(this.#shift === 0 ? packet : later(packet, timebase, this.#shift));
  }

  #measure({ packet, timebase, duration }: FilePacket): void {
    const at = toSeconds(packet.dts, timebase);
    const extent = this.#extents.get(packet.trackId);
    if (extent === undefined) {
      this.#extents.set(packet.trackId, { from: at, last: at, duration: toSeconds(duration, timebase) });
      return;
    }
    extent.duration = duration > 0 ? toSeconds(duration, timebase) : Math.max(0, at - extent.last);
    extent.last = Math.max(extent.last, at);
  }

  /** Waits until second `at` is due, and while the server has too much to do. */
  async #due(at: number): Promise<void> {
    const now = this.#clock.monotonic();
    this.#origin ??= now - at * 1000;
    let wait = this.#origin + at * 1000 - now;
    if (Math.abs(wait) > MAX_LEAD_MS) {
      this.#origin = now - at * 1000;
      wait = 0;
    }
    if (wait > 0) await delay(Math.max(wait, TURN_MS), undefined, { signal: this.#closing.signal });
    while (this.#paused !== null) await this.#paused.promise;
  }
}

function later(packet: SourcePacket, { num, den }: Timebase, seconds: number): SourcePacket {
  const ticks = Math.round((seconds * den) / num);
  return { ...packet, pts: packet.pts + ticks, dts: packet.dts + ticks };
}

function sameTracks(a: readonly SourceTrack[], b: readonly SourceTrack[]): boolean {
  return a.length === b.length && a.every((track, index) => isDeepStrictEqual(track, b[index]));
}
