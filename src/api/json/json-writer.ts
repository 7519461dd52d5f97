/** Writes JSON in the form of this API: compact, members sorted by byte order of their keys, ASCII only. */
import { Real } from '../../monitoring/real.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII is meant
const NON_ASCII = /[^\u0000-\u007f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII is meant
const NON_ASCII_ALL = /[^\u0000-\u007f]/g;

const KEY_TEXTS = new Map<string, string>();
/** Clients choose some keys: this bounds the number and length of remembered keys. */
const MAX_KEYS = 1000;
const MAX_KEY_LENGTH = 64;

const FIRST_PRINTABLE = 0x20;
const LAST_PRINTABLE = 0x7e;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Serialises `value`; undefined members are left out, reals keep their `.0`. */
export function writeJson(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return writeString(value);
    case 'number':
      return Number.isFinite(value) ? String(value) : '0';
    case 'boolean':
      return value ? 'true' : 'false';
    case 'object':
      if (value === null) return 'null';
      if (Array.isArray(value)) return writeArray(value);
      if (value instanceof Real) return value.toString();
      return writeObject(value as Record<string, unknown>);
    default:
      return 'null';
  }
}

/** The text of `writeJson` in pieces, so that its writer can pause: members and items of the upper levels are written one by one. */
export function* jsonPieces(value: unknown, levels = 5): Iterable<string> {
  if (levels === 0 || typeof value !== 'object' || value === null || value instanceof Real) {
    yield writeJson(value);
    return;
  }
  const isList = Array.isArray(value);
  const [open, close] = isList ? '[]' : '{}';
  let before = open;
  for (const key of isList ? value.keys() : sortedKeys(value as Record<string, unknown>)) {
    const member = (value as Record<string | number, unknown>)[key];
    if (member === undefined && !isList) continue;
    yield isList ? `${before}` : `${before}${keyText(`${key}`)}`;
    yield* jsonPieces(member, levels - 1);
    before = ',';
  }
  yield before === open ? `${open}${close}` : `${close}`;
}

function writeString(text: string): string {
  if (isPlain(text)) return `"${text}"`;
  const quoted = JSON.stringify(text);
  return NON_ASCII.test(quoted) ? quoted.replace(NON_ASCII_ALL, escapeUnit) : quoted;
}

/**
 * Whether a text is printable ASCII without quotes and backslashes, so that nothing must be escaped. On short texts a loop is faster than a
 * pattern.
 */
function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < FIRST_PRINTABLE || unit > LAST_PRINTABLE || unit === QUOTE || unit === BACKSLASH) return false;
  }
  return true;
}

/** Works on UTF-16 units, so that a character beyond the BMP becomes its surrogate pair. */
function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function writeArray(items: readonly unknown[]): string {
  let text = '[';
  for (let index = 0; index < items.length; index += 1) {
    if (index > 0) text += ',';
    text += writeJson(items[index]);
  }
  return `${text}]`;
}

function writeObject(object: Readonly<Record<string, unknown>>): string {
  let text = '';
  for (const key of sortedKeys(object)) {
    const value = object[key];
    if (value === undefined) continue;
    text += (text === '' ? '{' : ',') + keyText(key) + writeJson(value);
  }
  return text === '' ? '{}' : `${text}}`;
}

/** `"key":`, from a cache, because nearly all keys are those of this API. */
function keyText(key: string): string {
  const known = KEY_TEXTS.get(key);
  if (known !== undefined) return known;
  const text = `${writeString(key)}:`;
  if (KEY_TEXTS.size < MAX_KEYS && key.length <= MAX_KEY_LENGTH) KEY_TEXTS.set(key, text);
  return text;
}

/** Most objects have their members in order already: checking is cheaper than sorting. */
function sortedKeys(object: Readonly<Record<string, unknown>>): string[] {
  const keys = Object.keys(object);
  for (let index = 1; index < keys.length; index += 1) {
    if ((keys[index - 1] ?? '') > (keys[index] ?? '')) return keys.sort(byteOrder);
  }
  return keys;
}

/** UTF-16 order equals byte order except for characters beyond the BMP, which keys of this API never contain. */
function byteOrder(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
