/** One outbound stream and the tasks that push it. */
import type { PublishableStream, PublisherStream } from '../../core/publishing.ts';
import { MapHold } from '../../core/tasks/map-hold.ts';
import { Urgency } from '../../core/urgency.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { forEachGiven } from '../../util/guarded.ts';
import type { PushTimeouts } from './destination.ts';
import type { PushTask } from './push-task.ts';

/** A fault in one task of a stream ends that task's work, and nothing else. */
const failed = (task: PushTask, error: unknown): void => task.fail(error);
const push = (task: PushTask, packet: Packet): void => task.push(packet);
const setTracks = (task: PushTask, tracks: readonly Track[]): void => task.setTracks(tracks);
const end = (task: PushTask): void => task.streamEnded();
const flush = (task: PushTask): void => task.flush();

/** Made by the publisher, closed by the core. Tasks outlive it and wait for the next stream of the name, except tasks of a map file. */
export class PushStream implements PublisherStream {
  readonly source: PublishableStream;
  readonly #timeouts: PushTimeouts;
  readonly #onClose: () => void;
  readonly #tasks: PushTask[] = [];
  /** Empty until the stream has started. */
  #tracks: readonly Track[] = [];
  /** For the tasks that a map file brings. */
  readonly #hold = new MapHold();
  #closed = false;

  constructor(source: PublishableStream, timeouts: PushTimeouts, onClose: () => void) {
    this.source = source;
    this.#timeouts = timeouts;
    this.#onClose = onClose;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** The viewers behind the receiver are unknown. */
  get urgency(): Urgency {
    return this.#tasks.length > 0 ? Urgency.LOW_LATENCY : Urgency.NONE;
  }

  /** The task pushes this stream from now on. */
  begin(task: PushTask): void {
    if (this.#closed || this.#tasks.includes(task)) return;
    this.#tasks.push(task);
    this.source.wake();
    forEachGiven(
      [task],
      this.#hold.packets,
      (begun, packets) => {
        begun.begin(this.source, this.#timeouts);
        if (this.#tracks.length > 0) begun.setTracks(this.#tracks);
        for (const packet of packets) begun.push(packet);
        begun.flush();
      },
      failed,
    );
  }

  /** Holds packets until `release`, so that tasks which begin meanwhile miss nothing of a new stream. */
  hold(): void {
    this.#hold.hold();
  }

  /** Returns how many packets had no room meanwhile. */
  release(): number {
    return this.#hold.release();
  }

  /** The task is not to push for now; it waits as it does for a stream. */
  rest(task: PushTask): void {
    if (!this.#tasks.includes(task)) return;
    this.leave(task);
    forEachGiven([task], null, end, failed);
  }

  /** The task has been stopped. */
  leave(task: PushTask): void {
    const index = this.#tasks.indexOf(task);
    if (index >= 0) this.#tasks.splice(index, 1);
  }

  onTracks(tracks: readonly Track[]): void {
    this.#tracks = tracks;
    forEachGiven(this.#tasks, tracks, setTracks, failed);
  }

  onPacket(packet: Packet): void {
    this.#hold.push(packet);
    forEachGiven(this.#tasks, packet, push, failed);
  }

  onDrained(): void {
    forEachGiven(this.#tasks, null, flush, failed);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    forEachGiven(this.#tasks.splice(0), null, end, failed);
    this.#onClose();
  }
}
