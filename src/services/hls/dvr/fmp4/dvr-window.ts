/** DVR: segments that leave memory go to files and stay listed until `maxDuration` is reached. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Span } from '../../../../delivery/outlet/messages.ts';
import { heldSpans, type SegmentWindow, segmentSpans, type WindowContext } from '../../packager/fmp4/segment-window.ts';
import type { SegmentModel, TrackModel } from '../../view/fmp4/stream-model.ts';
import { type DvrSettings, EXTRA_SEGMENTS } from '../../wire/fmp4/settings.ts';
import type { RunFolder } from '../run-folder.ts';

/** Segments waiting for the disk; more means it cannot keep up. */
const MAX_WRITES = 16;

/** The window owns the folder from here on. */
export interface DvrOptions extends DvrSettings {
  readonly segmentCount: number;
  /** Removed at the end. */
  readonly folder: RunFolder;
}

/** What a window with files needs of its stream beyond one without: the bytes, and a turn of its own to send in. */
export interface DvrContext extends WindowContext {
  read(spans: readonly Span[]): readonly Uint8Array[];
  /** Sends what was emitted outside of a packet's turn. */
  flush(): void;
}

/** The stream closes it; the files go with it, and `settled` tells when. `close` may be called twice. */
export class DvrWindow implements SegmentWindow {
  readonly #options: DvrOptions;
  readonly #context: DvrContext;
  readonly #writing = new Set<SegmentModel>();
  #chain: Promise<void> = Promise.resolve();
  #closed = false;
  /** Segments lost to DVR because the disk failed or could not keep up. */
  failures = 0;

  constructor(options: DvrOptions, context: DvrContext) {
    this.#options = options;
    this.#context = context;
  }

  get settled(): Promise<void> {
    return this.#chain;
  }

  segmentClosed(track: TrackModel): void {
    const inMemory = track.segments.filter(({ duration, path, gap }) => duration !== null && path === null && !gap);
    const kept = this.#context.asksBack(track) ? 1 : this.#options.segmentCount + EXTRA_SEGMENTS - 1;
    for (const segment of inMemory.slice(0, Math.max(0, inMemory.length - kept))) {
      if (!this.#writing.has(segment)) this.#archive(track, segment);
    }
    this.#trim(track);
  }

  forget(track: TrackModel): void {
    const directory = join(this.#options.folder.path, String(track.id));
    const spans = heldSpans(track);
    track.segments.length = 0;
    track.retired = null;
    // Behind the writes that still read what is given back here.
    this.#enqueue(async () => {
      if (!this.#closed) this.#context.release(spans);
      await rm(directory, { recursive: true, force: true });
    });
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#enqueue(() => this.#options.folder.remove());
  }

  #archive(track: TrackModel, segment: SegmentModel): void {
    if (this.#writing.size >= MAX_WRITES) {
      this.#options.folder.complain(new Error('the disk cannot keep up'));
      this.#abandon(track, segment);
      return;
    }
    this.#writing.add(segment);
    this.#enqueue(async () => {
      const written = await this.#write(track, segment);
      this.#writing.delete(segment);
      if (this.#closed) return;
      if (!track.segments.includes(segment)) await rm(written ?? '', { force: true });
      else if (written === null) this.#abandon(track, segment);
      else this.#archived(track, segment, written);
      this.#context.flush();
    });
  }

  /** Path of the written file, or null when that failed. */
  async #write(track: TrackModel, segment: SegmentModel): Promise<string | null> {
    if (this.#closed) return null;
    try {
      return await this.#options.folder.write(`${track.id}/${segment.msn}.m4s`, this.#context.read(segmentSpans(segment)));
    } catch {
      return null;
    }
  }

  #archived(track: TrackModel, segment: SegmentModel, path: string): void {
    const spans = segmentSpans(segment);
    this.#context.emit({ type: 'archive', trackId: track.id, msn: segment.msn, path });
    this.#context.release(spans);
  }

  /** Playlists cannot have holes: everything up to the segment that could not be written goes. */
  #abandon(track: TrackModel, segment: SegmentModel): void {
    this.failures += 1;
    while ((track.segments[0]?.msn ?? Number.POSITIVE_INFINITY) <= segment.msn) this.#retire(track);
  }

  #trim(track: TrackModel): void {
    let total = track.segments.reduce((sum, segment) => sum + (segment.duration ?? 0), 0);
    for (let oldest = track.segments[0]; oldest !== undefined && (oldest.path !== null || oldest.gap); oldest = track.segments[0]) {
      if (total <= this.#options.maxDuration) return;
      total -= oldest.duration ?? 0;
      this.#retire(track);
    }
  }

  #retire(track: TrackModel): void {
    const gone = track.retired;
    const path = gone?.path ?? null;
    if (path !== null) this.#enqueue(() => rm(path, { force: true }));
    else if (gone !== null) this.#context.release(segmentSpans(gone));
    this.#context.emit({ type: 'retire', trackId: track.id });
  }

  /** One file operation after the other; failures are the operation's own business. */
  #enqueue(operation: () => Promise<void>): void {
    this.#chain = this.#chain.then(operation).catch(() => {
      this.failures += 1;
    });
  }
}
