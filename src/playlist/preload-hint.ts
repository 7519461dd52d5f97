/** EXT-X-PRELOAD-HINT (rfc8216bis §4.4.5.3). */
import { quoted } from './attribute-list.ts';

const TAG = '#EXT-X-PRELOAD-HINT';

/** A resource the server expects to list next. */
export interface PreloadHint {
  readonly type: 'PART' | 'MAP';
  readonly uri: string;
}

/** The whole line; the hint is for the whole resource, never for a byte range. */
export function serializePreloadHint(hint: PreloadHint): string {
  return `${TAG}:TYPE=${hint.type},URI=${quoted(hint.uri)}\n`;
}
