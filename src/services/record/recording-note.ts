/** A recording's note in the state folder while its file is not finished. */
import type { PathValues } from './record-path.ts';

/** Everything needed to finish a file without the process that began it. Paths are absolute templates with macros. */
export interface RecordingNote {
  /** Key of the task, whose totals include files finished at the next start. */
  readonly task: string;
  /** The file that is being written. */
  readonly temporary: string;
  /** The `RootPath` that it must not leave; null for none, and missing in notes of earlier versions. */
  readonly root?: string | null;
  readonly filePath: string;
  readonly infoPath: string;
  /** Wall clock of its first frame, ms since the epoch; the start time in `values` is later by the media that waited. Missing in old notes. */
  readonly mediaStart?: number;
  readonly values: Omit<PathValues, 'endTime'>;
  readonly metadata: string;
  /** ms since the epoch. */
  readonly createdTime: number;
  /** Inode of the file, by which it is found under another name; missing until the file is made. */
  readonly inode?: string;
  /** Path of a file that was renamed before it was finalised; null while it has its temporary name. */
  readonly moved: string | null;
}

/**
 * Parses a note of the state folder; null if it is invalid. Notes of earlier versions name no task, but their files are finished all the
 * same.
 */
export function parseRecordingNote(value: unknown): RecordingNote | null {
  return isNote(value) ? { ...value, task: value.task ?? '' } : null;
}

function isNote(value: unknown): value is Omit<RecordingNote, 'task'> & { readonly task?: string } {
  if (typeof value !== 'object' || value === null) return false;
  const { task, temporary, root, inode, filePath, infoPath, values, metadata, createdTime, moved, mediaStart } = value as Record<
    string,
    unknown
  >;
  const texts = [task ?? '', root ?? '', inode ?? '', temporary, filePath, infoPath, metadata].every((text) => typeof text === 'string');
  return (
    texts &&
    typeof values === 'object' &&
    values !== null &&
    typeof createdTime === 'number' &&
    (mediaStart === undefined || typeof mediaStart === 'number') &&
    (moved === null || typeof moved === 'string')
  );
}
