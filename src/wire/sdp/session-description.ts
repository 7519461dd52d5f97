/** The parts of a peer's session description that matter for WebRTC (RFC 8866, RFC 8829). Unknown lines are skipped. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { attributeOf, byFormat, formatParameters, payloadTypeOf, type SdpSection, splitSections } from './sections.ts';

const MAX_SIZE = 64 * 1024;
const MAX_PAYLOADS = 128;
const MAX_EXTENSIONS = 32;
const MAX_SOURCES = 16;
/** Layers of one m-line (RFC 8853). */
const MAX_LAYERS = 8;

/** From the peer's point of view (RFC 8866 section 6.7). */
export type SdpDirection = 'sendrecv' | 'sendonly' | 'recvonly' | 'inactive';

/** One format of an m-line. */
export interface SdpPayload {
  readonly payloadType: number;
  /** As in `a=rtpmap`, upper case: `H264`, `OPUS`, `RTX`. */
  readonly codec: string;
  readonly clockRate: number;
  /** Parameters of `a=fmtp`, names in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Values of `a=rtcp-fb` without duplicates, including those for `*`. */
  readonly feedback: readonly string[];
}

/** An m-line; if it has no security or direction, those of the session part apply. */
export interface SdpMedia {
  /** `audio`, `video`, `application` … */
  readonly kind: string;
  /** The port is 0: the peer does not want it. */
  readonly rejected: boolean;
  readonly mid: string;
  readonly direction: SdpDirection;
  readonly setup: string;
  readonly ufrag: string;
  readonly password: string;
  /** `sha-256 AA:BB:…`, algorithm in lower case, digits in upper case. */
  readonly fingerprint: string;
  readonly rtcpMux: boolean;
  /** In the peer's order of preference. */
  readonly payloads: readonly SdpPayload[];
  /** URI → id. */
  readonly extensions: ReadonlyMap<string, number>;
  /** The announced SSRCs of the peer (RFC 5576), each with the SSRC of its retransmissions, or 0. */
  readonly sources: readonly { readonly ssrc: number; readonly rtxSsrc: number }[];
  /** Restriction identifiers of the simulcast layers that the peer wants to send (RFC 8853), in its order; empty without simulcast. */
  readonly layers: readonly string[];
}

/** A parsed offer or answer. */
export interface SessionDescription {
  readonly medias: readonly SdpMedia[];
  /** mids of the first BUNDLE group. */
  readonly bundle: readonly string[];
}

/** Throws ProtocolError; `offset` is the number of the line, from 1. */
export function parseSessionDescription(text: string): SessionDescription {
  if (text.length > MAX_SIZE) throw new ProtocolError('SDP_SIZE', `the session description is longer than ${MAX_SIZE} characters`);
  const [session, ...sections] = splitSections(text, 'refuse');
  if (session?.head !== '0') throw new ProtocolError('SDP_VERSION', 'the session description does not begin with v=0', 1);
  const group = session.attributes.find(({ name, value }) => name === 'group' && value.startsWith('BUNDLE'));
  return {
    medias: sections.map((section) => readMedia(section, session)),
    bundle: group === undefined ? [] : group.value.split(' ').slice(1),
  };
}

function readMedia(section: SdpSection, session: SdpSection): SdpMedia {
  const [kind = '', port = '', protocol = '', ...formats] = section.head.split(' ');
  if (!/^\d{1,5}$/.test(port) || protocol === '')
    throw new ProtocolError('SDP_MEDIA', `m=${section.head.slice(0, 60)} is not complete`, section.line);
  const own = (name: string): string | undefined => attributeOf(section, name);
  const either = (name: string): string => own(name) ?? attributeOf(session, name) ?? '';
  const [algorithm = '', digits = ''] = either('fingerprint').split(' ');
  return {
    kind,
    rejected: Number(port) === 0,
    mid: own('mid') ?? '',
    direction: directionOf(section) ?? directionOf(session) ?? 'sendrecv',
    setup: either('setup'),
    ufrag: either('ice-ufrag'),
    password: either('ice-pwd'),
    fingerprint: algorithm === '' ? '' : `${algorithm.toLowerCase()} ${digits.toUpperCase()}`,
    rtcpMux: own('rtcp-mux') !== undefined,
    payloads: /RTP\//.test(protocol) ? readPayloads(section, formats) : [],
    extensions: readExtensions(section),
    sources: readSources(section),
    layers: readLayers(section),
  };
}

function directionOf({ attributes }: SdpSection): SdpDirection | undefined {
  const found = attributes.find(({ name }) => name === 'sendrecv' || name === 'sendonly' || name === 'recvonly' || name === 'inactive');
  return found?.name as SdpDirection | undefined;
}

function readPayloads(section: SdpSection, formats: readonly string[]): SdpPayload[] {
  if (formats.length > MAX_PAYLOADS) throw new ProtocolError('SDP_PAYLOAD', `more than ${MAX_PAYLOADS} payload types`, section.line);
  const maps = byFormat(section, 'rtpmap');
  const parameters = byFormat(section, 'fmtp');
  const feedback = byFormat(section, 'rtcp-fb');
  // An answer repeats them for every format, so duplicates are removed.
  const all = [...new Set(feedback.get('*'))];
  const payloads: SdpPayload[] = [];
  for (const format of new Set(formats)) {
    const payloadType = payloadTypeOf(format);
    if (payloadType === null) throw new ProtocolError('SDP_PAYLOAD', `'${format.slice(0, 20)}' is no payload type`, section.line);
    const map = maps.get(format)?.[0];
    // Static payload types without rtpmap are codecs that this server does not support.
    if (map === undefined) continue;
    const [codec = '', rate = ''] = map.split('/');
    payloads.push({
      payloadType,
      codec: codec.toUpperCase(),
      clockRate: Number(rate) || 0,
      parameters: formatParameters(parameters.get(format)?.[0] ?? ''),
      feedback: [...new Set([...(feedback.get(format) ?? []), ...all])],
    });
  }
  return payloads;
}

/** `a=extmap:<id>[/<direction>] <uri> …` (RFC 8285 section 5); ids that the one-byte form cannot carry are left out. */
function readExtensions({ attributes }: SdpSection): Map<string, number> {
  const extensions = new Map<string, number>();
  for (const { name, value } of attributes) {
    if (name !== 'extmap' || extensions.size >= MAX_EXTENSIONS) continue;
    const [id = '', uri = ''] = value.split(' ');
    const number = Number.parseInt(id, 10);
    if (number >= 1 && number <= 14 && uri !== '' && !extensions.has(uri)) extensions.set(uri, number);
  }
  return extensions;
}

/** `a=ssrc:<id> …` and `a=ssrc-group:FID <media> <retransmission>`. */
function readSources({ attributes }: SdpSection): { ssrc: number; rtxSsrc: number }[] {
  const repairs = new Map<number, number>();
  for (const { name, value } of attributes) {
    if (name !== 'ssrc-group' || repairs.size >= MAX_SOURCES) continue;
    const [semantics, media, repair] = value.split(' ');
    if (semantics === 'FID') repairs.set(Number(media) >>> 0, Number(repair) >>> 0);
  }
  const ids = new Set<number>();
  for (const { name, value } of attributes) if (name === 'ssrc' && ids.size < 2 * MAX_SOURCES) ids.add(Number.parseInt(value, 10) >>> 0);
  const own = [...ids].filter((id) => id !== 0 && ![...repairs.values()].includes(id));
  return own.map((ssrc) => ({ ssrc, rtxSsrc: repairs.get(ssrc) ?? 0 }));
}

/**
 * `a=simulcast:send hi,alternative;~paused;low`: the first of several alternatives is used. Layers without `a=rid:<id> send` are ignored.
 */
function readLayers({ attributes }: SdpSection): string[] {
  const rids = new Set(attributes.filter(({ name }) => name === 'rid').flatMap(({ value }) => ridOf(value) ?? []));
  const simulcast = attributes.find(({ name }) => name === 'simulcast')?.value.split(' ') ?? [];
  const sent = simulcast[simulcast.indexOf('send') + 1];
  if (sent === undefined || !simulcast.includes('send')) return [];
  const layers = sent.split(';').map((alternatives) => (alternatives.split(',')[0] ?? '').replace(/^~/, ''));
  return [...new Set(layers)].filter((layer) => rids.has(layer)).slice(0, MAX_LAYERS);
}

function ridOf(value: string): string | null {
  const [id = '', direction] = value.split(' ');
  return direction === 'send' && /^[A-Za-z0-9_-]{1,32}$/.test(id) ? id : null;
}
