/** The inside of a process that reads a media file: sends its packets to the server as fast as the server takes them. */
import type { Duplex } from 'node:stream';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/message-of.ts';
import { FrameWriter } from '../frame-writer.ts';
import type { FailedMessage, FileMessage, HelloMessage, StatusMessage } from '../messages.ts';
import { FrameFlag, type FrameHeader, FrameReader, FrameType } from '../process-frames.ts';
import { CodecCensus } from './codec-census.ts';
import { EncodedAudioTrack } from './encoded-audio-track.ts';
import { EncodedVideoTrack } from './encoded-video-track.ts';
import { Demuxer, type FileStream, refuseEmpty } from './engine/demuxer.ts';
import { FramePool } from './engine/frame-pool.ts';
import { EngineError, libraryVersion, silenceLibrary } from './engine/library.ts';
import type { FileTrack, MadePacket, MadePacketSink } from './file-track.ts';
import { PacketMerge } from './packet-merge.ts';
import { PassedTrack } from './passed-track.ts';
import type { PipelineTools } from './pipeline.ts';
import { ReadWindow } from './read-window.ts';

const STATUS_INTERVAL_MS = 1000;
/** Minimum interval of PROGRESS messages. */
const PROGRESS_INTERVAL_MS = 100;
/** Tracks that are encoded: a film has one video, and a few languages. */
const MAX_FILMS = 1;
const MAX_SOUNDS = 8;
/** Maximum of used cores: each holds frames in decoder and encoder, and memory is limited. */
const MAX_CPUS = 4;
/** Limit of all tracks. */
const MAX_TRACKS = 16;

const HARDWARE_OFF = { enable: false, modules: '' };
const NOTHING = { flags: 0, id: 0, pts: 0, dts: 0, duration: 0 };

/** The process has one, for its file. Needs no closing. */
export class FileReader {
  readonly #writer: FrameWriter;
  readonly #frames = new FrameReader((header) => this.#onFrame(header));
  readonly #clock: Clock;
  readonly #tools: PipelineTools;
  readonly #window = new ReadWindow();
  readonly #tracks = new Map<number, FileTrack>();
  #merge = new PacketMerge<MadePacket>([]);
  /** Number of the run through the file, from the server's last request. */
  #run = 0;
  #wanted: { readonly run: number; readonly ms: number } | null = null;
  #waiting: (() => void) | null = null;
  #progressAt = 0;

  constructor(socket: Duplex, { clock, cpus: present }: { readonly clock: Clock; readonly cpus: number }) {
    const cpus = Math.min(present, MAX_CPUS);
    this.#writer = new FrameWriter(socket);
    this.#clock = clock;
    this.#tools = {
      ...{ clock, pool: new FramePool(), census: new CodecCensus(), cpus, decoderThreads: cpus },
      ...{ hardware: HARDWARE_OFF, hardwareDecoding: HARDWARE_OFF, working: new Set(['aac']) },
      sink: {
        ...{ onTrack() {}, onPacket() {}, onFailed() {}, onTaken() {}, notice() {} },
        congestion: () => null,
      },
    };
  }

  /** Opens the file and begins to read. */
  start(): void {
    silenceLibrary();
    const hello: HelloMessage = { version: libraryVersion(), encoders: [], decoders: [] };
    this.#writer.writeJson({ type: FrameType.HELLO }, hello);
    const { encoders, decoders } = this.#tools.census.figures;
    const status: StatusMessage = { encoders, decoders, queues: [] };
    setInterval(() => this.#writer.writeJson({ type: FrameType.STATUS }, status), STATUS_INTERVAL_MS);
    void this.#readFile();
  }

  /** Bytes from the server. Throws ProtocolError, which ends the process. */
  receive(chunk: Buffer): void {
    this.#frames.push(chunk);
  }

  #onFrame({ type, job, pts, duration }: FrameHeader): void {
    if (type === FrameType.SEEK) this.#wanted = { run: job, ms: pts };
    else if (type === FrameType.TAKEN) {
      if (job === this.#run) this.#window.taken(duration);
    } else throw new Error(`frame of type ${type} is not for a process that reads a file`);
    this.#wake();
  }

  async #readFile(): Promise<void> {
    try {
      const demuxer = await Demuxer.open();
      const byStream = this.#open(demuxer);
      for (;;) {
        const ended = await this.#readOn(demuxer, byStream);
        if (ended) this.#writer.write({ ...NOTHING, type: FrameType.END, job: this.#run });
        const { run, ms } = await this.#nextRun();
        await demuxer.seek(ms);
        this.#merge.clear();
        this.#window.clear();
        for (const track of this.#tracks.values()) track.restart();
        this.#run = run;
        this.#progress();
      }
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      this.#writer.writeJson({ type: FrameType.FAILED, job: this.#run }, {
        reason: messageOf(error),
        part: 'decoder',
      } satisfies FailedMessage);
    }
  }

  /** Makes tracks of the streams and reports them to the server. Returns them by stream number. */
  #open(demuxer: Demuxer): ReadonlyMap<number, FileTrack> {
    const byStream = new Map<number, FileTrack>();
    const changed: string[] = [];
    const omitted = [...demuxer.omitted];
    const sink: MadePacketSink = (packet) => this.#merge.put(packet.trackId, packet);
    for (const stream of demuxer.streams) {
      const track = this.#openTrack(stream, { demuxer, sink, changed, omitted });
      if (track === null) continue;
      byStream.set(stream.index, track);
      this.#tracks.set(track.message.id, track);
    }
    refuseEmpty(byStream.size, omitted);
    this.#merge = new PacketMerge([...this.#tracks.keys()]);
    const tracks = Array.from(this.#tracks.values(), ({ message }) => message);
    const { container, firstFrame: start, length } = demuxer;
    this.#writer.writeJson({ type: FrameType.FILE }, { container, start, length, tracks, changed, omitted } satisfies FileMessage);
    return byStream;
  }

  #openTrack(
    stream: FileStream,
    { demuxer, sink, changed, omitted }: { demuxer: Demuxer; sink: MadePacketSink; changed: string[]; omitted: string[] },
  ): FileTrack | null {
    const { container, startSeconds } = demuxer;
    const id = this.#tracks.size;
    const name = `${stream.type} ${stream.codecName ?? `codec ${stream.codecId}`}`;
    if (this.#tracks.size >= MAX_TRACKS) {
      omitted.push(`${name}: more than ${MAX_TRACKS} tracks`);
      return null;
    }
    const passed = PassedTrack.open(id, { stream, container, startSeconds, sink });
    if (passed !== null) return passed;
    const isFilm = stream.type === 'video';
    const encoded = [...this.#tracks.values()].filter((track) => track instanceof (isFilm ? EncodedVideoTrack : EncodedAudioTrack)).length;
    if (encoded >= (isFilm ? MAX_FILMS : MAX_SOUNDS)) {
      omitted.push(`${name}: one of more than ${isFilm ? MAX_FILMS : MAX_SOUNDS} that would have to be encoded`);
      return null;
    }
    try {
      const { pool, cpus } = this.#tools;
      const track = isFilm
        ? new EncodedVideoTrack(id, { stream, startSeconds, container, sink, pool, cpus, progress: () => this.#progress() })
        : new EncodedAudioTrack(id, { stream, startSeconds, sink, tools: this.#tools });
      changed.push(`${name} to ${track.message.codec}`);
      return track;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      omitted.push(`${name}: ${error.message}`);
      return null;
    }
  }

  /** Reads until the file ends (true) or the server wants another place in it (false). */
  async #readOn(demuxer: Demuxer, byStream: ReadonlyMap<number, FileTrack>): Promise<boolean> {
    for (let packet = await demuxer.read(); packet !== null; packet = await demuxer.read()) {
      this.#progress();
      const track = byStream.get(packet.streamIndex);
      if (track !== undefined && demuxer.isPlausible(packet)) await track.push(packet);
      this.#progress();
      if (!(await this.#send(false))) return false;
    }
    for (const track of this.#tracks.values()) {
      await track.finish();
      this.#progress();
    }
    return await this.#send(true);
  }

  /** Sends packets in order. False if the server wants another position. */
  async #send(ended: boolean): Promise<boolean> {
    while (this.#wanted === null) {
      if (!this.#window.open) {
        await this.#woken();
        continue;
      }
      const packet = this.#merge.take(ended);
      if (packet === null) return true;
      const { trackId: id, pts, dts, duration, keyframe, seconds, data } = packet;
      this.#window.sent(data.length, seconds);
      this.#writer.write(
        { type: FrameType.PACKET, flags: keyframe ? FrameFlag.KEYFRAME : 0, job: this.#run, id, pts, dts, duration },
        data,
      );
    }
    return false;
  }

  async #nextRun(): Promise<{ readonly run: number; readonly ms: number }> {
    while (this.#wanted === null) await this.#woken();
    const wanted = this.#wanted;
    this.#wanted = null;
    return wanted;
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  #wake(): void {
    this.#waiting?.();
    this.#waiting = null;
  }

  #progress(): void {
    const now = this.#clock.monotonic();
    if (now - this.#progressAt < PROGRESS_INTERVAL_MS) return;
    this.#progressAt = now;
    this.#writer.write({ ...NOTHING, type: FrameType.PROGRESS, job: this.#run });
  }
}
