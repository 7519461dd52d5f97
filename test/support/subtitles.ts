import { type FileCue, SubtitleFile } from '../../src/containers/webvtt/subtitle-file.ts';

/** The cues of a file, read at once. */
export function readSubtitleFile(bytes: Uint8Array): readonly FileCue[] {
  const file = new SubtitleFile(bytes);
  while (file.readOn()) {
    // All of it.
  }
  return file.cues;
}
