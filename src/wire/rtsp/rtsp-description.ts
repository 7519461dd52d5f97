/** The parts of a session description (RFC 8866) that an RTSP client needs. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { attributeOf, byFormat, formatParameters, payloadTypeOf, type SdpSection, splitSections } from '../sdp/sections.ts';

/** One `m=` section. */
export interface MediaDescription {
  readonly type: string;
  /** The first format of the line. */
  readonly payloadType: number;
  /** Encoding name of its `rtpmap` in lower case; empty for the static types, which are known by number. */
  readonly encoding: string;
  /** Ticks per second, a whole number; 0 if the description has none. */
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

/** The used part of the SDP in the response to DESCRIBE (RFC 2326 appendix C). */
export interface RtspDescription {
  /** `a=control` of the whole session; empty without one. */
  readonly control: string;
  readonly media: readonly MediaDescription[];
}

const MAX_CLOCK_RATE = 1_000_000;
/** Encodings of payload types that need no `rtpmap` (RFC 3551 §6). */
const STATIC: Readonly<Record<number, readonly [encoding: string, clockRate: number]>> = {
  0: ['pcmu', 8000],
  8: ['pcma', 8000],
  14: ['mpa', 90_000],
  26: ['jpeg', 90_000],
  33: ['mp2t', 90_000],
};

/** Parses a description; unknown lines and attributes are skipped. Throws `ProtocolError` if the text is not a description. */
export function parseRtspDescription(text: string): RtspDescription {
  const [session, ...media] = splitSections(text, 'skip');
  if (session === undefined) throw new ProtocolError('SDP', 'a session description begins with v=', 0);
  return { control: trimmed(session, 'control'), media: media.map(parseMedia) };
}

function parseMedia(section: SdpSection): MediaDescription {
  const [type = '', , , format = ''] = section.head.split(' ');
  const payloadType = payloadTypeOf(format);
  if (payloadType === null) throw new ProtocolError('SDP', `media line ${JSON.stringify(`m=${section.head}`)} names no payload type`);
  const [fixedEncoding, fixedRate] = STATIC[payloadType] ?? ['', 0];
  const map = ofFormat(section, 'rtpmap', payloadType)?.split('/') ?? [];
  return {
    type,
    payloadType,
    encoding: (map[0] ?? fixedEncoding).toLowerCase(),
    clockRate: clockRate(map[1]) || fixedRate,
    channels: positive(map[2]) || 1,
    parameters: formatParameters(ofFormat(section, 'fmtp', payloadType) ?? ''),
    control: trimmed(section, 'control'),
    bandwidth: positive(section.bandwidth) * 1000,
    framerate: positive(trimmed(section, 'framerate')),
  };
}

function trimmed(section: SdpSection, name: string): string {
  return attributeOf(section, name)?.trim() ?? '';
}

/** The first value of `a=<name>:<payload type> <value>`. */
function ofFormat(section: SdpSection, name: string, payloadType: number): string | undefined {
  return byFormat(section, name).get(String(payloadType))?.[0]?.trim();
}

/** A clock rate; 0 for any other text. */
function clockRate(text: string | undefined): number {
  const value = Number(text);
  return Number.isInteger(value) && value >= 1 && value <= MAX_CLOCK_RATE ? value : 0;
}

function positive(text: string | undefined): number {
  const value = Number(text);
  return Number.isFinite(value) && value > 0 ? value : 0;
}
