/** An OVT publisher with a stream, and edges that request it. */
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach } from 'vitest';
import type { Playlist } from '../../src/core/playlist.ts';
import type { Packet } from '../../src/media/packet.ts';
import type { Track } from '../../src/media/track.ts';
import { OvtPublisher } from '../../src/services/ovt/ovt-publisher.ts';
import { OvtPullSource } from '../../src/services/ovt/ovt-pull-source.ts';
import type { OvtStream } from '../../src/services/ovt/ovt-stream.ts';
import type { ConnectionLimiter } from '../../src/util/connection-limiter.ts';
import { parseMediaPacket } from '../../src/wire/ovt/media-packet.ts';
import { type OvtResponse, parseResponse, serializeRequest } from '../../src/wire/ovt/message.ts';
import { OvtReader } from '../../src/wire/ovt/reader.ts';
import { ASC, AVCC } from '../fixtures/bitstreams.ts';
import { FakeStream } from './fake-stream.ts';
import { ManualClock } from './manual-clock.ts';
import { RecordingSink } from './pull-sink.ts';
import { RecordingLogger } from './recording-logger.ts';
import { audioPackets, audioTrack, constantFrames, dataTrack, interleave, videoPackets, videoTrack } from './synthetic-media.ts';

/** The encoder has left. */
export const GONE = { code: 'peer-left', detail: 'the encoder left' } as const;
/** Video of high bitrate; `TRACKS` has two videos, two audios and events. */
export const HD = videoTrack({ id: 0, variantName: 'hd', config: AVCC.high720 });
/** One of `TRACKS`. */
export const SD = videoTrack({ id: 1, variantName: 'sd', config: AVCC.baseline360, width: 640, height: 360, bitrateConf: 800_000 });
/** One of `TRACKS`. */
export const AAC = audioTrack({ id: 2, variantName: 'aac', config: ASC.plainStereo48, language: 'de', publicName: 'Deutsch' });
/** One of `TRACKS`. */
export const OPUS = audioTrack({ id: 3, variantName: 'opus', codec: 'OPUS', config: null });
/** All of them. */
export const TRACKS: readonly Track[] = [HD, SD, AAC, OPUS, dataTrack(4)];
/** Both videos with the first audio. */
export const ABR: Playlist = {
  name: 'ladder',
  fileName: 'abr',
  options: { webrtcAutoAbr: false, hlsChunklistPathDepth: 0, enableTsPackaging: true, enableSubtitles: true },
  renditions: [
    { name: 'high', videoVariantName: 'hd', audioVariantName: 'aac', videoIndexHint: 0, audioIndexHint: -1 },
    { name: 'low', videoVariantName: 'sd', audioVariantName: 'aac', videoIndexHint: -1, audioIndexHint: -1 },
  ],
};

/** A stream with all tracks. */
export class LiveStream extends FakeStream {
  override tracks: readonly Track[] = TRACKS;
  override playlists: readonly Playlist[] = [ABR];
  override readonly id: number;
  override readonly name: string;
  constructor(id: number, name: string) {
    super();
    this.id = id;
    this.name = name;
  }
}

/** The publisher of the running test, and its parts. */
export const origin = {
  clock: new ManualClock(),
  logger: new RecordingLogger(),
  publisher: null as unknown as OvtPublisher,
};
/** Cleanup of the running test. */
export const closing: (() => void)[] = [];

/** Call it once per test file: makes a publisher for each test. */
export function setUpOrigin(): void {
  beforeEach(() => {
    origin.clock = new ManualClock();
    origin.logger = new RecordingLogger();
    origin.publisher = new OvtPublisher({ logger: origin.logger, clock: origin.clock });
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) close();
    await origin.publisher.stop();
  });
}

/** Opens a port of the publisher. */
export async function listen(options: { maxConnections?: number; startWait?: number; limiter?: ConnectionLimiter } = {}): Promise<void> {
  const virtualHostFor = (host: string): string | null => (host === '127.0.0.1' ? 'default' : null);
  const hasApplication = (vhost: string, app: string): boolean => `${vhost}/${app}` === 'default/app';
  await origin.publisher.listen({ host: '127.0.0.1', port: 0, virtualHostFor, hasApplication, ...options });
}

/** Adds a stream that edges can request. */
export function serve(name = 'live', id = 7): { stream: LiveStream; served: OvtStream } {
  const stream = new LiveStream(id, name);
  const served = origin.publisher.attach(stream);
  closing.push(() => served.close(GONE));
  served.onTracks(TRACKS);
  return { stream, served };
}

/** The URL of a stream for edges. */
export function url(stream = 'live'): string {
  return `ovt://127.0.0.1:${origin.publisher.ports[0]}/app/${stream}`;
}

/** Pulls with our own edge. */
export async function pull(target = url()): Promise<{ sink: RecordingSink; close: () => void }> {
  const sink = new RecordingSink();
  const signal = AbortSignal.timeout(10_000);
  const stream = { vhost: 'default', app: 'edge', stream: 'live' };
  const session = await new OvtPullSource(origin.clock).open({
    url: target,
    settings: {},
    ignoreSenderReports: false,
    sink,
    signal,
    logger: origin.logger,
    stream,
  });
  closing.push(() => session.close());
  return { sink, close: () => session.close() };
}

/** Waits without a deadline of its own: the test's timeout counts. */
export async function until(predicate: () => boolean): Promise<void> {
  while (!predicate()) await delay(5);
}

/** A packet with one NAL unit after its length. */
function withLength(packet: Packet): Packet {
  const data = Buffer.from(packet.data);
  data.writeUInt32BE(data.length - 4);
  data[4] = packet.keyframe ? 0x65 : 0x41;
  // Filled with a value that makes no start code.
  return { ...packet, data: data.fill(0x55, 5) };
}

/** Media of all tracks for some seconds. */
export function media(seconds: number, size = 500): Packet[] {
  const frames = constantFrames({ rate: 30, gop: 30, seconds });
  const videos = [HD, SD].map((track) => videoPackets(track, frames, size).map(withLength));
  return interleave(...videos, audioPackets(AAC, seconds), audioPackets(OPUS, seconds));
}

/** An edge that keeps every received byte. */
export class RawEdge {
  readonly responses: OvtResponse[] = [];
  /** The messages as received. */
  readonly texts: string[] = [];
  /** Tracks of the received packets. */
  readonly media: number[] = [];
  readonly socket: net.Socket;
  readonly #reader = new OvtReader({ message: 1e6, media: 1e7 });

  constructor() {
    this.socket = net.connect(origin.publisher.ports[0]!, '127.0.0.1');
    this.socket.on('error', () => undefined);
    closing.push(() => this.socket.destroy());
    this.socket.on('data', (data: Buffer) => {
      this.#reader.push(data, (type, payload) => {
        if (type === 20) {
          this.texts.push(Buffer.from(payload).toString());
          this.responses.push(parseResponse(payload));
        } else this.media.push(parseMediaPacket(payload).trackId);
      });
    });
  }

  ask(command: string, target: string, id = 1, codecs?: readonly number[]): void {
    this.socket.write(serializeRequest({ id, command, target, ...(codecs !== undefined && { codecs }) }, 0));
  }

  async answer(count: number): Promise<OvtResponse> {
    await until(() => this.responses.length >= count);
    return this.responses[count - 1]!;
  }
}
