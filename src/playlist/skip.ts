/** EXT-X-SKIP of delta updates (rfc8216bis §4.4.5.2). */

const TAG = '#EXT-X-SKIP';

/** The whole line; it stands for the oldest segments of the playlist. */
export function serializeSkip(skippedSegments: number): string {
  return `${TAG}:SKIPPED-SEGMENTS=${skippedSegments}\n`;
}
