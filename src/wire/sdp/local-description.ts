/** Session descriptions of an ICE-lite server (RFC 8829, RFC 8839). */
import { randomInt } from 'node:crypto';
import type { IceCredentials } from '../ice/ice-credentials.ts';

/** One announced format. */
export interface LocalPayload {
  readonly payloadType: number;
  /** As in `a=rtpmap`: `H264/90000`, `OPUS/48000/2`. */
  readonly map: string;
  /** Value of `a=fmtp`; empty for none. */
  readonly parameters: string;
  readonly feedback: readonly string[];
}

/** An m-line of this server (RFC 8866 section 5.14), in an offer or in an answer. */
export interface LocalMedia {
  readonly kind: 'audio' | 'video' | string;
  readonly mid: string;
  /** An m-line of the offer that is answered with port 0. */
  readonly rejected: boolean;
  readonly payloads: readonly LocalPayload[];
  readonly extensions: readonly { readonly id: number; readonly uri: string }[];
  /** The identifiers of our media; null when we receive. */
  readonly sends: {
    readonly ssrc: number;
    /** 0 without retransmission. */
    readonly rtxSsrc: number;
  } | null;
  /** Simulcast layers that we receive (RFC 8853). */
  readonly layers?: readonly string[];
}

/** The values in which this server's descriptions differ from each other. */
export interface LocalDescription {
  readonly credentials: IceCredentials;
  /** SHA-256 in hex pairs. */
  readonly fingerprint: string;
  readonly setup: 'actpass' | 'active' | 'passive';
  /** Candidates without `a=`; empty if they are sent beside the description. */
  readonly candidates: readonly string[];
  readonly cname: string;
  /** Names the stream to the peer. */
  readonly streamId: string;
  readonly medias: readonly LocalMedia[];
}

/** The text, lines ending with CRLF. Its origin is `OvenMediaEngine`, as in the reference server's. */
export function serializeDescription(description: LocalDescription): string {
  const { credentials, fingerprint, setup, medias, streamId } = description;
  const bundled = medias.filter((media) => !media.rejected).map(({ mid }) => mid);
  const lines = [
    'v=0',
    `o=OvenMediaEngine ${randomInt(1, 2 ** 32)} 2 IN IP4 127.0.0.1`,
    's=-',
    't=0 0',
    `a=group:BUNDLE${bundled.map((mid) => ` ${mid}`).join('')}`,
    `a=group:LS${bundled.map((mid) => ` ${mid}`).join('')}`,
    `a=msid-semantic:WMS ${streamId}`,
    'a=extmap-allow-mixed',
    'a=ice-lite',
    `a=fingerprint:sha-256 ${fingerprint}`,
    'a=ice-options:trickle',
    `a=ice-ufrag:${credentials.ufrag}`,
    `a=ice-pwd:${credentials.password}`,
  ];
  for (const media of medias) {
    if (media.rejected) lines.push(`m=${media.kind} 0 UDP/TLS/RTP/SAVPF 0`, 'c=IN IP4 0.0.0.0', 'a=inactive', `a=mid:${media.mid}`);
    else lines.push(...mediaLines(media, description, setup));
  }
  return `${lines.join('\r\n')}\r\n`;
}

function mediaLines(media: LocalMedia, { cname, streamId, candidates }: LocalDescription, setup: string): string[] {
  const { kind, mid, payloads, extensions, sends, layers = [] } = media;
  const track = `${streamId}-${kind}`;
  const named = (id: number): string[] => [`a=ssrc:${id} cname:${cname}`, `a=ssrc:${id} msid:${streamId} ${track}`];
  return [
    `m=${kind} 9 UDP/TLS/RTP/SAVPF ${payloads.map(({ payloadType }) => payloadType).join(' ')}`,
    'c=IN IP4 0.0.0.0',
    sends === null ? 'a=recvonly' : 'a=sendonly',
    `a=mid:${mid}`,
    `a=setup:${setup}`,
    'a=rtcp-mux',
    'a=rtcp-rsize',
    ...(sends === null ? [] : [`a=msid:${streamId} ${track}`]),
    ...extensions.map(({ id, uri }) => `a=extmap:${id} ${uri}`),
    ...payloads.flatMap(({ payloadType, map, parameters, feedback }) => [
      `a=rtpmap:${payloadType} ${map}`,
      ...(parameters === '' ? [] : [`a=fmtp:${payloadType} ${parameters}`]),
      ...feedback.map((value) => `a=rtcp-fb:${payloadType} ${value}`),
    ]),
    ...layers.map((layer) => `a=rid:${layer} recv`),
    ...(layers.length === 0 ? [] : [`a=simulcast:recv ${layers.join(';')}`]),
    ...(sends === null ? [] : sourceLines(sends, named)),
    ...candidates.map((candidate) => `a=${candidate}`),
  ];
}

function sourceLines({ ssrc, rtxSsrc }: { readonly ssrc: number; readonly rtxSsrc: number }, named: (id: number) => string[]): string[] {
  if (rtxSsrc === 0) return named(ssrc);
  return [`a=ssrc-group:FID ${ssrc} ${rtxSsrc}`, ...named(ssrc), ...named(rtxSsrc)];
}

/** An unwanted m-line of an offer. */
export function rejectedMedia({ kind, mid }: { readonly kind: string; readonly mid: string }): LocalMedia {
  return { kind, mid, rejected: true, payloads: [], extensions: [], sends: null };
}
