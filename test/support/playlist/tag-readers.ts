/** Reads the values of playlist tags (rfc8216bis §4.4), to judge what the server wrote. */
import type { PartTag, PreloadHint, RenditionReport, ServerControl } from '../../../src/playlist/media-tags.ts';
import { ProtocolError } from '../../../src/util/protocol-error.ts';

/** `NAME=value` pairs; quoted strings are stored without quotes. */
export type AttributeList = ReadonlyMap<string, string>;

const ATTRIBUTE = /([A-Z0-9-]+)=("([^"\r\n]*)"|[^",\s][^,]*)(?:,|$)/y;

/** Reads an attribute list. Throws `ProtocolError` for a violation of the grammar. */
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

/** Reads the text after the colon of EXT-X-MEDIA. Throws if a required attribute is missing. */
export function parseMedia(text: string): AttributeList {
  const attributes = parseAttributeList(text);
  for (const name of ['TYPE', 'GROUP-ID', 'NAME']) requireAttribute(attributes, '#EXT-X-MEDIA', name);
  return attributes;
}

/** Reads the text after the colon of EXT-X-PART-INF: PART-TARGET in seconds. */
export function parsePartInf(text: string): number {
  return requireDecimal(parseAttributeList(text), '#EXT-X-PART-INF', 'PART-TARGET');
}

/** Reads the text after the colon of EXT-X-PART. */
export function parsePart(text: string): PartTag {
  const attributes = parseAttributeList(text);
  return {
    duration: requireDecimal(attributes, '#EXT-X-PART', 'DURATION'),
    uri: requireAttribute(attributes, '#EXT-X-PART', 'URI'),
    independent: attributes.get('INDEPENDENT') === 'YES',
  };
}

/** Reads the text after the colon of EXT-X-PRELOAD-HINT. */
export function parsePreloadHint(text: string): PreloadHint {
  const attributes = parseAttributeList(text);
  const type = requireAttribute(attributes, '#EXT-X-PRELOAD-HINT', 'TYPE');
  return { type: type === 'MAP' ? 'MAP' : 'PART', uri: requireAttribute(attributes, '#EXT-X-PRELOAD-HINT', 'URI') };
}

/** Reads the text after the colon of EXT-X-PROGRAM-DATE-TIME: ms since the epoch. */
export function parseProgramDateTime(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new ProtocolError('M3U8_DATE', `#EXT-X-PROGRAM-DATE-TIME must be an ISO 8601 date, not "${text}"`);
  return time;
}

/** Reads the text after the colon of EXT-X-RENDITION-REPORT. */
export function parseRenditionReport(text: string): RenditionReport {
  const attributes = parseAttributeList(text);
  return {
    uri: requireAttribute(attributes, '#EXT-X-RENDITION-REPORT', 'URI'),
    lastMsn: requireDecimal(attributes, '#EXT-X-RENDITION-REPORT', 'LAST-MSN'),
    lastPart: attributes.has('LAST-PART') ? requireDecimal(attributes, '#EXT-X-RENDITION-REPORT', 'LAST-PART') : null,
  };
}

/** Reads the text after the colon of EXT-X-SERVER-CONTROL. */
export function parseServerControl(text: string): ServerControl {
  const attributes = parseAttributeList(text);
  const decimal = (name: string): number | null => {
    const value = attributes.get(name);
    return value === undefined ? null : parseDecimal(value, `#EXT-X-SERVER-CONTROL ${name}`);
  };
  return {
    canBlockReload: attributes.get('CAN-BLOCK-RELOAD') === 'YES',
    canSkipUntil: decimal('CAN-SKIP-UNTIL'),
    holdBack: decimal('HOLD-BACK'),
    partHoldBack: decimal('PART-HOLD-BACK'),
  };
}

/** Reads the text after the colon of EXT-X-SKIP: the number of segments left out. */
export function parseSkip(text: string): number {
  return requireDecimal(parseAttributeList(text), '#EXT-X-SKIP', 'SKIPPED-SEGMENTS');
}

/** Reads the text after the colon of EXT-X-STREAM-INF. Throws if BANDWIDTH is missing. */
export function parseStreamInf(text: string): AttributeList {
  const attributes = parseAttributeList(text);
  requireDecimal(attributes, '#EXT-X-STREAM-INF', 'BANDWIDTH');
  return attributes;
}
