/**
 * The lines of a session description (RFC 8866), which begins with `v=`: the session part before the first m-line, and each m-line with its
 * attributes. WebRTC and RTSP interpret the attributes.
 */
import { ProtocolError } from '../../util/protocol-error.ts';

const MAX_MEDIA = 32;
/** Limit of attributes of one m-line, and of the session: browsers send a few hundred. */
const MAX_ATTRIBUTES = 1024;

/** One `a=` line; the value is empty if there is no colon. */
export interface SdpAttribute {
  readonly name: string;
  readonly value: string;
}

/** The session part of a description, or an m-line. */
export interface SdpSection {
  /** Number of its first line, from 1. */
  readonly line: number;
  /** Text after `v=` or `m=`. */
  readonly head: string;
  readonly attributes: readonly SdpAttribute[];
  /** Value of `b=AS:`, kbit/s; undefined without one. */
  readonly bandwidth: string | undefined;
}

/** Handling of lines without the form `x=…`: browsers send none, cameras do. */
export type StrayLines = 'refuse' | 'skip';

type OpenSection = { -readonly [Key in keyof SdpSection]: SdpSection[Key] } & { readonly attributes: SdpAttribute[] };

/**
 * The session part, then the m-lines; empty if the text does not begin with `v=`. Throws `ProtocolError`; `offset` is the number of the
 * line, from 1.
 */
export function splitSections(text: string, stray: StrayLines): SdpSection[] {
  const sections: OpenSection[] = [];
  let line = 0;
  for (const raw of text.split('\n')) {
    line += 1;
    const entry = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    const type = entry.slice(0, 2);
    if (line === 1 ? type === 'v=' : type === 'm=') {
      if (sections.length > MAX_MEDIA) throw new ProtocolError('SDP_MEDIA', `more than ${MAX_MEDIA} m-lines`, line);
      sections.push({ line, head: entry.slice(2), attributes: [], bandwidth: undefined });
      continue;
    }
    const section = sections.at(-1);
    if (section === undefined) return [];
    if (type === 'a=') addAttribute(section.attributes, entry.slice(2), line);
    else if (type === 'b=') section.bandwidth ??= /^b=AS:(.*)$/.exec(entry)?.[1];
    else if (stray === 'refuse' && entry !== '' && !/^[a-z]=$/.test(type))
      throw new ProtocolError('SDP_LINE', `'${entry.slice(0, 40)}' is no line of a session description`, line);
  }
  return sections;
}

function addAttribute(attributes: SdpAttribute[], text: string, line: number): void {
  if (attributes.length >= MAX_ATTRIBUTES)
    throw new ProtocolError('SDP_ATTRIBUTES', `more than ${MAX_ATTRIBUTES} attributes of one m-line`, line);
  const colon = text.indexOf(':');
  attributes.push(colon < 0 ? { name: text, value: '' } : { name: text.slice(0, colon), value: text.slice(colon + 1) });
}

/** The value of the first attribute of that name; undefined without one. */
export function attributeOf({ attributes }: SdpSection, wanted: string): string | undefined {
  return attributes.find(({ name }) => name === wanted)?.value;
}

/** Values of `a=<name>:<format> <value>`: format → values in order. One pass, because the peer controls their number. */
export function byFormat({ attributes }: SdpSection, wanted: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { name, value } of attributes) {
    if (name !== wanted) continue;
    const space = value.indexOf(' ');
    const [format, rest] = space < 0 ? [value, ''] : [value.slice(0, space), value.slice(space + 1)];
    const values = found.get(format);
    if (values === undefined) found.set(format, [rest]);
    else values.push(rest);
  }
  return found;
}

/** Parameters of `a=fmtp`, names in lower case; a parameter without `=` has an empty value. */
export function formatParameters(text: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const part of text.split(';')) {
    const equals = part.indexOf('=');
    const name = (equals < 0 ? part : part.slice(0, equals)).trim().toLowerCase();
    if (name !== '') parameters.set(name, equals < 0 ? '' : part.slice(equals + 1).trim());
  }
  return parameters;
}

/** The payload type in a word of an m-line (RFC 3551); null for any other word. */
export function payloadTypeOf(format: string): number | null {
  return /^\d{1,3}$/.test(format) && Number(format) <= 127 ? Number(format) : null;
}
