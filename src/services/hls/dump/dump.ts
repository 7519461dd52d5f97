/** One dump: keeps init segments, segments and playlists of a stream as files in a folder. */
import type { Notices } from '../../../core/notices/notice.ts';
import { postDump } from '../../../core/notices/task-notices.ts';
import { writeFileAtomic } from '../../../state/atomic-file.ts';
import type { Clock } from '../../../util/clock.ts';
import type { Conditions } from '../../../util/conditions.ts';
import { diskFault } from '../../../util/disk-fault.ts';
import type { Logger } from '../../../util/logger.ts';
import { messageOf } from '../../../util/message-of.ts';
import type { ObservedSegment, SegmentObserver, SegmentSource } from '../packager/segment-observer.ts';
import { DumpFolder } from './dump-folder.ts';
import { DumpInfo, DumpStatus } from './dump-info.ts';
import type { DumpCounts } from './dump-metrics.ts';
import { DumpPlaylist } from './dump-playlist.ts';
import type { FolderWriter } from './folder-claims.ts';

/** The request, as the API shows it. */
export interface DumpRequest {
  readonly id: string;
  /** As given. */
  readonly outputPath: string;
  /** Multivariant playlists to keep, with `.m3u8`; [] for all. */
  readonly playlists: readonly string[];
  readonly infoFile: string;
  readonly userData: string;
}

/** Dependencies of a dump. */
export interface DumpOptions {
  readonly request: DumpRequest;
  readonly stream: SegmentSource;
  /** Absolute; exists and is claimed for the dump, unless `prepare` does both. */
  readonly folder: string;
  /** Absolute, or null for none; the file exists and is empty. */
  readonly infoPath: string | null;
  /** Runs before the first file: segments wait for it. When it rejects the dump fails. */
  readonly prepare?: (dump: Dump) => Promise<void>;
  readonly clock: Clock;
  /** Raised while the disk refuses writes. */
  readonly conditions: Conditions;
  readonly notices: Notices;
  readonly logger: Logger;
  /** Counters of the server; absent: none. */
  readonly counts?: DumpCounts;
}

/** Ends with its stream, by `stop`, or when the disk fails; its files are kept. */
export class Dump implements SegmentObserver, FolderWriter {
  readonly request: DumpRequest;
  readonly #options: DumpOptions;
  readonly #logger: Logger;
  readonly #info: DumpInfo;
  /** Media playlists by file name. */
  readonly #playlists = new Map<string, DumpPlaylist>();
  readonly #files: DumpFolder;
  /** Texts of multivariant playlists as they were written last. */
  readonly #masters = new Map<string, string>();
  /** Segments before this one are not part of the dump. */
  #first = 0;
  #segments = 0;
  #status: DumpStatus = DumpStatus.RUNNING;
  #failure: unknown = null;
  #open = true;
  readonly #over = Promise.withResolvers<void>();

  constructor(options: DumpOptions) {
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
      // Without an information file nothing lists the files.
      ...(options.infoPath !== null && { onWritten: (path) => this.#info.add(path, options.clock.now()) }),
      onFailed: (error) => this.#fail(error),
      onFailureSettled: () => this.#settleFailure(),
    });
  }

  #become(status: DumpStatus): void {
    this.#status = status;
    const { notices, stream } = this.#options;
    const reason = status === DumpStatus.ERROR ? messageOf(this.#failure) : null;
    postDump(notices, stream.path, { id: this.request.id, state: status.toLowerCase(), reason });
  }

  /** Files are still added. */
  get enabled(): boolean {
    return this.#open;
  }

  /** Resolves when the dump no longer touches any file. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Settles when everything so far is written or has failed. */
  get settled(): Promise<void> {
    return this.#files.settled;
  }

  /** Begins with the newest segments that all tracks have, or waits for the first. Rejects when the first files cannot be written. */
  async start(): Promise<void> {
    const { stream, folder, prepare } = this.#options;
    if (prepare !== undefined) this.#files.enqueue(() => prepare(this));
    const newest = stream.newestSegments();
    this.#first = newest[0]?.number ?? 0;
    stream.observe(this);
    this.#become(DumpStatus.RUNNING);
    this.#logger.info({ folder }, `dump to ${folder}`);
    for (const segment of newest) this.segmentFinished(segment);
    this.#writeInfo();
    await this.settled;
    if (this.#status !== DumpStatus.ERROR) return;
    this.#end('its first files could not be written');
    throw this.#failure;
  }

  segmentFinished(segment: ObservedSegment): void {
    try {
      this.#take(segment);
    } catch (error) {
      // The stream continues without the dump.
      this.#files.enqueue(() => Promise.reject(error));
    }
  }

  #take({ playlist: name, uri, number, init, duration, startTime, discontinuity, tags, read }: ObservedSegment): void {
    if (!this.#open || number < this.#first) return;
    const bytes = read();
    const playlist = this.#playlists.get(name) ?? new DumpPlaylist(name);
    this.#playlists.set(name, playlist);
    const masters = this.#changedMasters();
    const files = this.#files;
    const listed = { uri, init: init?.uri ?? null, duration, startTime, discontinuity, tags };
    let isListed = false;
    const missed = (): void => {
      if (!isListed) playlist.add({ ...listed, gap: true });
      for (const [master] of masters) this.#masters.delete(master);
    };
    files.enqueue(
      async () => {
        if (init !== null && !files.has(init.uri)) await files.write(init.uri, init.bytes);
        await files.write(uri, bytes);
        playlist.add(listed);
        isListed = true;
        await files.replace(name, playlist.text);
        for (const [master, text] of masters) await files.replace(master, text);
        this.#segments += 1;
        if (this.#options.counts !== undefined) this.#options.counts.segments += 1;
      },
      bytes.length,
      missed,
    );
    this.#writeInfo();
  }

  streamEnded(): void {
    this.#end('the stream has ended');
  }

  /** Ends the dump; its files are kept. Resolves when they are complete. Idempotent. */
  stop(): Promise<void> {
    this.#end('it was stopped');
    return this.settled;
  }

  #end(why: string): void {
    if (!this.#open) return;
    this.#open = false;
    this.#options.stream.unobserve(this);
    this.#files.enqueue(async () => {
      // A dump that has failed keeps its status.
      if (this.#status === DumpStatus.RUNNING) this.#become(DumpStatus.COMPLETED);
    });
    this.#writeInfo();
    void this.settled.then(() => {
      this.#letGo();
      if (this.#status === DumpStatus.COMPLETED) this.#logger.info({ segments: this.#segments }, `dump complete: ${why}`);
    });
  }

  get #condition(): string {
    return `dump ${this.#options.folder}`;
  }

  /** Multivariant playlists whose text has changed since the last call, because bit rates became known or tracks came. */
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
    // If this write fails, the next write includes its content.
    if (infoPath !== null)
      this.#files.enqueue(
        () => writeFileAtomic(infoPath, this.#info.text(this.#status)),
        0,
        () => undefined,
      );
  }

  /** The information file gets the new status only if the disk accepts it now. */
  async #pause(error: unknown): Promise<void> {
    this.#failure = error;
    this.#become(DumpStatus.ERROR);
    const { folder, conditions, counts } = this.#options;
    if (counts !== undefined) counts.failures += 1;
    this.#logger.error(
      { err: error, folder },
      `dump paused: ${messageOf(error)}; segments are missing until the disk can be written again`,
    );
    conditions.raise(this.#condition, `a dump misses segments: ${diskFault(error) ?? 'its files cannot be written'}`);
    const { infoPath } = this.#options;
    if (infoPath !== null) await writeFileAtomic(infoPath, this.#info.text(DumpStatus.ERROR)).catch(() => undefined);
  }

  #resume(): void {
    this.#become(DumpStatus.RUNNING);
    this.#failure = null;
    const { folder, conditions } = this.#options;
    this.#logger.info({ folder }, 'dump resumed: the disk can be written again');
    conditions.clear(this.#condition);
  }

  #fail(error: unknown): void {
    const wasOpen = this.#open;
    if (this.#options.counts !== undefined) this.#options.counts.failures += 1;
    this.#open = false;
    this.#failure = error;
    this.#become(DumpStatus.ERROR);
    if (wasOpen) this.#options.stream.unobserve(this);
    this.#logger.error({ err: error }, `dump failed: ${messageOf(error)}`);
  }

  async #settleFailure(): Promise<void> {
    const { infoPath } = this.#options;
    // The failed disk may hold this file too; the failure is already logged.
    if (infoPath !== null) await writeFileAtomic(infoPath, this.#info.text(DumpStatus.ERROR)).catch(() => undefined);
    this.#letGo();
  }

  /** The dump stays listed as long as its stream lives, but the texts of its files are freed. */
  #letGo(): void {
    this.#options.conditions.clear(this.#condition);
    this.#info.clear();
    this.#playlists.clear();
    this.#masters.clear();
    this.#files.forget();
    this.#over.resolve();
  }
}
