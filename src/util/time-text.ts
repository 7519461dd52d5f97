/** A date, or a date with a time and its zone (RFC 3339). */
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/;

/** The time of a text, ms since the epoch; NaN for an invalid text. A date begins at midnight UTC. */
export function timeOf(text: string): number {
  return TIME.test(text) ? Date.parse(text) : Number.NaN;
}
