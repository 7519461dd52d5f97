/** Attribute lists of playlist tags (rfc8216bis §4.2). */
import { ProtocolError } from '../util/protocol-error.ts';

/** `NAME=value` pairs; quoted strings are stored without quotes. */
export type AttributeList = ReadonlyMap<string, string>;

const ATTRIBUTE = /([A-Z0-9-]+)=("([^"\r\n]*)"|[^",\s][^,]*)(?:,|$)/y;

/** Reads an attribute list. Throws `ProtocolError` on anything the grammar does not have. */
export function parseAttributeList(text: string): AttributeList {
  const attributes = new Map<string, string>();
  ATTRIBUTE.lastIndex = 0;
  let offset = 0;
  while (offset < text.length) {
    const match = ATTRIBUTE.exec(text);
    const name = match?.[1];
    if (match === null || name === undefined) throw new ProtocolError('M3U8_ATTRIBUTE', `cannot read the attribute list ${text}`, offset);
    if (attributes.has(name)) throw new ProtocolError('M3U8_ATTRIBUTE', `${name} appears twice in ${text}`, offset);
    attributes.set(name, match[3] ?? match[2] ?? '');
    offset = ATTRIBUTE.lastIndex;
  }
  return attributes;
}

/** The attribute `name`. Throws `ProtocolError` when it is missing. */
export function requireAttribute(attributes: AttributeList, tag: string, name: string): string {
  const value = attributes.get(name);
  if (value === undefined) throw new ProtocolError('M3U8_ATTRIBUTE', `${tag} needs ${name}`);
  return value;
}

/** The decimal attribute `name`. Throws `ProtocolError` when it is missing or not a decimal number. */
export function requireDecimal(attributes: AttributeList, tag: string, name: string): number {
  return parseDecimal(requireAttribute(attributes, tag, name), `${tag} ${name}`);
}

/** Reads a decimal-floating-point or decimal-integer; `what` names it in the error. */
export function parseDecimal(text: string, what: string): number {
  if (!/^\d+(\.\d*)?$/.test(text)) throw new ProtocolError('M3U8_NUMBER', `${what} must be a decimal number, not "${text}"`);
  return Number(text);
}

/** A quoted string cannot hold quotes or line breaks: they are replaced. */
export function quoted(text: string): string {
  return `"${text.replace(/["\r\n]/g, "'")}"`;
}

/** Seconds as the reference prints them: six decimals. */
export function seconds(value: number): string {
  return value.toFixed(6);
}
