/**
 * Finds the known name that a misspelt name probably meant. Plain JavaScript: `command-line.js` reads it before there is a place to keep compiled
 * TypeScript.
 */

/** Shorter names resemble too many others. */
const MIN_LENGTH = 4;
/** A slip is a character too many, missing or wrong, or two swapped neighbours. */
const MAX_SLIPS = 2;
/** In shorter names only one slip is allowed. */
const SHORT = 6;
/** Longer names are not compared, because the time is quadratic. */
const MAX_LENGTH = 64;

/**
 * The known name that differs from `name` in case only, otherwise the one with the fewest slips, two at most, one in a short name; undefined: none.
 * @param {string} name
 * @param {Iterable<string>} known
 * @returns {string | undefined}
 */
export function similarName(name, known) {
  const written = name.toLowerCase();
  const isComparable = written.length >= MIN_LENGTH && written.length <= MAX_LENGTH;
  /** @type {string | undefined} */
  let best;
  let fewest = (written.length < SHORT ? 1 : MAX_SLIPS) + 1;
  for (const candidate of known) {
    const other = candidate.toLowerCase();
    if (other === written) return candidate;
    if (!isComparable || other.length < MIN_LENGTH || Math.abs(other.length - written.length) > MAX_SLIPS) continue;
    const slips = slipsBetween(written, other);
    if (slips < fewest) [best, fewest] = [candidate, slips];
  }
  return best;
}

/**
 * ` (did you mean SegmentCount?)`, to stand behind a name that is none of the known; empty if none is similar.
 * @param {string} name
 * @param {Iterable<string>} known
 * @returns {string}
 */
export function didYouMean(name, known) {
  const similar = similarName(name, known);
  return similar === undefined ? '' : ` (did you mean ${similar}?)`;
}

/**
 * Optimal string alignment distance.
 * @param {string} one
 * @param {string} other
 * @returns {number}
 */
function slipsBetween(one, other) {
  /** @type {number[]} */
  let beforeLast = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      let slips = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1])
        slips = Math.min(slips, (beforeLast[j - 2] ?? 0) + 1);
      row.push(slips);
    }
    [beforeLast, last] = [last, row];
  }
  return last[other.length] ?? 0;
}
