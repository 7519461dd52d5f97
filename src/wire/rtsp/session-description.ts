/** The parts of a session description (RFC 8866) that an RTSP client needs. */
import { ProtocolError } from '../../util/protocol-error.ts';

/** One `m=` section. */
export interface MediaDescription {
  readonly type: string;
  /** The first format of the line. */
  readonly payloadType: number;
  /** Encoding name of its `rtpmap` in lower case; empty for the static types, which are known by number. */
  readonly encoding: string;
  /** Ticks per second, a whole number; 0 when the description does not tell. */
  readonly clockRate: number;
  readonly channels: number;
  /** Parameters of its `fmtp`, names in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
  /** `a=control`; empty without one. */
  readonly control: string;
  /** `b=AS`, bits per second; 0 without one. */
  readonly bandwidth: number;
  /** `a=framerate`; 0 without one. */
  readonly framerate: number;
}

/** What is needed of the SDP that answers DESCRIBE (RFC 2326 appendix C). */
export interface SessionDescription {
  /** `a=control` of the whole session; empty without one. */
  readonly control: string;
  readonly media: readonly MediaDescription[];
}

const MAX_MEDIA = 32;
const LARGEST_CLOCK_RATE = 1_000_000;
/** Encodings of payload types that need no `rtpmap` (RFC 3551 §6). */
const STATIC: Readonly<Record<number, readonly [encoding: string, clockRate: number]>> = {
  0: ['pcmu', 8000],
  8: ['pcma', 8000],
  14: ['mpa', 90_000],
  26: ['jpeg', 90_000],
  33: ['mp2t', 90_000],
};

/** Parses a description; attributes it does not know are passed over. Throws `SDP` when it is none. */
export function parseSessionDescription(text: string): SessionDescription {
  const sections: string[][] = [[]];
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith('m=')) sections.push([]);
    sections.at(-1)?.push(line);
  }
  const [session = [], ...media] = sections;
  if (!session[0]?.startsWith('v=')) throw new ProtocolError('SDP', 'a session description begins with v=', 0);
  if (media.length > MAX_MEDIA) throw new ProtocolError('SDP', `${media.length} media sections, at most ${MAX_MEDIA} are read`);
  return { control: attribute(session, 'control') ?? '', media: media.map(parseMedia) };
}

function parseMedia(lines: readonly string[]): MediaDescription {
  const [type = '', , , format = ''] = (lines[0] ?? '').slice(2).split(' ');
  const payloadType = Number(format);
  if (!/^\d{1,3}$/.test(format) || payloadType > 127)
    throw new ProtocolError('SDP', `media line ${JSON.stringify(lines[0])} names no payload type`);
  const [fixedEncoding, fixedRate] = STATIC[payloadType] ?? ['', 0];
  const map = formatAttribute(lines, 'rtpmap', payloadType)?.split('/') ?? [];
  return {
    type,
    payloadType,
    encoding: (map[0] ?? fixedEncoding).toLowerCase(),
    clockRate: clockRate(map[1]) || fixedRate,
    channels: positive(map[2]) || 1,
    parameters: parseParameters(formatAttribute(lines, 'fmtp', payloadType) ?? ''),
    control: attribute(lines, 'control') ?? '',
    bandwidth: positive(lines.find((line) => line.startsWith('b=AS:'))?.slice(5)) * 1000,
    framerate: positive(attribute(lines, 'framerate')),
  };
}

function attribute(lines: readonly string[], name: string): string | undefined {
  const prefix = `a=${name}:`;
  return lines
    .find((line) => line.startsWith(prefix))
    ?.slice(prefix.length)
    .trim();
}

/** The value of `a=<name>:<payload type> <value>`. */
function formatAttribute(lines: readonly string[], name: string, payloadType: number): string | undefined {
  const prefix = `a=${name}:${payloadType} `;
  return lines
    .find((line) => line.startsWith(prefix))
    ?.slice(prefix.length)
    .trim();
}

function parseParameters(text: string): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  for (const part of text.split(';')) {
    const equals = part.indexOf('=');
    if (equals > 0) parameters.set(part.slice(0, equals).trim().toLowerCase(), part.slice(equals + 1).trim());
  }
  return parameters;
}

/** 0 for what is no clock. */
function clockRate(text: string | undefined): number {
  const value = Number(text);
  return Number.isInteger(value) && value >= 1 && value <= LARGEST_CLOCK_RATE ? value : 0;
}

function positive(text: string | undefined): number {
  const value = Number(text);
  return Number.isFinite(value) && value > 0 ? value : 0;
}
