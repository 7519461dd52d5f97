/** One dump of plain HLS: keeps the segments and playlists of a stream as files in a folder. */
import type { Clock } from '../../../../util/clock.ts';
import type { Conditions } from '../../../../util/conditions.ts';
import type { Logger } from '../../../../util/logger.ts';
import type { HlsStream } from '../../packager/ts/hls-stream.ts';
import type { SegmentObserver } from '../../packager/ts/segment-observer.ts';
import { mediaPlaylistName, segmentName } from '../../view/ts/playlist-text.ts';
import type { HlsSegment } from '../../wire/ts/updates.ts';
import { DumpFolder } from '../dump-folder.ts';
import { dumpCondition, tellPause, tellResumption } from '../dump-pause.ts';
import { DumpPlaylist } from '../dump-playlist.ts';
import type { FolderWriter } from '../folder-claims.ts';

/** What a dump is made of. A `prepare` that rejects ends it before its first file. */
export interface TsDumpOptions {
  readonly stream: HlsStream;
  /** Absolute. */
  readonly folder: string;
  /** Makes the folder. */
  readonly prepare: (dump: TsDump) => Promise<void>;
  /** Multivariant playlists to keep, with `.m3u8`; [] for all. */
  readonly playlists: readonly string[];
  readonly clock: Clock;
  /** Is told while the disk refuses files. */
  readonly conditions: Conditions;
  readonly logger: Logger;
}

/** Follows the stream from when it is made until that ends. */
export class TsDump implements SegmentObserver, FolderWriter {
  readonly #options: TsDumpOptions;
  readonly #files: DumpFolder;
  /** Media playlists by variant. */
  readonly #media = new Map<string, DumpPlaylist>();
  /** Texts of multivariant playlists as they were written last. */
  readonly #masters = new Map<string, string>();
  readonly #over = Promise.withResolvers<void>();
  #segments = 0;
  #failed = false;
  #ended = false;

  constructor(options: TsDumpOptions) {
    const { folder, prepare, stream, clock, logger } = options;
    this.#options = options;
    this.#files = new DumpFolder({
      path: folder,
      clock,
      onPaused: (error) => this.#pause(error),
      onResumed: () => this.#resume(),
      onFailed: (error) => this.#fail(error),
      onFailureSettled: () => this.#over.resolve(),
    });
    this.#files.enqueue(() => prepare(this));
    logger.info({ folder }, `dump to ${folder}`);
    stream.observe(this);
  }

  /** Files are still added. */
  get enabled(): boolean {
    return !this.#ended && !this.#failed;
  }

  /** Resolves when no file will be touched any more. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  segmentFinished(variant: string, segment: HlsSegment, read: () => Buffer): void {
    try {
      this.#take(variant, segment, read);
    } catch (error) {
      // The stream goes on without the dump.
      this.#files.enqueue(() => Promise.reject(error));
    }
  }

  #take(variant: string, segment: HlsSegment, read: () => Buffer): void {
    const { stream, playlists } = this.#options;
    const { number, duration, wallClock, discontinuity } = segment;
    const bytes = read();
    const media = this.#media.get(variant) ?? new DumpPlaylist(mediaPlaylistName(variant));
    this.#media.set(variant, media);
    const masters = stream.plainMultivariants(playlists).filter(([name, text]) => this.#masters.get(name) !== text);
    for (const [name, text] of masters) this.#masters.set(name, text);
    const files = this.#files;
    const uri = segmentName(variant, number);
    const listed = { uri, init: null, duration, startTime: wallClock, discontinuity };
    let isListed = false;
    const missed = (): void => {
      if (!isListed) media.add({ ...listed, gap: true });
      for (const [name] of masters) this.#masters.delete(name);
    };
    files.enqueue(
      async () => {
        await files.write(uri, bytes);
        media.add(listed);
        isListed = true;
        await files.replace(media.uri, media.text);
        for (const [name, text] of masters) await files.replace(name, text);
        this.#segments += 1;
      },
      bytes.length,
      missed,
    );
  }

  /** Idempotent. */
  streamEnded(): void {
    const { stream, logger } = this.#options;
    if (this.#ended) return;
    this.#ended = true;
    stream.unobserve(this);
    void this.#files.settled.then(() => {
      this.#options.conditions.clear(this.#condition);
      this.#over.resolve();
      if (!this.#failed) logger.info({ segments: this.#segments }, 'dump complete: the stream has ended');
    });
  }

  get #condition(): string {
    return dumpCondition(this.#options.folder);
  }

  #pause(error: unknown): void {
    tellPause(this.#options, error);
  }

  #resume(): void {
    tellResumption(this.#options);
  }

  #fail(error: unknown): void {
    const { stream, logger } = this.#options;
    this.#options.conditions.clear(this.#condition);
    this.#failed = true;
    stream.unobserve(this);
    logger.error({ err: error }, `dump failed: ${error instanceof Error ? error.message : String(error)}`);
  }
}
