/** One dump: keeps init segments, segments and playlists of a stream as files in a folder. */
import { writeFileAtomic } from '../../../../state/atomic-file.ts';
import type { Clock } from '../../../../util/clock.ts';
import type { Conditions } from '../../../../util/conditions.ts';
import type { Logger } from '../../../../util/logger.ts';
import type { LlhlsStream } from '../../packager/fmp4/llhls-stream.ts';
import type { SegmentObserver } from '../../packager/fmp4/segment-observer.ts';
import { ResourceNames } from '../../view/fmp4/resource-name.ts';
import type { SegmentModel, TrackModel } from '../../view/fmp4/stream-model.ts';
import { DumpFolder } from '../dump-folder.ts';
import { dumpCondition, tellPause, tellResumption } from '../dump-pause.ts';
import { DumpPlaylist } from '../dump-playlist.ts';
import type { FolderWriter } from '../folder-claims.ts';
import { DumpInfo, DumpStatus } from './dump-info.ts';

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

/** What a dump is made of; the folder was claimed for it by the dumper. */
export interface HlsDumpOptions {
  readonly request: DumpRequest;
  readonly stream: LlhlsStream;
  /** Absolute; it exists. */
  readonly folder: string;
  /** Absolute, or null for none; the file exists and is empty. */
  readonly infoPath: string | null;
  readonly clock: Clock;
  /** Is told while the disk refuses files. */
  readonly conditions: Conditions;
  readonly logger: Logger;
}

/** Ends with its stream, by `stop`, or when the disk fails; what it has written stays in every case. */
export class HlsDump implements SegmentObserver, FolderWriter {
  readonly request: DumpRequest;
  readonly #options: HlsDumpOptions;
  readonly #logger: Logger;
  readonly #info: DumpInfo;
  readonly #playlists = new Map<number, DumpPlaylist>();
  readonly #files: DumpFolder;
  readonly #masters = new Map<string, string>();
  /** Segments before this one are not part of the dump; null before the first. */
  #firstMsn: number | null = null;
  #segments = 0;
  #status: DumpStatus = DumpStatus.RUNNING;
  #failure: unknown = null;
  #open = true;
  readonly #over = Promise.withResolvers<void>();

  constructor(options: HlsDumpOptions) {
    const { request, stream } = options;
    this.request = request;
    this.#options = options;
    this.#logger = options.logger.child({ dump: request.id, stream: stream.path });
    this.#info = new DumpInfo(stream.path, request.userData);
    this.#files = new DumpFolder({
      path: options.folder,
      clock: options.clock,
      onPaused: (error) => this.#pause(error),
      onResumed: () => this.#resume(),
      onWritten: (path) => this.#info.add(path, options.clock.now()),
      onFailed: (error) => this.#fail(error),
      onFailureSettled: () => this.#settleFailure(),
    });
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
    return this.#files.settled;
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
    await this.settled;
    if (this.#status !== DumpStatus.ERROR) return;
    this.#end('its first files could not be written');
    throw this.#failure;
  }

  segmentClosed(track: TrackModel, segment: SegmentModel): void {
    try {
      this.#take(track, segment);
    } catch (error) {
      // The stream goes on without the dump.
      this.#files.enqueue(() => Promise.reject(error));
    }
  }

  #take(track: TrackModel, segment: SegmentModel): void {
    const { duration, msn, generation, startTime, discontinuity } = segment;
    if (!this.#open || duration === null) return;
    this.#firstMsn ??= msn;
    if (msn < this.#firstMsn) return;
    const { stream } = this.#options;
    const names = new ResourceNames(track, stream.streamKey);
    const bytes = stream.copyOf(segment);
    const init = names.init(generation);
    const initBytes = track.inits.get(generation);
    const playlist = this.#playlists.get(track.id) ?? new DumpPlaylist(names.chunklist);
    this.#playlists.set(track.id, playlist);
    const masters = this.#changedMasters();
    const files = this.#files;
    const listed = { uri: names.segment(msn), init, duration, startTime, discontinuity };
    let isListed = false;
    const missed = (): void => {
      if (!isListed) playlist.add({ ...listed, gap: true });
      for (const [name] of masters) this.#masters.delete(name);
    };
    files.enqueue(
      async () => {
        if (initBytes !== undefined && !files.has(init)) await files.write(init, initBytes);
        await files.write(names.segment(msn), bytes);
        playlist.add(listed);
        isListed = true;
        await files.replace(playlist.uri, playlist.text);
        for (const [name, text] of masters) await files.replace(name, text);
        this.#segments += 1;
      },
      bytes.length,
      missed,
    );
    this.#writeInfo();
  }

  streamEnded(): void {
    this.#end('the stream has ended');
  }

  /** Ends the dump; what it holds stays. Resolves when the files are complete. Idempotent. */
  stop(): Promise<void> {
    this.#end('it was stopped');
    return this.settled;
  }

  #end(why: string): void {
    if (!this.#open) return;
    this.#open = false;
    this.#options.stream.unobserve(this);
    this.#files.enqueue(async () => {
      // One that misses its end stays what it says.
      if (this.#status === DumpStatus.RUNNING) this.#status = DumpStatus.COMPLETED;
    });
    this.#writeInfo();
    void this.settled.then(() => {
      this.#letGo();
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

  #writeInfo(): void {
    const { infoPath } = this.#options;
    // The next one tells what this one could not.
    if (infoPath !== null)
      this.#files.enqueue(
        () => writeFileAtomic(infoPath, this.#info.text(this.#status)),
        0,
        () => undefined,
      );
  }

  /** What the information file says is brought there when the disk takes it, at the latest with the next segment. */
  async #pause(error: unknown): Promise<void> {
    this.#status = DumpStatus.ERROR;
    this.#failure = error;
    tellPause({ ...this.#options, logger: this.#logger }, error);
    const { infoPath } = this.#options;
    if (infoPath !== null) await writeFileAtomic(infoPath, this.#info.text(DumpStatus.ERROR)).catch(() => undefined);
  }

  #resume(): void {
    this.#status = DumpStatus.RUNNING;
    this.#failure = null;
    tellResumption({ ...this.#options, logger: this.#logger });
  }

  #fail(error: unknown): void {
    const wasOpen = this.#open;
    this.#open = false;
    this.#status = DumpStatus.ERROR;
    this.#failure = error;
    if (wasOpen) this.#options.stream.unobserve(this);
    this.#logger.error({ err: error }, `dump failed: ${error instanceof Error ? error.message : String(error)}`);
  }

  async #settleFailure(): Promise<void> {
    const { infoPath } = this.#options;
    // The disk that failed may hold this file too; the log has said it already.
    if (infoPath !== null) await writeFileAtomic(infoPath, this.#info.text(DumpStatus.ERROR)).catch(() => undefined);
    this.#letGo();
  }

  /** The dump stays in the list as long as its stream lives: what it wrote is not kept in memory for that. */
  #letGo(): void {
    this.#options.conditions.clear(dumpCondition(this.#options.folder));
    this.#info.clear();
    this.#playlists.clear();
    this.#masters.clear();
    this.#files.forget();
    this.#over.resolve();
  }
}
