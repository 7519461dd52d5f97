/** The wildcard patterns of host names and origins: `*` any text, `?` zero or one character, all else literal. */

/** Longer texts match no pattern with wildcards but a single `*`, because patterns are compared with what peers send. */
const MAX_TEXT_LENGTH = 1024;

const STAR = 0x2a;
const QUESTION = 0x3f;

/**
 * Compiles `pattern` into a test of whole strings, case-sensitive. Matching takes at most
 * pattern length × text length steps, whatever a peer sends (no regular expression, no backtracking).
 */
export function compileWildcard(pattern: string): (text: string) => boolean {
  if (pattern === '*') return () => true;
  if (!pattern.includes('*') && !pattern.includes('?')) return (text) => text === pattern;
  return (text) => text.length <= MAX_TEXT_LENGTH && matches(pattern, text);
}

/** Keeps all positions in `pattern` that the text so far can have reached. */
function matches(pattern: string, text: string): boolean {
  const size = pattern.length + 1;
  let reached = new Uint8Array(size);
  let next = new Uint8Array(size);
  reached[0] = 1;
  skipOptional(pattern, reached);
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    next.fill(0);
    let alive = false;
    for (let place = 0; place < pattern.length; place += 1) {
      if (reached[place] === 0) continue;
      const wanted = pattern.charCodeAt(place);
      if (wanted === STAR) next[place] = 1;
      else if (wanted === QUESTION || wanted === code) next[place + 1] = 1;
      else continue;
      alive = true;
    }
    if (!alive) return false;
    skipOptional(pattern, next);
    [reached, next] = [next, reached];
  }
  return reached[pattern.length] === 1;
}

/** Both wildcards may match nothing, so a position before a wildcard also reaches the position after it. */
function skipOptional(pattern: string, reached: Uint8Array): void {
  for (let place = 0; place < pattern.length; place += 1) {
    const wanted = pattern.charCodeAt(place);
    if (reached[place] === 1 && (wanted === STAR || wanted === QUESTION)) reached[place + 1] = 1;
  }
}
