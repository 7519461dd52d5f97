/** A media file that a process reads with the codec library, seen from the server. */
import type { SourcePacket, SourceTrack } from '../core/ingest.ts';
import type { Timebase } from '../media/timebase.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { configBytes, type FailedMessage, type FileMessage, type FileTrackMessage, READ_WINDOW } from './messages.ts';
import { FrameFlag, type FrameHeader, FrameType } from './process-frames.ts';
import { type ProcessOptions, TranscoderProcess } from './transcoder-process.ts';

/** Deadline for the tracks of a file, ms. */
const OPEN_DEADLINE_MS = 10_000;
/** Deadline for the first packet after a jump, ms. */
const JUMP_DEADLINE_MS = 5000;
/**
 * A process hangs when the server has waited `HANG_MS` for it and heard nothing of it for `SILENT_MS`; players have some seconds of media
 * left then.
 */
const HANG_MS = 1000;
const SILENT_MS = 4000;
/** Taken packets are acknowledged in groups of this size, unless the server waits for the process. */
const MAX_TAKEN_AT_ONCE = 16;

/** Result of `next`: the tracks, or the next packet with its `duration` in ticks (0 if unknown). */
export type FfmpegFileEvent = { readonly type: 'tracks'; readonly tracks: readonly SourceTrack[] } | FfmpegFilePacket;

interface FfmpegFilePacket {
  readonly type: 'packet';
  readonly packet: SourcePacket;
  readonly timebase: Timebase;
  readonly duration: number;
}

/** A file that is open in the server. */
export interface OpenedFile {
  readonly descriptor: number;
  /** Aborted when the file is closed: its reader ends then. */
  readonly closed: AbortSignal;
}

/** How it is read and watched. Deadlines are for tests. */
export interface FfmpegFileOptions {
  readonly process: ProcessOptions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly hangMs?: number;
  /** The process is gone. */
  readonly onEnd: (file: FfmpegFile) => void;
}

/**
 * Lives until the file is closed or the process fails; then `next` rejects, and the process has ended. Only one call of `opened` or `next`
 * may wait.
 */
export class FfmpegFile {
  readonly #options: FfmpegFileOptions;
  readonly #process: TranscoderProcess;
  readonly #closed: AbortSignal;
  #file: { readonly message: FileMessage; readonly tracks: ReadonlyMap<number, SourceTrack> } | null = null;
  /** Waiting packets of this run, in order; bounded by the window of the process. */
  #packets: FfmpegFilePacket[] = [];
  #next = 0;
  /** Bytes of the waiting packets. */
  #bytes = 0;
  #told = false;
  #ended = false;
  /** Number of the run through the file; packets of earlier runs are ignored. */
  #run = 0;
  /** Taken packets not yet acknowledged to the process. */
  #taken = 0;
  #failure: Error | null = null;
  #waiting: { readonly wake: () => void; readonly since: number } | null = null;
  #watch: NodeJS.Timeout | null = null;
  /** Time of the last message of the process, STATUS excepted. */
  #heardAt: number;
  /** Before this time no silence counts as hanging: the file is being opened, or the process jumps in it. */
  #graceUntil: number;

  /** Starts the process, which inherits the descriptor. Throws when none can be started, or the file is closed. */
  constructor(file: OpenedFile, options: FfmpegFileOptions) {
    file.closed.throwIfAborted();
    this.#options = options;
    this.#closed = file.closed;
    this.#heardAt = options.clock.monotonic();
    this.#graceUntil = this.#heardAt + OPEN_DEADLINE_MS;
    this.#process = new TranscoderProcess(
      { ...options.process, input: file.descriptor },
      {
        onHello: () => {},
        onFrame: (header, payload) => this.#onFrame(header, payload),
        onExit: (reason) => this.#onExit(reason),
      },
    );
    file.closed.addEventListener('abort', this.#onClosed, { once: true });
  }

  /** Resolves when the tracks are known. Rejects when the file is closed or has nothing to play, or the process fails, which has ended then. */
  async opened(): Promise<void> {
    while (this.#file === null) await this.#change();
  }

  /** Id of its process. */
  get pid(): number {
    return this.#process.pid;
  }

  /** Where position 0 is, seconds in the time of the packets: the first frame of video, or of audio where there is none. */
  async start(): Promise<number> {
    return this.#file?.message.start ?? 0;
  }

  /** Seconds from `start` to the end; null when the file does not tell. */
  async length(): Promise<number | null> {
    return this.#file?.message.length ?? null;
  }

  /** Tracks first, then packets in the order of decoding; null at the end. Rejects when the rest of the file cannot be read. */
  async next(): Promise<FfmpegFileEvent | null> {
    for (;;) {
      if (this.#failure !== null) throw this.#failure;
      if (!this.#told && this.#file !== null) {
        this.#told = true;
        return { type: 'tracks', tracks: [...this.#file.tracks.values()] };
      }
      const event = this.#packets[this.#next];
      if (event !== undefined) {
        this.#next += 1;
        this.#taken += 1;
        this.#bytes -= event.packet.data.length;
        if (this.#taken >= MAX_TAKEN_AT_ONCE) this.#tellTaken();
        if (this.#next >= MAX_TAKEN_AT_ONCE) this.#forgetTaken();
        return event;
      }
      if (this.#ended) return null;
      this.#tellTaken();
      await this.#change();
    }
  }

  /** The next event is the first one again. */
  rewind(): void {
    this.#readFrom(0);
  }

  /**
   * Tracks come next, then packets from the last keyframe on that is shown at `position` or before it, seconds behind `start`; some of the
   * other tracks may be earlier.
   */
  async seek(position: number): Promise<void> {
    this.#readFrom(position + (await this.start()));
  }

  /** Ends the process. Idempotent. */
  close(reason = 'its file is closed'): void {
    this.#fail(new Error(reason), reason);
  }

  /** `seconds` in the time of the packets. */
  #readFrom(seconds: number): void {
    this.#packets = [];
    this.#next = 0;
    this.#bytes = 0;
    this.#taken = 0;
    this.#told = false;
    this.#ended = false;
    this.#run += 1;
    this.#graceUntil = this.#options.clock.monotonic() + JUMP_DEADLINE_MS;
    // Rounded up, so that a keyframe within this millisecond is found as well.
    const pts = Math.max(0, Math.ceil(seconds * 1000));
    if (this.#failure === null) {
      this.#process.writer.write({ type: FrameType.SEEK, flags: 0, job: this.#run, id: 0, pts, dts: 0, duration: 0 });
    }
  }

  /** Throws for messages that a working process never sends, because the file may have exploited FFmpeg. The process is then killed. */
  #onFrame(header: FrameHeader, payload: Buffer): void {
    const { type, job, id, pts, dts, duration, flags } = header;
    if (type === FrameType.STATUS) return;
    this.#heardAt = this.#options.clock.monotonic();
    if (job !== this.#run && type !== FrameType.FAILED) return;
    switch (type) {
      case FrameType.PACKET: {
        const timebase = this.#file?.tracks.get(id)?.timebase;
        if (timebase === undefined) return;
        const packet: SourcePacket = { trackId: id, pts, dts, keyframe: (flags & FrameFlag.KEYFRAME) !== 0, data: payload };
        const waiting = this.#packets.length - this.#next;
        if (waiting >= READ_WINDOW.packets || (waiting > 0 && this.#bytes >= READ_WINDOW.bytes))
          throw new Error('more packets than may wait');
        this.#packets.push({ type: 'packet', packet, timebase, duration });
        this.#bytes += payload.length;
        this.#graceUntil = 0;
        break;
      }
      case FrameType.END:
        this.#ended = true;
        this.#graceUntil = 0;
        break;
      case FrameType.FILE:
        this.#adopt(JSON.parse(payload.toString()) as FileMessage);
        break;
      case FrameType.FAILED:
        this.#fail(new Error((JSON.parse(payload.toString()) as FailedMessage).reason), 'its file cannot be read');
        return;
      default:
        return;
    }
    this.#wake();
  }

  #adopt(message: FileMessage): void {
    const { container, changed, omitted, tracks } = message;
    if (this.#file !== null) throw new Error('the tracks of a file, for the second time');
    const { logger } = this.#options;
    const encoded = changed.length === 0 ? 'all tracks pass as they are' : `encoded anew: ${changed.join(', ')}`;
    logger.info({ container, tracks: tracks.length, pid: this.pid }, `process ${this.pid} reads a file of ${container}: ${encoded}`);
    if (omitted.length > 0) logger.warn({ omitted }, `left out of the file: ${omitted.join('; ')}`);
    this.#file = { message, tracks: new Map(tracks.map((track) => [track.id, sourceTrack(track)])) };
    this.#graceUntil = this.#options.clock.monotonic() + JUMP_DEADLINE_MS;
  }

  #tellTaken(): void {
    if (this.#taken === 0) return;
    const header = { type: FrameType.TAKEN, flags: 0, job: this.#run, id: 0, pts: 0, dts: 0, duration: this.#taken };
    this.#taken = 0;
    this.#process.writer.write(header);
  }

  /** While a film plays some packets always wait: taken ones would pile up before them. */
  #forgetTaken(): void {
    this.#packets.splice(0, this.#next);
    this.#next = 0;
  }

  /** Resolves when something has arrived; rejects when nothing can arrive any more, or nothing has arrived for too long. */
  async #change(): Promise<void> {
    if (this.#failure === null) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting = { wake: resolve, since: this.#options.clock.monotonic() };
      this.#look();
      await promise;
    }
    if (this.#failure !== null) throw this.#failure;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = null;
    if (this.#watch !== null) clearTimeout(this.#watch);
    this.#watch = null;
    waiting?.wake();
  }

  /** Repeats until the process has sent something, or has made no progress for too long. */
  #look(): void {
    if (this.#waiting === null) return;
    const { clock, hangMs = HANG_MS } = this.#options;
    const due = Math.max(this.#waiting.since + hangMs, this.#heardAt + Math.max(SILENT_MS, hangMs), this.#graceUntil);
    const left = due - clock.monotonic();
    if (left > 0) {
      this.#watch = setTimeout(() => this.#look(), left);
      return;
    }
    const heardAt = this.#heardAt;
    // If the server was busy, messages of the process may be waiting in the socket.
    this.#watch = setTimeout(() => {
      if (this.#heardAt !== heardAt) this.#look();
      else this.#hangs();
    });
  }

  #hangs(): void {
    const words = this.#file === null ? 'the file could not be opened in time' : 'the process that reads the file hangs';
    this.#fail(new Error(words), words);
  }

  #fail(error: Error, reason: string): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    this.#packets = [];
    this.#closed.removeEventListener('abort', this.#onClosed);
    this.#process.kill(reason);
    this.#wake();
  }

  #onExit(reason: string): void {
    const { logger, onEnd } = this.#options;
    if (this.#failure === null) logger.warn({ pid: this.pid }, `process ${this.pid} died while it read a file: ${reason}`);
    this.#fail(new Error(`the process that reads the file died: ${reason}`), reason);
    onEnd(this);
  }

  readonly #onClosed = (): void => this.close();
}

function sourceTrack(track: FileTrackMessage): SourceTrack {
  const config = configBytes(track.config);
  return track.type === 'video' ? { ...track, config } : { ...track, config };
}
