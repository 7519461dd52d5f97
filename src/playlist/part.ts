/** EXT-X-PART (rfc8216bis §4.4.4.9). */
import { quoted, seconds } from './attribute-list.ts';

const TAG = '#EXT-X-PART';

/** One partial segment. */
export interface PartTag {
  /** Seconds. */
  readonly duration: number;
  readonly uri: string;
  /** Holds a frame that can be decoded without others. */
  readonly independent: boolean;
}

/** The whole line. */
export function serializePart(part: PartTag): string {
  return `${TAG}:DURATION=${seconds(part.duration)},URI=${quoted(part.uri)}${part.independent ? ',INDEPENDENT=YES' : ''}\n`;
}
