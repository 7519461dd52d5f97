/** Escapes that the server decodes: those of characters beyond ASCII. */
const DECODED = /%[89a-f][0-9a-f]/i;
/** Characters that a path must escape. A slash would end the name, and everything from `?` or `#` on is no path. */
const ESCAPED = /[^!$%&'()*+,\-.0-9:;=@A-Z_a-z~[\]|]/gu;

/**
 * A path of the API with its names and query put in. The server takes names as they stand in the path, so only what cannot stand there is
 * escaped. Throws TypeError for a name that no path can hold.
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
  // Behind the name of an application an action begins with it.
  return key === 'app' ? escaped.replaceAll(':', '%3A') : escaped;
}
