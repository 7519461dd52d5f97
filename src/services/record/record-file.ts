/** One file of a recording, from its first packet until it has its name. */

import { dirname } from 'node:path';
import type { Packet } from '../../media/packet.ts';
import { MPEG_90K, rescale, toMilliseconds } from '../../media/timebase.ts';
import { isMediaTrack, type Track } from '../../media/track.ts';
import type { AllowedFolders } from '../../util/allowed-folders.ts';
import type { Logger } from '../../util/logger.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { QueueGauge } from '../../util/queue-gauge.ts';
import { FileSink } from './file-sink.ts';
import { Mp4Container, mp4CanCarry } from './mp4-container.ts';
import type { RecordContainer, RecordContainerName } from './record-container.ts';
import type { CountFile, FinishedRecording, RecordJournal } from './record-journal.ts';
import type { RecordingNote } from './recording-note.ts';
import { TsContainer, tsCanCarry } from './ts-container.ts';

/** Options of a file. */
export interface RecordFileOptions {
  /** Tracks for which `canRecord` is true. */
  readonly tracks: readonly Track[];
  /** The packet it begins with, of the main track. */
  readonly first: Packet;
  readonly container: RecordContainerName;
  /** Time of the first packet in the file, 90 kHz. */
  readonly startAt: number;
  /** Name in the journal. */
  readonly key: string;
  /** Its temporary name gets a number when that is taken. */
  readonly note: RecordingNote;
  readonly journal: RecordJournal;
  readonly folders: AllowedFolders;
  readonly logger: Logger;
  /** See `CountFile`. */
  readonly count: CountFile;
  /** This many more bytes were passed to the disk. */
  readonly onBytes?: (bytes: number) => void;
  /** Makes the gauge of bytes that wait for the disk; `onWritten` returns it when none are left. */
  readonly makeGauge?: () => QueueGauge;
  readonly onWritten?: (gauge: QueueGauge) => void;
  /** The file cannot be written any further; called once at most. */
  readonly onError: (error: Error) => void;
}

/** True when a file of this kind can hold the track. */
export function canRecord(container: RecordContainerName, track: Track): boolean {
  return isMediaTrack(track) && (container === 'mp4' ? mp4CanCarry(track) : tsCanCarry(track));
}

/** Packets in, a finished file out. Its maker calls `finish`. */
export class RecordFile {
  readonly tracks: ReadonlyMap<number, Track>;
  /** Presentation time of the first packet, ms. */
  readonly startMs: number;
  readonly #options: RecordFileOptions;
  #note: RecordingNote;
  readonly #sink: FileSink;
  readonly #gauge: QueueGauge | null;
  readonly #container: RecordContainer;
  readonly #mainTrackId: number;
  #endMs: number;
  #skipping = false;
  #dropped = 0;
  #broken = 0;
  #finishing: Promise<FinishedRecording> | null = null;
  /** The result. */
  #finished: FinishedRecording | null = null;

  /** Throws `ProtocolError` when the decoder configuration of a track is broken; nothing was made then. */
  constructor(options: RecordFileOptions) {
    const { tracks, first, startAt, note, journal, key, folders, onBytes, onError } = options;
    this.#options = options;
    this.#note = note;
    this.tracks = new Map(tracks.map((track) => [track.id, track]));
    this.#mainTrackId = first.track.id;
    this.startMs = presentedAt(first);
    this.#endMs = this.startMs;
    let sink: FileSink | null = null;
    const head: Uint8Array[] = [];
    // The container writes its head during its construction, before there is a file.
    const write = (chunks: readonly Uint8Array[]): void => {
      if (sink === null) head.push(...chunks.map((chunk) => new Uint8Array(chunk)));
      else append(sink, chunks);
    };
    const append = (to: FileSink, chunks: readonly Uint8Array[]): void => {
      const before = to.bytes;
      to.write(chunks);
      if (to.bytes > before) onBytes?.(to.bytes - before);
    };
    const containerOptions = { tracks, first, startAt, write };
    this.#container = options.container === 'mp4' ? new Mp4Container(containerOptions) : new TsContainer(containerOptions);
    this.#gauge = options.makeGauge?.() ?? null;
    sink = new FileSink({
      path: () => this.#note.temporary,
      prepare: async () => {
        await folders.makeFolder(dirname(note.temporary));
        this.#note = await journal.open(key, note);
      },
      onMade: (inode) => journal.made(key, this.#note, inode),
      onError,
      ...(this.#gauge !== null && { gauge: this.#gauge }),
    });
    this.#sink = sink;
    if (head.length > 0) append(sink, head);
  }

  /** Name in the journal. */
  get key(): string {
    return this.#options.key;
  }

  /** Bytes recorded so far; the file's real size once it has its name. */
  get bytes(): number {
    return this.#isKnown ? (this.#finished?.bytes ?? 0) : this.#sink.bytes + this.#container.pending;
  }

  /** Duration of the media so far, ms. */
  get durationMs(): number {
    return this.#isKnown ? (this.#finished?.durationMs ?? 0) : Math.round(this.#endMs - this.startMs);
  }

  /** Packets left out because the disk was too slow. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Takes a packet; ignores packets shown before the start of the file, and tracks that are not in it. */
  push(packet: Packet): void {
    if (this.#finishing !== null || !this.tracks.has(packet.track.id)) return;
    const isMain = packet.track.id === this.#mainTrackId;
    const at = presentedAt(packet);
    if (!isMain && at < this.startMs) return;
    if (this.#mustSkip(packet, isMain)) {
      this.#dropped += 1;
      this.#gauge?.countDrop(packet.data.length);
      return;
    }
    try {
      this.#container.push(packet);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#broken += 1;
      return;
    }
    this.#endMs = Math.max(this.#endMs, at + toMilliseconds(packet.duration, packet.track.timebase));
  }

  /** Passes all packets so far to the disk. */
  flush(): void {
    if (this.#finishing === null) this.#container.flush();
  }

  /** Ends the file and, `after` the previous one, renames it. Idempotent; never rejects. */
  finish(finishTime: number, lastSequence: boolean, after: Promise<unknown>): Promise<FinishedRecording> {
    this.#finishing ??= this.#finish(finishTime, lastSequence, after);
    return this.#finishing;
  }

  async #finish(finishTime: number, lastSequence: boolean, after: Promise<unknown>): Promise<FinishedRecording> {
    const { journal, key, folders, logger, count } = this.#options;
    try {
      this.#container.flush();
    } catch (error) {
      logger.error({ err: error }, 'the end of the recording could not be written');
    }
    await this.#sink.close();
    if (this.#gauge !== null) this.#options.onWritten?.(this.#gauge);
    await after;
    if (!this.#sink.made) {
      this.#finished = await journal.abandon(key);
      return this.#finished;
    }
    if (this.#dropped + this.#broken > 0) {
      const counts = { dropped: this.#dropped, broken: this.#broken };
      logger.warn(counts, `packets are missing in the recording: ${this.#dropped} dropped, ${this.#broken} broken`);
    }
    // A disk that refused has lost media that was counted here.
    const recordTime = this.#sink.error === null ? this.durationMs : null;
    this.#finished = await journal.finish(key, this.#note, { finishTime, recordTime, lastSequence }, { folders, count });
    return this.#finished;
  }

  get #isKnown(): boolean {
    return this.#finished !== null && this.#finished.outcome !== 'left';
  }

  /** A disk that cannot follow costs whole groups of frames, never memory. */
  #mustSkip(packet: Packet, isMain: boolean): boolean {
    if (this.#sink.full) {
      if (!this.#skipping) {
        this.#skipping = true;
        if (this.#dropped === 0)
          this.#options.logger.warn({}, 'the disk is too slow for the recording: packets are dropped up to the next keyframe');
      }
      return true;
    }
    if (this.#skipping && isMain && packet.keyframe) this.#skipping = false;
    return this.#skipping;
  }
}

/** Presentation time, ms. */
export function presentedAt({ pts, track }: Packet): number {
  return toMilliseconds(pts, track.timebase);
}

/** Presentation time, 90 kHz. */
export function presentedAt90k({ pts, track }: Packet): number {
  return rescale(pts, track.timebase, MPEG_90K);
}
