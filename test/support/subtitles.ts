import { type FileCue, SubtitleFile } from '../../src/containers/webvtt/subtitle-file.ts';

/** All cues of a file. */
export function readSubtitleFile(bytes: Uint8Array): readonly FileCue[] {
  const file = new SubtitleFile(bytes);
  while (file.readOn()) {
    // `readOn` collects the cues.
  }
  return file.cues;
}
