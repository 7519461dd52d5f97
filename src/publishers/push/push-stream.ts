/** One outbound stream and the tasks that push it. */
import type { PublishableStream, PublisherStream } from '../../core/publishing.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { MapHold } from '../tasks/map-hold.ts';
import type { PushTimeouts } from './destination.ts';
import type { PushTask } from './push-task.ts';

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

  get attended(): boolean {
    return this.#tasks.length > 0;
  }

  /** The task pushes this stream from now on. */
  begin(task: PushTask): void {
    if (this.#closed || this.#tasks.includes(task)) return;
    this.#tasks.push(task);
    this.source.attend();
    guarded(task, () => {
      task.begin(this.source, this.#timeouts);
      if (this.#tracks.length > 0) task.setTracks(this.#tracks);
      for (const packet of this.#hold.packets) task.push(packet);
      task.flush();
    });
  }

  /** Keeps what comes until `release`, so that tasks which begin meanwhile miss nothing of a new stream. */
  hold(): void {
    this.#hold.hold();
  }

  release(): void {
    this.#hold.release();
  }

  /** The task has been stopped. */
  leave(task: PushTask): void {
    const index = this.#tasks.indexOf(task);
    if (index >= 0) this.#tasks.splice(index, 1);
  }

  onTracks(tracks: readonly Track[]): void {
    this.#tracks = tracks;
    for (const task of this.#tasks) guarded(task, () => task.setTracks(tracks));
  }

  onPacket(packet: Packet): void {
    this.#hold.push(packet);
    for (const task of this.#tasks) {
      try {
        task.push(packet);
      } catch (error) {
        task.fail(error);
      }
    }
  }

  onDrained(): void {
    for (const task of this.#tasks) guarded(task, () => task.flush());
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const task of this.#tasks.splice(0)) task.streamEnded();
    this.#onClose();
  }
}

/** What goes wrong in one task is no trouble of the others. */
function guarded(task: PushTask, action: () => void): void {
  try {
    action();
  } catch (error) {
    task.fail(error);
  }
}
