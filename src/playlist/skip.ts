/** EXT-X-SKIP of delta updates (rfc8216bis §4.4.5.2). */
import { parseAttributeList, requireDecimal } from './attribute-list.ts';

const TAG = '#EXT-X-SKIP';

/** The whole line; it stands for the oldest segments of the playlist. */
export function serializeSkip(skippedSegments: number): string {
  return `${TAG}:SKIPPED-SEGMENTS=${skippedSegments}\n`;
}

/** Reads the text after the colon: the number of segments left out. */
export function parseSkip(text: string): number {
  return requireDecimal(parseAttributeList(text), TAG, 'SKIPPED-SEGMENTS');
}
