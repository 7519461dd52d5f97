/** EXT-X-GAP (rfc8216bis §4.4.4.7): the segment it stands before is not there, and players should not ask for it. */

export const GAP_TAG = '#EXT-X-GAP';
export const GAP = `${GAP_TAG}\n`;
