/** Runs a transcoder on packets and keeps its output, for tests with independent decoders. */
import type { EncodeAudioConfig, EncodeImageConfig, EncodeVideoConfig } from '../../src/config/index.ts';
import { BoxWriter } from '../../src/containers/isobmff/box-writer.ts';
import { writeFragmentHeader } from '../../src/containers/isobmff/fragment.ts';
import { buildInitSegment } from '../../src/containers/isobmff/init-segment.ts';
import { QueueRegistry } from '../../src/core/queue-registry.ts';
import type {
  EncodedPacket,
  EncodeFault,
  EncodeFaultFacts,
  EncodeRequest,
  TranscodeListener,
  TranscodeSession,
} from '../../src/core/transcoding.ts';
import type { Packet } from '../../src/media/packet.ts';
import { toSeconds } from '../../src/media/timebase.ts';
import type { AudioTrack, Track, VideoTrack } from '../../src/media/track.ts';
import { type SupervisorOptions, TranscoderSupervisor } from '../../src/transcoder/supervisor.ts';
import { systemClock } from '../../src/util/clock.ts';
import { until } from '../harness/poll.ts';
import { RecordingLogger } from './recording-logger.ts';

export function videoConfig(overrides: Partial<EncodeVideoConfig> = {}): EncodeVideoConfig {
  return {
    name: 'video',
    bypass: false,
    codec: 'h264',
    bitrate: 400_000,
    width: 0,
    height: 0,
    framerate: 0,
    skipFrames: -1,
    keyFrameInterval: 0,
    keyFrameIntervalType: 'frame',
    bFrames: 0,
    threadCount: -1,
    lookahead: -1,
    preset: 'faster',
    ...overrides,
  };
}

export function audioConfig(overrides: Partial<EncodeAudioConfig> = {}): EncodeAudioConfig {
  return { name: 'audio', bypass: false, codec: 'aac', bitrate: 96_000, samplerate: 0, channel: 0, ...overrides };
}

export function imageConfig(overrides: Partial<EncodeImageConfig> = {}): EncodeImageConfig {
  return { name: 'image', codec: 'jpeg', width: 0, height: 0, framerate: 1, skipFrames: 0, ...overrides };
}

/** Output of one encode. */
export interface Made {
  readonly tracks: Track[];
  readonly packets: EncodedPacket[];
  failed: string | null;
  fault: EncodeFault | null;
  facts: EncodeFaultFacts | undefined;
}

/** Limits of the packets of a track that wait while a test feeds it. */
const MAX_FRAMES = 8;
const MAX_AUDIO = 50;

interface RunOptions {
  readonly stream?: string;
  readonly onlyKeyframes?: boolean;
  readonly bypassedSources?: readonly number[];
  readonly hardwareDecoding?: { readonly enable: boolean; readonly modules: string };
}

/** A supervisor with its dependencies. The test closes it. */
export class TranscodeLab {
  readonly queues = new QueueRegistry(systemClock);
  readonly logger = new RecordingLogger();
  readonly supervisor: TranscoderSupervisor;

  constructor(
    options: Partial<
      Pick<SupervisorOptions, 'jobsPerProcess' | 'maxProcesses' | 'entry' | 'silenceDeadlineMs' | 'clock' | 'fileEntry' | 'fileHangMs'>
    > = {},
  ) {
    this.supervisor = new TranscoderSupervisor({ clock: systemClock, logger: this.logger, queues: this.queues, ...options });
  }

  /** Starts a job. `tracks` are those of the inbound stream. */
  open(encodes: readonly EncodeRequest[], tracks: readonly Track[], options: RunOptions = {}): TranscodeRun {
    return new TranscodeRun(this, encodes, tracks, options);
  }

  close(): Promise<void> {
    return this.supervisor.close();
  }
}

/** The output of one job. */
export class TranscodeRun implements TranscodeListener {
  readonly session: TranscodeSession;
  readonly stream: string;
  readonly #lab: TranscodeLab;
  readonly #made = new Map<number, Made>();

  constructor(
    lab: TranscodeLab,
    encodes: readonly EncodeRequest[],
    tracks: readonly Track[],
    { stream = 'stream', onlyKeyframes = false, bypassedSources = [], hardwareDecoding = { enable: false, modules: '' } }: RunOptions,
  ) {
    this.#lab = lab;
    this.stream = stream;
    for (const { id } of encodes) this.#made.set(id, { tracks: [], packets: [], failed: null, fault: null, facts: undefined });
    const job = { vhost: 'default', app: 'app', stream, encodes, decoderThreads: 2, onlyKeyframes, bypassedSources, hardwareDecoding };
    this.session = lab.supervisor.open(job, this);
    this.session.setTracks(tracks);
  }

  made(id: number): Made {
    const made = this.#made.get(id);
    if (made === undefined) throw new Error(`there is no encode ${id}`);
    return made;
  }

  /** The present track of an encode. */
  track<T extends VideoTrack | AudioTrack>(id: number): T {
    return this.made(id).tracks.at(-1) as T;
  }

  onTrack(encodeId: number, track: Track): void {
    this.made(encodeId).tracks.push(track);
  }

  onPacket(packet: EncodedPacket): void {
    const { tracks, packets } = this.made(packet.encodeId);
    if (tracks.length === 0) throw new Error('a packet came before its track');
    packets.push(packet);
  }

  onEncodeFailed(encodeId: number, reason: string, fault: EncodeFault, facts?: EncodeFaultFacts): void {
    const made = this.made(encodeId);
    made.failed = reason;
    made.fault = fault;
    made.facts = facts;
  }

  /**
   * Pushes packets as fast as they are taken, so that nothing is dropped. Few frames may wait, because frames that wait for seconds on a
   * busy machine count as late.
   */
  async feed(packets: Iterable<Packet>): Promise<void> {
    let count = 0;
    let most = MAX_AUDIO;
    for (const packet of packets) {
      this.session.push(packet);
      count += 1;
      if (packet.track.type === 'video') most = MAX_FRAMES;
      if (count % most === 0) await until('the transcoder takes packets', () => this.waiting() < most, { everyMs: 2, deadlineMs: 50_000 });
    }
  }

  /** Packets waiting for the decoders. */
  waiting(): number {
    const mine = this.#lab.queues.statuses().filter(({ urn }) => urn.includes(`:s=/${this.stream}:p=trs:r=decoder_`));
    return Math.max(0, ...mine.map(({ size }) => size));
  }

  /** End of the last packet of an encode, seconds. */
  end(id: number): number {
    const { packets, tracks } = this.made(id);
    const last = packets.at(-1);
    const track = tracks.at(-1);
    return last === undefined || track === undefined ? 0 : toSeconds(last.pts + last.duration, track.timebase);
  }

  /** Waits until all encodes reach `seconds`. */
  async reaches(seconds: number): Promise<void> {
    for (const id of this.#made.keys()) {
      await until(`encode ${id} reaches ${seconds} s`, () => this.end(id) >= seconds || this.made(id).failed !== null, {
        deadlineMs: 50_000,
        everyMs: 10,
      });
    }
  }

  /** Waits until an encode has made this many packets. */
  async makes(id: number, count: number): Promise<void> {
    const { packets } = this.made(id);
    await until(`encode ${id} makes ${count} packets`, () => packets.length >= count || this.made(id).failed !== null, {
      deadlineMs: 50_000,
      everyMs: 10,
    });
  }

  /** A fragmented MP4 file of one encode. */
  file(id: number): Uint8Array {
    const { packets } = this.made(id);
    const track = this.track(id);
    const timescale = track.timebase.den;
    const writer = new BoxWriter();
    const first = packets[0];
    writeFragmentHeader(writer, {
      trackId: 1,
      sequence: 1,
      baseDecodeTime: first?.dts ?? 0,
      video: track.type === 'video',
      samples: packets.map((packet, index) => ({
        size: packet.data.length,
        duration: (packets[index + 1]?.dts ?? packet.dts + packet.duration) - packet.dts,
        compositionOffset: packet.pts - packet.dts,
        keyframe: packet.keyframe,
      })),
    });
    return Buffer.concat([buildInitSegment(track, { timescale, trackId: 1 }), writer.view(), ...packets.map(({ data }) => data)]);
  }
}
