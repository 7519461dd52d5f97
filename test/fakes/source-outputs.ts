/** Outbound streams of one source with a publisher that keeps everything, to test the outputs of a source. */
import { readOutputProfile } from '../../src/config/index.ts';
import type { CloseReason } from '../../src/core/ingest.ts';
import { PublisherKind } from '../../src/core/kinds.ts';
import { OutboundStream } from '../../src/core/outbound-stream.ts';
import type { PublishableStream } from '../../src/core/publishing.ts';
import { SessionRegistry } from '../../src/core/session-registry.ts';
import { StreamOutputs } from '../../src/core/stream-outputs.ts';
import { TrafficMeter } from '../../src/core/traffic-meter.ts';
import { Urgency } from '../../src/core/urgency.ts';
import type { Packet } from '../../src/media/packet.ts';
import type { Track } from '../../src/media/track.ts';
import { NO_TURNS, type Turns } from '../../src/util/newcomer-turns.ts';
import { FakeTranscoder } from './fake-transcoder.ts';
import { ManualClock } from './manual-clock.ts';
import { RecordingLogger } from './recording-logger.ts';
import { audioPackets, audioTrack, constantFrames, interleave, videoPackets, videoTrack } from './synthetic-media.ts';

/** The tracks of the source. */
export const VIDEO = videoTrack({ id: 0 });
export const AUDIO = audioTrack({ id: 1 });

/** Two seconds of video and audio, starting at `from`. */
export function media(from = 0, seconds = 2, video = VIDEO): Packet[] {
  return interleave(videoPackets(video, constantFrames({ rate: 30, gop: 30, seconds, from })), audioPackets(AUDIO, seconds, from));
}

/** Tracks by id and variant name. */
export const names = (tracks: readonly Track[] | undefined) => tracks?.map(({ id, variantName }) => `${id} ${variantName}`);

/** A profile with bypassed, encoded and image tracks. */
export const LADDER = {
  name: 'ladder',
  outputStreamName: '${OriginStreamName}',
  encodes: {
    videos: [
      { name: 'source', bypass: true },
      { name: 'small', codec: 'h264', bitrate: 500_000, height: 360 },
    ],
    audios: [
      { name: 'aac', bypass: true },
      { name: 'opus', codec: 'opus', bitrate: 96_000 },
    ],
    images: [{ name: 'picture', codec: 'jpeg', framerate: 1 }],
  },
};

/** The packets that one publisher got of one outbound stream. */
export class OutputViewer {
  readonly kind = PublisherKind.LLHLS;
  readonly announcements: (readonly Track[])[] = [];
  readonly packets: Packet[] = [];
  closed: CloseReason | null = null;
  stream: PublishableStream | null = null;
  urgency: Urgency = Urgency.REAL_TIME;
  neededAt = 5000;

  defaultPlaylist() {
    return null;
  }

  attach(stream: PublishableStream) {
    this.stream = stream;
    const urgency = (): Urgency => this.urgency;
    const neededAt = (): number => this.neededAt;
    return {
      get neededAt() {
        return neededAt();
      },
      get urgency() {
        return urgency();
      },
      onTracks: (tracks: readonly Track[]) => this.announcements.push(tracks),
      onPacket: (packet: Packet) => {
        this.packets.push(packet);
        this.onPacketSeen();
      },
      close: (reason: CloseReason) => {
        this.closed = reason;
      },
    };
  }

  /** Called with each packet. */
  onPacketSeen: () => void = () => undefined;

  of(variantName: string): Packet[] {
    return this.packets.filter(({ track }) => track.variantName === variantName);
  }
}

/** The outputs of one source, with a viewer for each. */
export function setUpOutputs(
  profiles: readonly object[] = [LADDER],
  { transcoder = new FakeTranscoder() as FakeTranscoder | null, turns = NO_TURNS as Turns } = {},
) {
  const clock = new ManualClock();
  const logger = new RecordingLogger();
  const viewers = new Map<string, OutputViewer>();
  const sourceKeyframes: number[] = [];
  const outputs = new StreamOutputs({
    vhost: 'v',
    app: 'app',
    stream: 's',
    profiles: profiles.map((profile) => readOutputProfile(profile).typed),
    decodes: {
      threadCount: 2,
      onlyKeyframes: true,
      hardware: { enable: true, modules: 'nv' },
      hardwareDecoding: { enable: false, modules: 'qsv' },
    },
    transcoder,
    clock,
    logger,
    turns,
    newcomer: { client: '192.0.2.1', failed: () => undefined, refused: () => undefined },
    createOutput: (name, requestKeyframe) => {
      if (viewers.has(name)) return null;
      const meter = new TrafficMeter(clock, null);
      const stream = new OutboundStream({
        id: viewers.size,
        vhost: 'v',
        app: 'app',
        name,
        sourceName: 'source',
        meter,
        sessions: new SessionRegistry(clock, meter),
        logger,
        requestKeyframe,
        fromOriginMap: false,
        wake: () => undefined,
      });
      const viewer = new OutputViewer();
      viewers.set(name, viewer);
      stream.attach({ publisher: viewer, settings: {} });
      return stream;
    },
    requestSourceKeyframe: (trackId) => sourceKeyframes.push(trackId),
    playlists: () => [],
  });
  const viewer = (name = 's'): OutputViewer => {
    const found = viewers.get(name);
    if (found === undefined) throw new Error(`no output ${name}`);
    return found;
  };
  const push = (packets: readonly Packet[]): void => {
    for (const packet of packets) outputs.push(packet);
    outputs.drain();
  };
  return { outputs, viewer, viewers, push, transcoder: transcoder as FakeTranscoder, logger, clock, sourceKeyframes };
}
