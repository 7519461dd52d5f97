/** EXT-X-PART-INF (rfc8216bis §4.4.3.7). */
import { seconds } from './attribute-list.ts';

const TAG = '#EXT-X-PART-INF';

/** `partTarget` in seconds. */
export function serializePartInf(partTarget: number): string {
  return `${TAG}:PART-TARGET=${seconds(partTarget)}\n`;
}
