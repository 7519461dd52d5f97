/** A FILE publisher with its own folder, a stream to record, and access to the recorded files. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { PublisherStream } from '../../src/core/publishing.ts';
import { QueueRegistry } from '../../src/core/queue-registry.ts';
import type { Packet } from '../../src/media/packet.ts';
import type { Track } from '../../src/media/track.ts';
import { FilePublisher, type RecordOwner } from '../../src/services/record/file-publisher.ts';
import type { RecordInformation } from '../../src/services/record/record-information.ts';
import type { FilePublisherSettings } from '../../src/services/record/record-place.ts';
import type { RecordRequest } from '../../src/services/record/record-request.ts';
import { AllowedFolders } from '../../src/util/allowed-folders.ts';
import { Conditions } from '../../src/util/conditions.ts';
import { FakeStream } from '../fakes/fake-stream.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { RecordingLogger } from '../fakes/recording-logger.ts';
import { dataTrack } from '../fakes/synthetic-media.ts';
import { type EncodedMedia, encodeMedia } from './encoded-media.ts';

const ANYWHERE = new AllowedFolders(null, 'the setting');

/** Why streams are closed. */
export const CLOSED = { code: 'peer-left', detail: 'gone' } as const;

/** Six seconds of video (25 frames a second, B-frames, a keyframe each second) and a tone. */
export function encodeSample(): EncodedMedia {
  const extra = ['-x264-params', 'scenecut=0:bframes=2:b-adapt=0'];
  return encodeMedia({ seconds: 6, video: 'libx264', audio: 'aac', rate: 25, gop: 25, extra });
}

/** A request to record the stream `stream`. */
export function wish(id: string, more: Partial<RecordRequest> = {}): RecordRequest {
  return {
    ...{ id, streamName: 'stream', trackIds: [], variantNames: [], interval: 0, schedule: '', segmentationRule: 'discontinuity' },
    ...{ filePath: '', infoPath: '', metadata: '', isConfig: false },
    ...more,
  };
}

/** Made once per test file. Each test gets an empty folder and a fresh publisher. */
export class RecordingBench {
  folder!: string;
  clock!: ManualClock;
  logger!: RecordingLogger;
  settings!: FilePublisherSettings;
  /** Conditions of the last started publisher. */
  conditions!: Conditions;
  /** Queues of the last started publisher. */
  queues!: QueueRegistry;
  /** The last started publisher. */
  publisher!: FilePublisher;

  constructor() {
    beforeEach(() => this.#open());
    afterEach(() => this.#close());
  }

  /** `RootPath`, unless `settings` are changed. */
  get root(): string {
    return join(this.folder, 'root');
  }

  /** Starts another publisher on the same state folder, as the next process would. */
  async restart(allowed = ANYWHERE): Promise<void> {
    this.conditions = new Conditions();
    this.queues = new QueueRegistry(this.clock);
    const { clock, logger, conditions, queues } = this;
    this.publisher = new FilePublisher({ clock, logger, conditions, queues, stateFolder: join(this.folder, 'state'), allowed });
    await this.publisher.load();
    this.publisher.recover();
  }

  get owner(): RecordOwner {
    return { vhost: 'default', app: 'app', settings: this.settings };
  }

  /** Starts a task of the application. */
  record(id: string, more: Partial<RecordRequest> = {}): Promise<RecordInformation> {
    return this.publisher.startRecord(this.owner, wish(id, more));
  }

  stopRecord(id: string): Promise<RecordInformation | null> {
    return this.publisher.stopRecord(this.owner, id);
  }

  /** Tasks of the application; with `id`, only that task. */
  tasks(id: string | null = null): RecordInformation[] {
    return this.publisher.records(this.owner, id);
  }

  /** A stream with these tracks and a data track. */
  stream(tracks: readonly Track[]): { stream: FakeStream; attached: PublisherStream } {
    const stream = new FakeStream();
    const attached = this.publisher.attach(stream, this.settings);
    stream.tracks = [...tracks, dataTrack(9)];
    attached.onTracks(stream.tracks);
    return { stream, attached };
  }

  /** Sends packets, and advances the clock with them. */
  send(attached: PublisherStream, packets: readonly Packet[]): void {
    let last = 0;
    for (const packet of packets) {
      const at = (packet.dts * 1000) / packet.track.timebase.den;
      if (at > last) this.clock.advance(at - last);
      last = Math.max(last, at);
      attached.onPacket(packet);
    }
    attached.onDrained?.();
  }

  /** Names of the files in the root, without information files. */
  files(): string[] {
    if (!existsSync(this.root)) return [];
    return readdirSync(this.root)
      .filter((name) => !name.endsWith('.xml'))
      .sort();
  }

  /** Files with their final names. */
  named(): string[] {
    return this.files().filter((name) => !name.startsWith('tmp_'));
  }

  /** Bytes of `named`. */
  namedBytes(): number {
    return this.named().reduce((sum, name) => sum + statSync(join(this.root, name)).size, 0);
  }

  /** Names of the notes about unfinished files. */
  notes(): string[] {
    return readdirSync(join(this.folder, 'state/records/open'));
  }

  /** Streams of a file below the root, with the codec names of ffprobe. */
  streams(name: string): { readonly type: string; readonly codec: string; readonly packets: number }[] {
    const args = ['-v', 'quiet', '-of', 'json', '-count_packets', '-show_entries', 'stream=codec_type,codec_name,nb_read_packets'];
    const { streams } = JSON.parse(execFileSync('ffprobe', [...args, join(this.root, name)], { encoding: 'utf8' })) as {
      streams: { codec_type: string; codec_name: string; nb_read_packets?: string }[];
    };
    return streams.map(({ codec_type, codec_name, nb_read_packets = '0' }) => ({
      ...{ type: codec_type, codec: codec_name, packets: Number(nb_read_packets) },
    }));
  }

  /** Presentation times of all frames of a file below the root, seconds. */
  probe(name: string): { readonly video: number[]; readonly audio: number[] } {
    const args = ['-v', 'error', '-of', 'json', '-show_frames', '-show_entries', 'frame=media_type,pts_time', join(this.root, name)];
    const { frames } = JSON.parse(execFileSync('ffprobe', args, { encoding: 'utf8' })) as {
      frames: { media_type: string; pts_time: string }[];
    };
    const timesOf = (type: string): number[] => frames.filter((frame) => frame.media_type === type).map((frame) => Number(frame.pts_time));
    return { video: timesOf('video'), audio: timesOf('audio') };
  }

  async #open(): Promise<void> {
    this.folder = mkdtempSync(join(tmpdir(), 'millrace-files-'));
    this.clock = new ManualClock();
    this.logger = new RecordingLogger();
    this.settings = { rootPath: this.root, filePath: '/${Id}_${Sequence}.mp4', infoPath: '/info.xml' };
    await this.restart();
  }

  async #close(): Promise<void> {
    await this.publisher.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
