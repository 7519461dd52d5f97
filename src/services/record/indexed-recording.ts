import type { RecordContainerName } from './record-container.ts';

/** A finished file. Times are ms since the epoch. */
export interface IndexedRecording {
  /** Unguessable. */
  readonly key: string;
  readonly vhost: string;
  readonly app: string;
  /** Name of the output stream. */
  readonly stream: string;
  /** Id of the task. */
  readonly task: string;
  /** Absolute. */
  readonly path: string;
  /** The `RootPath` that it lies in; null for none. */
  readonly root: string | null;
  readonly container: RecordContainerName;
  readonly bytes: number;
  readonly startTime: number;
  /** Media in it, ms. */
  readonly durationMs: number;
  /** Inode of the file, compared together with its size, because the name and the number may be reused. */
  readonly inode: string;
  /** When it was written last, ms. */
  readonly writtenAt: number;
}
