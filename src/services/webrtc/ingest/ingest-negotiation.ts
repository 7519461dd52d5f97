/** Negotiates a publisher's session description with the formats that the server can receive. */
import { AudioCodec } from '../../../media/codec.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { ExtensionUri } from '../../../wire/rtp/header-extensions.ts';
import { type LocalMedia, type LocalPayload, rejectedMedia } from '../../../wire/sdp/local-description.ts';
import { type PeerSecurity, securityOf } from '../../../wire/sdp/security.ts';
import type { SdpMedia, SdpPayload, SessionDescription } from '../../../wire/sdp/session-description.ts';
import { type IngestCodec, ingestClockRate, isAudioCodec, isIngestCodec } from './ingest-codecs.ts';

/** One format that the publisher may send. */
export interface IngestPayload {
  readonly codec: IngestCodec;
  /** Lost packets are retransmitted on request. */
  readonly repeats: boolean;
  /** Message that requests a keyframe; null: not possible. */
  readonly keyframe: 'pli' | 'fir' | null;
}

/** One negotiated m-line. */
export interface IngestMedia {
  readonly kind: 'video' | 'audio';
  readonly mid: string;
  readonly payloads: ReadonlyMap<number, IngestPayload>;
  /** Formats of retransmissions (RFC 4588) → the formats that they repeat. */
  readonly rtx: ReadonlyMap<number, number>;
  /** Ids of header extensions; 0 when absent. */
  readonly extensions: { readonly mid: number; readonly rid: number; readonly repairedRid: number; readonly transportCc: number };
  /** Simulcast layers, a track for each; empty without. */
  readonly layers: readonly string[];
  readonly sources: SdpMedia['sources'];
  /** The sender expects a limit of its bandwidth (REMB) and gets no transport-wide feedback. */
  readonly remb: boolean;
}

/** The result of a negotiation: the media in the order of the m-lines, and how the publisher proves itself. */
export interface IngestAgreement {
  readonly medias: readonly IngestMedia[];
  readonly security: PeerSecurity;
}

/** Payload types of our offers, including those of retransmissions. */
const OFFERED: readonly (LocalPayload & { readonly kind: 'video' | 'audio'; readonly rtx: number })[] = [
  {
    kind: 'video',
    payloadType: 100,
    map: 'H264/90000',
    parameters: 'packetization-mode=1;profile-level-id=42e01f;level-asymmetry-allowed=1',
    feedback: ['transport-cc', 'ccm fir', 'nack', 'nack pli'],
    rtx: 104,
  },
  {
    kind: 'video',
    payloadType: 101,
    map: 'VP8/90000',
    parameters: '',
    feedback: ['transport-cc', 'ccm fir', 'nack', 'nack pli'],
    rtx: 105,
  },
  {
    kind: 'audio',
    payloadType: 102,
    map: 'OPUS/48000/2',
    parameters: 'sprop-stereo=1;stereo=1;minptime=10;useinbandfec=1',
    feedback: ['transport-cc'],
    rtx: 0,
  },
];
const TRANSPORT_CC_ID = 3;
const MID_ID = 6;
const KNOWN_EXTENSIONS: readonly string[] = [
  ExtensionUri.TRANSPORT_CC,
  ExtensionUri.MID,
  ExtensionUri.RID,
  ExtensionUri.REPAIRED_RID,
] satisfies ExtensionUri[];
/** Feedback that we may send. */
const KNOWN_FEEDBACK = ['ccm fir', 'nack', 'nack pli', 'transport-cc', 'goog-remb'];
/** Tracks of one publisher. */
const MAX_TRACKS = 8;
/** Limit of codecs that the log names for a track that cannot be received: browsers offer a dozen. */
const MAX_NAMED_CODECS = 8;

/** Our offer: one video and one audio m-line. */
export function offerIngest(mids: { readonly video: string; readonly audio: string }): LocalMedia[] {
  return (['video', 'audio'] as const).map((kind) => ({
    kind,
    mid: mids[kind],
    rejected: false,
    payloads: OFFERED.filter((payload) => payload.kind === kind).flatMap(({ payloadType, map, parameters, feedback, rtx }) => [
      { payloadType, map, parameters, feedback },
      ...(rtx === 0 ? [] : [{ payloadType: rtx, map: 'rtx/90000', parameters: `apt=${payloadType}`, feedback: [] }]),
    ]),
    extensions: [
      { id: TRANSPORT_CC_ID, uri: ExtensionUri.TRANSPORT_CC },
      { id: MID_ID, uri: ExtensionUri.MID },
    ],
    sends: null,
  }));
}

/** Reads the answer to our offer. Throws ProtocolError when it does not fit or sends nothing. */
export function readIngestAnswer(answer: SessionDescription, offered: readonly LocalMedia[]): IngestAgreement {
  if (answer.medias.length !== offered.length)
    throw new ProtocolError('SDP_ANSWER', `the answer has ${answer.medias.length} m-lines, the offer ${offered.length}`);
  const medias = offered.flatMap((ours, n) => {
    const theirs = answer.medias[n];
    if (theirs === undefined || !isSent(theirs)) return [];
    const known = new Set(ours.payloads.map(({ payloadType }) => payloadType));
    const media = ingestMedia({ ...theirs, payloads: theirs.payloads.filter(({ payloadType }) => known.has(payloadType)), layers: [] });
    return media === null ? [] : [media];
  });
  if (medias.length === 0) throw new ProtocolError('SDP_CODECS', 'the answer sends nothing of what was offered: H264, VP8, OPUS');
  return { medias, security: securityOf(answer) };
}

/**
 * Answers an offer (WHIP), with one m-line for each m-line of the offer. `left` names media that cannot be received, with its codecs.
 * Throws ProtocolError if none can be received.
 */
export function answerIngest(offer: SessionDescription): {
  readonly agreement: IngestAgreement;
  readonly medias: readonly LocalMedia[];
  readonly left: readonly string[];
} {
  const agreed: IngestMedia[] = [];
  const left: string[] = [];
  let tracks = 0;
  const medias = offer.medias.map((theirs): LocalMedia => {
    const media = isSent(theirs) ? ingestMedia(theirs) : null;
    if (media === null && isSent(theirs)) left.push(`${theirs.kind} (${codecsOf(theirs)})`);
    if (media === null || tracks + tracksOf(media) > MAX_TRACKS) return rejectedMedia(theirs);
    tracks += tracksOf(media);
    agreed.push(media);
    return {
      kind: media.kind,
      mid: theirs.mid,
      rejected: false,
      payloads: theirs.payloads.flatMap((payload) => answeredPayload(payload, media)),
      extensions: [...theirs.extensions].flatMap(([uri, id]) => (KNOWN_EXTENSIONS.includes(uri) ? [{ id, uri }] : [])),
      sends: null,
      layers: media.layers,
    };
  });
  if (agreed.length === 0)
    throw new ProtocolError('SDP_CODECS', 'the offer sends nothing that can be received: H264, H265, VP8, AV1 or OPUS');
  const security = securityOf(offer);
  if (security.role === 'client')
    throw new ProtocolError(
      'SDP_SETUP',
      'a=setup:passive cannot be answered: the publisher has to begin the handshake (actpass or active)',
    );
  return { agreement: { medias: agreed, security }, medias, left };
}

function codecsOf({ payloads }: SdpMedia): string {
  return [...new Set(payloads.map(({ codec }) => codec))].slice(0, MAX_NAMED_CODECS).join(', ');
}

function tracksOf({ layers }: IngestMedia): number {
  return Math.max(1, layers.length);
}

function isSent({ rejected, direction, kind }: SdpMedia): boolean {
  return !rejected && (kind === 'video' || kind === 'audio') && (direction === 'sendonly' || direction === 'sendrecv');
}

/** Null when none of its formats can be received. */
function ingestMedia(theirs: SdpMedia): IngestMedia | null {
  const kind = theirs.kind === 'video' ? 'video' : 'audio';
  const payloads = new Map<number, IngestPayload>();
  for (const payload of theirs.payloads) {
    const { codec, feedback, payloadType } = payload;
    if (!isIngestCodec(codec) || isAudioCodec(codec) !== (kind === 'audio') || payload.clockRate !== ingestClockRate(codec)) continue;
    const keyframe = feedback.includes('nack pli') ? 'pli' : feedback.includes('ccm fir') ? 'fir' : null;
    payloads.set(payloadType, { codec, repeats: feedback.includes('nack'), keyframe });
  }
  if (payloads.size === 0) return null;
  const rtx = new Map<number, number>();
  for (const { codec, parameters, payloadType } of theirs.payloads) {
    const repeated = Number(parameters.get('apt'));
    if (codec === 'RTX' && payloads.has(repeated)) rtx.set(payloadType, repeated);
  }
  const idOf = (uri: string): number => theirs.extensions.get(uri) ?? 0;
  const extensions = {
    mid: idOf(ExtensionUri.MID),
    rid: idOf(ExtensionUri.RID),
    repairedRid: idOf(ExtensionUri.REPAIRED_RID),
    transportCc: idOf(ExtensionUri.TRANSPORT_CC),
  };
  const wantsRemb = theirs.payloads.some(({ feedback }) => feedback.includes('goog-remb'));
  const layers = extensions.rid === 0 ? [] : theirs.layers;
  return {
    kind,
    mid: theirs.mid,
    payloads,
    rtx,
    extensions,
    layers,
    sources: theirs.sources,
    remb: wantsRemb && extensions.transportCc === 0,
  };
}

function answeredPayload({ payloadType, codec, clockRate, parameters, feedback }: SdpPayload, media: IngestMedia): LocalPayload[] {
  const isRtx = media.rtx.has(payloadType);
  if (!isRtx && !media.payloads.has(payloadType)) return [];
  const unwanted = media.remb ? 'transport-cc' : 'goog-remb';
  return [
    {
      payloadType,
      map: codec === AudioCodec.OPUS ? `opus/${clockRate}/2` : `${isRtx ? 'rtx' : codec}/${clockRate}`,
      parameters: codec === AudioCodec.OPUS ? stereo(parameters) : joined(parameters),
      feedback: feedback.filter((value) => KNOWN_FEEDBACK.includes(value) && value !== unwanted),
    },
  ];
}

function joined(parameters: ReadonlyMap<string, string>): string {
  return [...parameters].map(([name, value]) => (value === '' ? name : `${name}=${value}`)).join(';');
}

/** `stereo` of an answer is a permission for the publisher. */
function stereo(parameters: ReadonlyMap<string, string>): string {
  return joined(new Map([...parameters, ['stereo', '1']]));
}
