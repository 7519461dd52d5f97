/** One dump: keeps init segments, segments and playlists of a stream as files in a folder. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../state/atomic-file.ts';
import type { Clock } from '../../util/clock.ts';
import type { Logger } from '../../util/logger.ts';
import { DumpInfo, DumpStatus } from './dump-info.ts';
import { DumpPlaylist } from './dump-playlist.ts';
import type { LlhlsStream } from './llhls-stream.ts';
import { ResourceNames } from './resource-name.ts';
import type { SegmentObserver } from './segment-observer.ts';
import type { SegmentModel, TrackModel } from './stream-model.ts';

/** Bytes of segments that may wait for the disk; a dump that needs more ends with an error, for it may not have holes. */
const WAITING_BYTES = 64 * 1024 * 1024;

/** What was asked for, as the API shows it. */
export interface DumpRequest {
  readonly id: string;
  /** As given. */
  readonly outputPath: string;
  /** Multivariant playlists to keep, with `.m3u8`; [] for all. */
  readonly playlists: readonly string[];
  readonly infoFile: string;
  readonly userData: string;
}

export interface HlsDumpOptions {
  readonly request: DumpRequest;
  readonly stream: LlhlsStream;
  /** Absolute; it exists. */
  readonly folder: string;
  /** Absolute, or null for none; the file exists and is empty. */
  readonly infoPath: string | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class HlsDump implements SegmentObserver {
  readonly request: DumpRequest;
  readonly #options: HlsDumpOptions;
  readonly #logger: Logger;
  readonly #info: DumpInfo;
  readonly #playlists = new Map<number, DumpPlaylist>();
  /** Files that were written at least once. */
  readonly #written = new Set<string>();
  readonly #masters = new Map<string, string>();
  /** Segments before this one are not part of the dump; null before the first. */
  #firstMsn: number | null = null;
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;
  #segments = 0;
  #status: DumpStatus = DumpStatus.RUNNING;
  #open = true;
  readonly #over = Promise.withResolvers<void>();

  constructor(options: HlsDumpOptions) {
    const { request, stream } = options;
    this.request = request;
    this.#options = options;
    this.#logger = options.logger.child({ dump: request.id, stream: stream.path });
    this.#info = new DumpInfo(stream.path, request.userData);
  }

  /** Files are still added. */
  get enabled(): boolean {
    return this.#open;
  }

  /** Resolves when no file will be touched any more. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Settles when everything handed over so far is on disk or has failed. */
  get settled(): Promise<void> {
    return this.#tail;
  }

  /** Begins with the newest segments that all tracks have, or waits for the first. Rejects when the first files cannot be written. */
  async start(): Promise<void> {
    const { stream, folder } = this.#options;
    const tracks = [...stream.model.tracks.values()].filter(({ completeCount }) => completeCount > 0);
    const lasts = tracks.map((track) => track.segments[track.completeCount - 1]?.msn ?? 0);
    // Segments that a DVR has moved to its files are not looked for there.
    const oldest = tracks.map((track) => track.segments.find(({ path }) => path === null)?.msn ?? 0);
    if (lasts.length > 0) this.#firstMsn = Math.max(Math.min(...lasts), ...oldest);
    stream.observe(this);
    this.#logger.info({ folder }, `dump to ${folder}`);
    for (const track of tracks) {
      for (const segment of track.segments.slice(0, track.completeCount)) this.segmentClosed(track, segment);
    }
    this.#writeInfo();
    await this.#tail;
    if (this.#status === DumpStatus.ERROR) throw new Error('the first files could not be written');
  }

  segmentClosed(track: TrackModel, segment: SegmentModel): void {
    const { duration, msn, generation, startTime, discontinuity } = segment;
    if (!this.#open || duration === null) return;
    this.#firstMsn ??= msn;
    if (msn < this.#firstMsn) return;
    const { stream } = this.#options;
    const names = new ResourceNames(track, stream.streamKey);
    const bytes = stream.copyOf(segment);
    this.#waiting += bytes.length;
    if (this.#waiting > WAITING_BYTES) {
      this.#fail(new Error(`the disk is too slow: more than ${WAITING_BYTES} bytes wait for it`));
      return;
    }
    const init = names.init(generation);
    const initBytes = track.inits.get(generation);
    const playlist = this.#playlists.get(track.id) ?? new DumpPlaylist(names.chunklist);
    this.#playlists.set(track.id, playlist);
    const masters = this.#changedMasters();
    this.#enqueue(async () => {
      if (initBytes !== undefined && !this.#written.has(init)) await this.#write(init, initBytes);
      await this.#write(names.segment(msn), bytes);
      playlist.add({ uri: names.segment(msn), init, duration, startTime, discontinuity });
      await this.#replace(playlist.uri, playlist.text);
      for (const [name, text] of masters) await this.#replace(name, text);
      this.#waiting -= bytes.length;
      this.#segments += 1;
    });
    this.#writeInfo();
  }

  streamEnded(): void {
    this.#end('the stream has ended');
  }

  /** Ends the dump; what it holds stays. Resolves when the files are complete. Idempotent. */
  stop(): Promise<void> {
    this.#end('it was stopped');
    return this.#tail;
  }

  #end(why: string): void {
    if (!this.#open) return;
    this.#open = false;
    this.#options.stream.unobserve(this);
    this.#enqueue(async () => {
      this.#status = DumpStatus.COMPLETED;
    });
    this.#writeInfo();
    void this.#tail.then(() => {
      this.#over.resolve();
      if (this.#status === DumpStatus.COMPLETED) this.#logger.info({ segments: this.#segments }, `dump complete: ${why}`);
    });
  }

  /** Multivariant playlists whose text is another than last time: bit rates become known, tracks come. */
  #changedMasters(): [string, string][] {
    const changed: [string, string][] = [];
    for (const [name, text] of this.#options.stream.plainMultivariants(this.request.playlists)) {
      if (this.#masters.get(name) === text) continue;
      this.#masters.set(name, text);
      changed.push([name, text]);
    }
    return changed;
  }

  async #write(name: string, bytes: Uint8Array): Promise<void> {
    await writeFile(join(this.#options.folder, name), bytes);
    this.#note(name);
  }

  async #replace(name: string, text: string): Promise<void> {
    await writeFileAtomic(join(this.#options.folder, name), text);
    this.#note(name);
  }

  #note(name: string): void {
    if (this.#written.has(name)) return;
    this.#written.add(name);
    this.#info.add(join(this.#options.folder, name), this.#options.clock.now());
  }

  #writeInfo(): void {
    const { infoPath } = this.#options;
    if (infoPath !== null) this.#enqueue(() => writeFileAtomic(infoPath, this.#info.text(this.#status)));
  }

  /** One file after the other; after a failure nothing more is written. */
  #enqueue(work: () => Promise<void>): void {
    this.#tail = this.#tail.then(async () => {
      if (this.#status === DumpStatus.ERROR) return;
      try {
        await work();
      } catch (error) {
        this.#fail(error);
        await this.#tellError();
      }
    });
  }

  #fail(error: unknown): void {
    if (this.#status === DumpStatus.ERROR) return;
    const wasOpen = this.#open;
    this.#open = false;
    this.#status = DumpStatus.ERROR;
    if (wasOpen) this.#options.stream.unobserve(this);
    void this.#tail.then(() => this.#over.resolve());
    this.#logger.error({ err: error }, `dump failed: ${error instanceof Error ? error.message : String(error)}`);
  }

  async #tellError(): Promise<void> {
    const { infoPath } = this.#options;
    if (infoPath === null) return;
    // The disk that failed may hold this file too; the log has said it already.
    await writeFileAtomic(infoPath, this.#info.text(DumpStatus.ERROR)).catch(() => undefined);
  }
}
