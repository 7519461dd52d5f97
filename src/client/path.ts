/** Escapes that the server decodes: those of characters beyond ASCII. */
const DECODED = /%[89a-f][0-9a-f]/i;
/** Characters that a path must escape. A slash would end the name, and a path ends at `?` or `#`. */
const ESCAPED = /[^!$%&'()*+,\-.0-9:;=@A-Z_a-z~[\]|]/gu;

/**
 * A path of the API with names and query filled in. The server does not decode names in paths, so only forbidden characters are
 * escaped. Throws TypeError for a name that fits into no path.
 */
export function pathWith(
  pattern: string,
  names: Readonly<Record<string, string>> = {},
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const path = pattern.replace(/\{(\w+)\}/g, (_place, key: string) => segmentOf(key, names[key]));
  const given = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

function segmentOf(key: string, name: string | undefined): string {
  if (name === undefined || name === '') throw new TypeError(`The path needs a name for {${key}}`);
  if (/^(?:\.|%2e){1,2}$/i.test(name) || DECODED.test(name) || !name.isWellFormed()) {
    throw new TypeError(`No path of the API can hold '${name}' as {${key}}`);
  }
  const escaped = name.replace(ESCAPED, (character) => encodeURIComponent(character));
  // After the name of an application, a colon would start an action.
  return key === 'app' ? escaped.replaceAll(':', '%3A') : escaped;
}
