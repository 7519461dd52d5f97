/**
 * Reads JSON as leniently as the clients of this API expect: comments, trailing commas, a byte order mark and text after the first value
 * are accepted. Depth is bounded; the caller bounds the size.
 */
import type { JsonValue } from './json-value.ts';

/** Deepest nesting accepted. */
export const MAX_JSON_DEPTH = 1000;

/** The text is not JSON. `message` is several lines with the position and the reason. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

const Char = {
  TAB: 9,
  LINE_FEED: 10,
  CARRIAGE_RETURN: 13,
  SPACE: 32,
  QUOTE: 34,
  STAR: 42,
  COMMA: 44,
  MINUS: 45,
  SLASH: 47,
  ZERO: 48,
  NINE: 57,
  COLON: 58,
  OPEN_BRACKET: 91,
  BACKSLASH: 92,
  CLOSE_BRACKET: 93,
  SMALL_U: 117,
  OPEN_BRACE: 123,
  CLOSE_BRACE: 125,
  BYTE_ORDER_MARK: 0xfeff,
} as const;

/** Values from this depth on are read in one step. */
const STEP_DEPTH = 4;
const NAME_EXPECTED = "Missing '}' or object member name";
const MEMBER_END_EXPECTED = "Missing ',' or '}' in object declaration";
const ITEM_END_EXPECTED = "Missing ',' or ']' in array declaration";
const VALUE_EXPECTED = 'Syntax error: value, object or array expected.';
const NUMBER = /-?[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?/y;
const HEX_4 = /^[0-9a-fA-F]{4}$/;
const ESCAPES: Readonly<Record<string, string>> = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const LITERALS: readonly (readonly [string, JsonValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];

/**
 * Parses the first JSON value of `text`. Duplicate keys: the last wins.
 * @throws JsonSyntaxError
 */
export function readJson(text: string): JsonValue {
  return new Reader(text).document();
}

/** `readJson` in steps: each value of the upper levels is one. */
export function jsonSteps(text: string): Generator<void, JsonValue> {
  return new Reader(text).documentSteps();
}

type Members = { [key: string]: JsonValue };

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    if (text.charCodeAt(0) === Char.BYTE_ORDER_MARK) this.#at = 1;
  }

  document(): JsonValue {
    return this.#value(0);
  }

  documentSteps(): Generator<void, JsonValue> {
    return this.#valueSteps(0);
  }

  #value(depth: number): JsonValue {
    this.#skipBlanks(VALUE_EXPECTED);
    if (depth > MAX_JSON_DEPTH) throw this.#fault(this.#at, `Nesting is deeper than ${MAX_JSON_DEPTH} levels.`);
    const char = this.#text.charCodeAt(this.#at);
    if (char === Char.OPEN_BRACE) return this.#object(depth);
    if (char === Char.OPEN_BRACKET) return this.#array(depth);
    if (char === Char.QUOTE) return this.#string(VALUE_EXPECTED);
    if (char === Char.MINUS || (char >= Char.ZERO && char <= Char.NINE)) return this.#number();
    for (const [word, value] of LITERALS) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    throw this.#fault(this.#at, VALUE_EXPECTED);
  }

  #object(depth: number): JsonValue {
    const object: Members = {};
    this.#at += 1;
    while (this.#opensItem(Char.CLOSE_BRACE, NAME_EXPECTED)) {
      const name = this.#memberName();
      setMember(object, name, this.#value(depth + 1));
      if (this.#endsAfterItem(Char.CLOSE_BRACE, MEMBER_END_EXPECTED)) break;
    }
    return object;
  }

  #array(depth: number): JsonValue[] {
    const array: JsonValue[] = [];
    this.#at += 1;
    while (this.#opensItem(Char.CLOSE_BRACKET, VALUE_EXPECTED)) {
      array.push(this.#value(depth + 1));
      if (this.#endsAfterItem(Char.CLOSE_BRACKET, ITEM_END_EXPECTED)) break;
    }
    return array;
  }

  *#valueSteps(depth: number): Generator<void, JsonValue> {
    this.#skipBlanks(VALUE_EXPECTED);
    const char = this.#text.charCodeAt(this.#at);
    if (char === Char.OPEN_BRACE) return yield* this.#objectSteps(depth);
    if (char === Char.OPEN_BRACKET) return yield* this.#arraySteps(depth);
    return this.#value(depth);
  }

  *#objectSteps(depth: number): Generator<void, JsonValue> {
    const object: Members = {};
    this.#at += 1;
    while (this.#opensItem(Char.CLOSE_BRACE, NAME_EXPECTED)) {
      const name = this.#memberName();
      setMember(object, name, depth + 1 < STEP_DEPTH ? yield* this.#valueSteps(depth + 1) : this.#value(depth + 1));
      yield;
      if (this.#endsAfterItem(Char.CLOSE_BRACE, MEMBER_END_EXPECTED)) break;
    }
    return object;
  }

  *#arraySteps(depth: number): Generator<void, JsonValue[]> {
    const array: JsonValue[] = [];
    this.#at += 1;
    while (this.#opensItem(Char.CLOSE_BRACKET, VALUE_EXPECTED)) {
      array.push(depth + 1 < STEP_DEPTH ? yield* this.#valueSteps(depth + 1) : this.#value(depth + 1));
      yield;
      if (this.#endsAfterItem(Char.CLOSE_BRACKET, ITEM_END_EXPECTED)) break;
    }
    return array;
  }

  /** Whether an item begins here; a closing character is read. */
  #opensItem(close: number, complaint: string): boolean {
    this.#skipBlanks(complaint);
    if (this.#text.charCodeAt(this.#at) !== close) return true;
    this.#at += 1;
    return false;
  }

  /** The name of a member with its colon. */
  #memberName(): string {
    if (this.#text.charCodeAt(this.#at) !== Char.QUOTE) throw this.#fault(this.#at, NAME_EXPECTED);
    const name = this.#string(NAME_EXPECTED);
    this.#expect(Char.COLON, "Missing ':' after object member name");
    return name;
  }

  /** Reads the comma (false) or the closing character (true) after an item. */
  #endsAfterItem(close: number, complaint: string): boolean {
    this.#skipBlanks(complaint);
    const char = this.#text.charCodeAt(this.#at);
    if (char !== close && char !== Char.COMMA) throw this.#fault(this.#at, complaint);
    this.#at += 1;
    return char === close;
  }

  #expect(char: number, complaint: string): void {
    this.#skipBlanks(complaint);
    if (this.#text.charCodeAt(this.#at) !== char) throw this.#fault(this.#at, complaint);
    this.#at += 1;
  }

  #number(): number {
    NUMBER.lastIndex = this.#at;
    const token = NUMBER.exec(this.#text)?.[0] ?? '';
    const value = Number(token);
    if (!Number.isFinite(value)) throw this.#fault(this.#at, `'${token}' is not a number.`);
    this.#at += token.length;
    return value;
  }

  /** `complaint` is the error text for an unterminated string. */
  #string(complaint: string): string {
    const start = this.#at;
    let text = '';
    let copied = start + 1;
    for (let at = copied; at < this.#text.length; at += 1) {
      const char = this.#text.charCodeAt(at);
      if (char === Char.QUOTE) {
        this.#at = at + 1;
        return text + this.#text.slice(copied, at);
      }
      if (char !== Char.BACKSLASH) continue;
      text += this.#text.slice(copied, at);
      if (this.#text.charCodeAt(at + 1) === Char.SMALL_U) {
        const character = this.#unicodeEscape(start, at);
        text += character;
        at += character.length * 6 - 1;
      } else {
        text += this.#simpleEscape(start, at);
        at += 1;
      }
      copied = at + 1;
    }
    throw this.#fault(start, complaint);
  }

  #simpleEscape(start: number, at: number): string {
    const escaped = ESCAPES[this.#text.charAt(at + 1)];
    if (escaped === undefined) throw this.#fault(start, 'Bad escape sequence in string', at);
    return escaped;
  }

  /** One `\uXXXX`, or both of a surrogate pair. */
  #unicodeEscape(start: number, at: number): string {
    const first = this.#hexUnit(start, at);
    if (first < 0xd800 || first > 0xdfff) return String.fromCharCode(first);
    const isPair = first < 0xdc00 && this.#text.startsWith('\\u', at + 6);
    const second = isPair ? this.#hexUnit(start, at + 6) : 0;
    if (second < 0xdc00 || second > 0xdfff) throw this.#fault(start, 'Bad unicode escape sequence in string: surrogate pair expected.', at);
    return String.fromCharCode(first, second);
  }

  #hexUnit(start: number, at: number): number {
    const digits = this.#text.slice(at + 2, at + 6);
    if (!HEX_4.test(digits)) throw this.#fault(start, 'Bad unicode escape sequence in string: four hexadecimal digits expected.', at);
    return Number.parseInt(digits, 16);
  }

  /** Skips white space and comments; a comment without an end is reported as `complaint`. */
  #skipBlanks(complaint: string): void {
    while (this.#at < this.#text.length) {
      const char = this.#text.charCodeAt(this.#at);
      if (char === Char.SPACE || char === Char.TAB || char === Char.LINE_FEED || char === Char.CARRIAGE_RETURN) this.#at += 1;
      else if (char === Char.SLASH) this.#skipComment(complaint);
      else return;
    }
  }

  #skipComment(complaint: string): void {
    const next = this.#text.charCodeAt(this.#at + 1);
    if (next === Char.STAR) {
      const end = this.#text.indexOf('*/', this.#at + 2);
      if (end < 0) throw this.#fault(this.#at, complaint);
      this.#at = end + 2;
    } else if (next === Char.SLASH) {
      const end = this.#text.indexOf('\n', this.#at + 2);
      this.#at = end < 0 ? this.#text.length : end + 1;
    } else {
      throw this.#fault(this.#at, complaint);
    }
  }

  #fault(at: number, reason: string, detailAt?: number): JsonSyntaxError {
    const detail = detailAt === undefined ? '' : `See ${this.#position(detailAt)} for detail.\n`;
    return new JsonSyntaxError(`* ${this.#position(at)}\n  ${reason}\n${detail}`);
  }

  #position(at: number): string {
    const before = this.#text.slice(0, at);
    const lines = before.split(/\r\n|\r|\n/);
    return `Line ${lines.length}, Column ${(lines.at(-1)?.length ?? 0) + 1}`;
  }
}

/** A member named `__proto__` is set as a member, not as the prototype. */
function setMember(object: Members, name: string, value: JsonValue): void {
  if (name === '__proto__') Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  else object[name] = value;
}
