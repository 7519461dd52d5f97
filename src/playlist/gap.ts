/** EXT-X-GAP (rfc8216bis §4.4.4.7): the segment it stands before is not there, and players should not ask for it. */

/** The tag as readers find it; it has no value. */
export const GAP_TAG = '#EXT-X-GAP';
/** The whole line as writers put it before the segment's URI. */
export const GAP = `${GAP_TAG}\n`;
