/** The path of a request as this API matches it: raw, never percent-decoded. */

const ABSOLUTE_FORM = /^https?:\/\/[^/?#]*/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII is meant
const NON_ASCII = /[^\u0000-\u007f]/;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Takes the path out of a request target (origin or absolute form, one character per byte as node delivers it),
 * without the query; null when it is not a path or not UTF-8.
 */
export function rawPath(target: string): string | null {
  const relative = target.startsWith('/') ? target : target.replace(ABSOLUTE_FORM, '');
  if (!relative.startsWith('/')) return relative === '' && target !== '' ? '/' : null;
  const query = relative.indexOf('?');
  const path = query < 0 ? relative : relative.slice(0, query);
  if (!NON_ASCII.test(path)) return path;
  try {
    return utf8.decode(Buffer.from(path, 'latin1'));
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}
