import type { CloseReason } from '../../core/ingest.ts';
import type { PublishableStream, PublisherStream } from '../../core/publishing.ts';
import { MapHold } from '../../core/tasks/map-hold.ts';
import { Urgency } from '../../core/urgency.ts';
import type { Packet } from '../../media/packet.ts';
import type { Track } from '../../media/track.ts';
import { forEachGiven } from '../../util/guarded.ts';
import type { RecordPlace } from './record-place.ts';
import { RecordState, type RecordTask } from './record-task.ts';

/** A fault in one task of a stream ends that task's work, and nothing else. */
const failed = (task: RecordTask, error: unknown): void => task.fail(error);
const push = (task: RecordTask, packet: Packet): void => task.push(packet);
const end = (task: RecordTask): void => task.streamEnded();
const setTracks = (task: RecordTask, tracks: readonly Track[]): void => task.setTracks(tracks);

/** One outbound stream and the tasks that record it. The core attaches and closes it. */
export class RecordedStream implements PublisherStream {
  readonly source: PublishableStream;
  readonly #place: RecordPlace;
  readonly #waiting: () => RecordTask[];
  readonly #onClose: () => void;
  readonly #active = new Set<RecordTask>();
  /** For the tasks that a map file brings. */
  readonly #hold = new MapHold();
  #started = false;
  #closed = false;

  constructor(source: PublishableStream, place: RecordPlace, owner: { readonly tasks: () => RecordTask[]; readonly onClose: () => void }) {
    this.source = source;
    this.#place = place;
    this.#waiting = owner.tasks;
    this.#onClose = owner.onClose;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Files are written in batches of some tenths of a second (`MAX_HELD_BACK`), which allows for the wait in a resting socket. */
  get urgency(): Urgency {
    for (const { state } of this.#active) if (state === RecordState.RECORDING) return Urgency.BATCHED;
    return Urgency.NONE;
  }

  /** Lets a task record this stream, at once or as soon as its tracks are known. */
  begin(task: RecordTask): void {
    if (!this.#started || this.#closed) return;
    this.#active.add(task);
    forEachGiven(
      [task],
      this.#hold.packets,
      (begun, packets) => {
        begun.begin(this.source, this.#place);
        for (const packet of packets) begun.push(packet);
      },
      failed,
    );
  }

  /** Holds packets until `release`, for tasks that begin meanwhile. */
  hold(): void {
    this.#hold.hold();
  }

  /** Returns how many packets had no room meanwhile. */
  release(): number {
    return this.#hold.release();
  }

  onTracks(tracks: readonly Track[]): void {
    if (this.#closed) return;
    if (this.#started) {
      forEachGiven(this.#active, tracks, setTracks, failed);
      return;
    }
    this.#started = true;
    for (const task of this.#waiting()) this.begin(task);
  }

  onPacket(packet: Packet): void {
    this.#hold.push(packet);
    forEachGiven(this.#active, packet, push, failed);
  }

  /** Stopped tasks are removed here, once per turn. */
  onDrained(): void {
    for (const task of this.#active) if (task.isOver) this.#active.delete(task);
  }

  close(_reason: CloseReason): void {
    if (this.#closed) return;
    this.#closed = true;
    forEachGiven(this.#active, null, end, failed);
    this.#active.clear();
    this.#onClose();
  }
}
