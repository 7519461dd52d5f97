/** A stream with a stand-in under the control of the test. */
import { expect, vi } from 'vitest';
import type { ApplicationConfig } from '../../src/config/index.ts';
import { Application } from '../../src/core/application.ts';
import type { CloseReason, IngestRequest, IngestStream } from '../../src/core/ingest.ts';
import { PublisherKind } from '../../src/core/kinds.ts';
import type { Publisher } from '../../src/core/publishing.ts';
import { QueueRegistry } from '../../src/core/queue-registry.ts';
import type { StandIn, StandInStage } from '../../src/core/stand-in.ts';
import { TrafficMeter } from '../../src/core/traffic-meter.ts';
import type { Packet } from '../../src/media/packet.ts';
import { ManualClock } from './manual-clock.ts';
import { RecordingLogger } from './recording-logger.ts';
import { audioPacket, audioTrack, videoPacket, videoTrack } from './source.ts';

export const LEFT: CloseReason = { code: 'peer-left', detail: 'bye' };
export const URL = 'file:///slate.mp4';
export const ENTRY = { url: URL, mediaRootDir: '/media', streamName: '*', afterMs: 500, keepMs: 0 };

/** A stand-in that records its calls, and plays when the test calls it. */
export class ToldStandIn implements StandIn {
  readonly told: string[] = [];
  readonly stage: StandInStage;
  readonly url: string;
  since = 0;
  frames = 0;

  constructor(stage: StandInStage, url: string) {
    this.stage = stage;
    this.url = url;
  }

  prepare(): void {
    this.told.push('prepare');
  }

  play(since: number): void {
    this.told.push('play');
    this.since = since;
  }

  rest(): void {
    this.told.push('rest');
  }

  wake(): void {
    this.told.push('wake');
  }

  close(): void {
    this.told.push('close');
  }

  begin(): void {
    this.stage.setTracks([videoTrack(), audioTrack({ id: 100 })]);
    this.frames = 0;
  }

  /** Sends frames that are larger than the encoders' frames. */
  send(frames = 1): void {
    for (let index = 0; index < frames; index += 1) {
      this.stage.push(videoPacket(this.frames, { startMs: 5_000_000, size: 999 }));
      this.frames += 1;
    }
  }
}

export interface Options {
  readonly sourceLoss?: object;
  readonly entry?: object;
  readonly rtmp?: object;
  /** `mediaOptions` of the output profiles. */
  readonly mediaOptions?: object;
}

export function setUp({ sourceLoss = {}, entry = {}, rtmp = {}, mediaOptions }: Options = {}) {
  const clock = new ManualClock();
  const logger = new RecordingLogger();
  const packets: Packet[] = [];
  const ended: CloseReason[] = [];
  const publisher: Publisher = {
    kind: PublisherKind.LLHLS,
    defaultPlaylist: () => null,
    attach: () => ({ onTracks: () => undefined, onPacket: (packet) => packets.push(packet), close: (reason) => ended.push(reason) }),
  };
  const encodes = { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }], images: [] };
  const profile = { name: 'p', outputStreamName: '${OriginStreamName}', playlists: [], encodes };
  const config = {
    name: 'app',
    providers: { rtmp, srt: {}, rtspPull: {} },
    publishers: { llhls: {} },
    outputProfiles: { outputProfile: [profile], mediaOptions },
    sourceLoss: { keepStreamMs: 0, takeOverSilenceMs: 2000, standIn: [{ ...ENTRY, ...entry }], ...sourceLoss },
  };
  const meter = new TrafficMeter(clock, null);
  const made: ToldStandIn[] = [];
  let lastId = 0;
  const application = new Application('v', { name: 'app', config: config as unknown as ApplicationConfig, echo: {} }, meter, {
    ...{ clock, logger, queues: new QueueRegistry(clock), publishers: new Map([[publisher.kind, publisher]]), transcoder: null },
    nextStreamId: () => (lastId += 1),
    standIns: ({ url }, stage) => {
      const standIn = new ToldStandIn(stage, url);
      made.push(standIn);
      return standIn;
    },
  });
  const closes: CloseReason[] = [];
  const request = (more: Partial<IngestRequest> = {}): IngestRequest => ({
    ...{ streamName: 's', provider: 'rtmp', sourceType: 'Rtmp', sourceUrl: 'TCP://127.0.0.1:1' },
    onClose: (reason) => closes.push(reason),
    ...more,
  });
  /** Advances the clock by `ms`, in steps as short as the intervals of timers. */
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 50) {
      clock.advance(Math.min(50, left));
      await vi.advanceTimersByTimeAsync(Math.min(50, left));
    }
    await Promise.resolve();
  };
  const publish = (more: Partial<IngestRequest> = {}): IngestStream => {
    const ingest = application.openIngest(request(more));
    ingest.setTracks([videoTrack(), audioTrack()]);
    return ingest;
  };
  const lines = (text: string) => logger.lines.filter(({ message }) => message.includes(text));
  return { application, clock, packets, ended, closes, request, meter, made, pass, publish, lines };
}

export type Studio = ReturnType<typeof setUp>;

/** Sends a second of an encoder's media. */
export async function send(studio: Studio, ingest: IngestStream, { from = 0, startMs = 0 } = {}): Promise<void> {
  for (let index = from; index < from + 30; index += 1) {
    ingest.push(videoPacket(index, { startMs }));
    ingest.push(audioPacket(index * 1.5625, { startMs }));
    await studio.pass(1000 / 30);
  }
}

/** An encoder sends for a second and leaves; then the stand-in is on air with ten frames. */
export async function lost(studio: Studio): Promise<ToldStandIn> {
  const encoder = studio.publish();
  await send(studio, encoder);
  encoder.close(LEFT);
  const [standIn] = studio.made;
  standIn!.begin();
  standIn!.send(10);
  await studio.pass(50);
  return standIn!;
}

export function expectContinuous(packets: readonly Packet[]): void {
  const video = packets.filter(({ track }) => track.type === 'video');
  for (let index = 1; index < video.length; index += 1) {
    const step = (video[index]!.dts - video[index - 1]!.dts) / 90;
    expect(step).toBeGreaterThan(0);
    expect(step).toBeLessThan(100);
  }
}

export const shown = (packets: readonly Packet[]): number[] =>
  packets.filter(({ track }) => track.type === 'video').map(({ data }) => data.length);
