import type { Packet } from '../media/packet.ts';
import type { AudioTrack, Track, VideoTrack } from '../media/track.ts';
import type { BoundedQueue } from '../util/bounded-queue.ts';
import type { FrameWriter } from './frame-writer.ts';
import { AUDIO_WINDOW, sourceMessage, VIDEO_WINDOW } from './messages.ts';
import { FrameFlag, FrameType } from './process-frames.ts';

/** Packets of one inbound track that may wait for its decoder: some five seconds, long enough for a process to start again. */
export const DECODER_THRESHOLD = { video: 150, audio: 250 } as const;

/** Bytes of them: five seconds of 100 Mbit/s. */
export const MAX_DECODER_BYTES = 64 * 1024 * 1024;

/** Frames that have waited this long, ms, come too late for viewers of a live stream: the newest keyframe is better. */
export const LATE_MS = 5000;

/**
 * Queue of one inbound track in front of its decoder. The process gets only what it can soon decode; the rest waits within a limit. When
 * too much waits, or for too long, everything up to the next keyframe is dropped and counted.
 */
export class SourceFeed {
  readonly id: number;
  readonly queue: BoundedQueue<Packet>;
  readonly #video: boolean;
  readonly #window: number;
  readonly #onlyKeyframes: boolean;
  readonly #keepsLate: boolean;
  /** Drops that were logged. */
  reportedDrops = 0;
  /** Bytes of the packets in the queue. */
  #bytes = 0;
  #inFlight = 0;
  /** Rounds of the watch since the process took a packet last, or had none to take. */
  #unmovedRounds = 0;
  #skipping: boolean;
  #discontinuity = false;
  #sent: Track | null = null;

  /** `keepsLate`: packets that waited long are as good as new ones, because nothing is shown before its time; default: false. */
  constructor(options: { id: number; video: boolean; queue: BoundedQueue<Packet>; onlyKeyframes: boolean; keepsLate?: boolean }) {
    this.id = options.id;
    this.queue = options.queue;
    this.#video = options.video;
    // A job that starts in the middle of a stream has nothing to decode before the next keyframe.
    this.#skipping = options.video;
    this.#window = options.video ? VIDEO_WINDOW : AUDIO_WINDOW;
    this.#onlyKeyframes = options.onlyKeyframes && options.video;
    this.#keepsLate = options.keepsLate ?? false;
  }

  /** Queues a packet, or drops it by the rule above. */
  push(packet: Packet): void {
    if (this.#onlyKeyframes && !packet.keyframe) return;
    if (this.#skipping && !packet.keyframe) {
      this.queue.countDrop();
      return;
    }
    this.#skipping = false;
    if (this.#video && packet.keyframe && !this.#keepsLate && this.queue.oldestWait > LATE_MS) this.#dropAll();
    if (this.#enqueue(packet)) return;
    this.#dropAll();
    if (packet.keyframe && this.#video) {
      this.#enqueue(packet);
      return;
    }
    this.queue.countDrop();
    this.#skipping = this.#video;
  }

  /** Sends as much as the window allows. */
  pump(job: number, writer: FrameWriter): void {
    while (this.#inFlight < this.#window) {
      const packet = this.#dequeue();
      if (packet === undefined) return;
      if (packet.track !== this.#sent) {
        this.#sent = packet.track;
        writer.writeJson({ type: FrameType.SOURCE, job, id: this.id }, sourceMessage(packet.track as VideoTrack | AudioTrack));
      }
      if (this.#inFlight === 0) this.#unmovedRounds = 0;
      this.#inFlight += 1;
      writer.write(
        {
          type: FrameType.PACKET,
          flags: (packet.keyframe ? FrameFlag.KEYFRAME : 0) | (this.#discontinuity ? FrameFlag.DISCONTINUITY : 0),
          job,
          id: this.id,
          // The wire has no fractions and no negative durations.
          pts: Math.round(packet.pts),
          dts: Math.round(packet.dts),
          duration: Math.max(0, Math.round(packet.duration)),
        },
        packet.data,
      );
      this.#discontinuity = false;
    }
  }

  /** The process has taken `count` packets into the decoder. */
  taken(count: number): void {
    this.#inFlight = Math.max(0, this.#inFlight - count);
    this.#unmovedRounds = 0;
  }

  /** A round of the watch: returns the rounds in which the process took nothing although packets waited. */
  look(): number {
    this.#unmovedRounds = this.#inFlight > 0 ? this.#unmovedRounds + 1 : 0;
    return this.#unmovedRounds;
  }

  /** The process has died: continues with the next keyframe. */
  restart(): void {
    this.#inFlight = 0;
    this.#sent = null;
    this.#discontinuity = true;
    if (!this.#video) return;
    this.#skipping = true;
    for (let waiting = this.queue.size; waiting > 0; waiting -= 1) {
      const packet = this.#dequeue();
      if (packet === undefined) break;
      if (packet.keyframe) this.#skipping = false;
      if (this.#skipping) this.queue.countDrop();
      else this.#enqueue(packet);
    }
  }

  /** False when there is no room. */
  #enqueue(packet: Packet): boolean {
    const { length } = packet.data;
    if (this.#bytes + length > MAX_DECODER_BYTES || !this.queue.push(packet)) return false;
    this.#bytes += length;
    return true;
  }

  #dequeue(): Packet | undefined {
    const packet = this.queue.shift();
    if (packet !== undefined) this.#bytes -= packet.data.length;
    return packet;
  }

  #dropAll(): void {
    this.queue.dropAll();
    this.#bytes = 0;
    this.#discontinuity = true;
  }
}
