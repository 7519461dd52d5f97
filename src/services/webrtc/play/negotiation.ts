/** Negotiates a peer's session description with our tracks. */
import { randomInt } from 'node:crypto';
import { VideoCodec } from '../../../media/codec.ts';
import { ProtocolError } from '../../../util/protocol-error.ts';
import { buildExtensions, ExtensionUri, MAX_MID_LENGTH } from '../../../wire/rtp/header-extensions.ts';
import { type LocalMedia, type LocalPayload, rejectedMedia } from '../../../wire/sdp/local-description.ts';
import { type PeerSecurity, securityOf } from '../../../wire/sdp/security.ts';
import type { SdpMedia, SdpPayload, SessionDescription } from '../../../wire/sdp/session-description.ts';
import type { SlotPlan, ViewerPlan } from '../transport/fanout/fanout.ts';
import {
  codecOf,
  correctionPayloads,
  ESTIMATION_FEEDBACK,
  type MediaKind,
  mapOf,
  offeredExtensions,
  offeredPayloads,
  parametersOf,
  type WebrtcTrack,
} from './codec-plan.ts';
import type { WebrtcSettings } from './settings.ts';

/** One negotiated stream. */
export interface AgreedMedia {
  readonly kind: MediaKind;
  /** The codec, as tracks name it. */
  readonly codec: WebrtcTrack['codec'];
}

/** The result of a negotiation: codecs, the plan for sending, and the peer's credentials. */
export interface Agreement extends PeerSecurity {
  /** In the order of the viewer's slots. */
  readonly medias: readonly AgreedMedia[];
  readonly plan: ViewerPlan;
}

/** Numbers of one stream to one viewer. */
export interface StreamNumbers {
  readonly ssrc: number;
  readonly rtxSsrc: number;
}

/** Random numbers (RFC 3550 section 8); that of retransmissions is the next one. */
export function newNumbers(): StreamNumbers {
  const ssrc = randomInt(1, 2 ** 32 - 1);
  return { ssrc, rtxSsrc: ssrc + 1 };
}

/** Our side of an offer: at most one video and one audio. */
export function offerMedias(
  tracks: readonly WebrtcTrack[],
  settings: WebrtcSettings,
  mids: Record<MediaKind, string>,
  numbers: Record<MediaKind, StreamNumbers>,
): (LocalMedia & { readonly kind: MediaKind })[] {
  const kinds: readonly MediaKind[] = ['video', 'audio'];
  return kinds.flatMap((kind) => {
    const payloads = offeredPayloads(
      tracks.filter((track) => track.type === kind),
      settings,
    );
    if (payloads.length === 0) return [];
    const hasRtx = payloads.some(({ map }) => map.startsWith('rtx/'));
    const { ssrc, rtxSsrc } = numbers[kind];
    const extensions = offeredExtensions(kind, settings);
    return [{ kind, mid: mids[kind], rejected: false, payloads, extensions, sends: { ssrc, rtxSsrc: hasRtx ? rtxSsrc : 0 } }];
  });
}

/** Reads the answer to `offered`. Throws ProtocolError when it does not fit. */
export function readSdpAnswer(
  answer: SessionDescription,
  offered: readonly (LocalMedia & { readonly kind: MediaKind })[],
  settings: WebrtcSettings,
  cname: string,
): Agreement {
  if (answer.medias.length !== offered.length) {
    throw new ProtocolError('SDP_ANSWER', `the answer has ${answer.medias.length} m-lines, the offer ${offered.length}`);
  }
  const medias: AgreedMedia[] = [];
  const slots: SlotPlan[] = [];
  offered.forEach((ours, n) => {
    const theirs = answer.medias[n];
    if (theirs === undefined || theirs.rejected || theirs.direction === 'inactive' || theirs.direction === 'sendonly') return;
    const codecs = new Map(ours.payloads.map((payload) => [payload.payloadType, codecOf(payload)]));
    const chosen = theirs.payloads.find(({ payloadType }) => codecs.get(payloadType) !== undefined);
    const codec = chosen === undefined ? undefined : codecs.get(chosen.payloadType);
    if (chosen === undefined || codec === undefined)
      throw new ProtocolError('SDP_ANSWER', `m-line ${n} of the answer takes no codec of the offer`);
    medias.push({ kind: ours.kind, codec });
    const repair = repairOf(theirs, chosen, settings);
    if (ours.sends !== null) slots.push(slotOf({ ...theirs, mid: ours.mid }, chosen, ours.sends, repair, settings));
  });
  return { medias, plan: { cname, slots }, ...securityOf(answer) };
}

/** Answers an offer (WHEP): one m-line for each m-line of the offer. Throws ProtocolError if nothing playable remains. */
export function answerOffer(
  offer: SessionDescription,
  tracks: readonly WebrtcTrack[],
  settings: WebrtcSettings,
  cname: string,
): { readonly agreement: Agreement; readonly medias: readonly LocalMedia[] } {
  const agreed: AgreedMedia[] = [];
  const slots: SlotPlan[] = [];
  const medias = offer.medias.map((theirs): LocalMedia => {
    const kind = wantedKind(theirs);
    const chosen = kind === null || agreed.some((media) => media.kind === kind) ? null : choose(theirs, tracks);
    if (kind === null || chosen === null) return rejectedMedia(theirs);
    const { track, payload } = chosen;
    const repair = repairOf(theirs, payload, settings);
    const numbers = newNumbers();
    const sends = { ...numbers, rtxSsrc: repair.rtx === null ? 0 : numbers.rtxSsrc };
    agreed.push({ kind, codec: track.codec });
    slots.push(slotOf(theirs, payload, sends, repair, settings));
    return {
      kind,
      mid: theirs.mid,
      rejected: false,
      payloads: answeredPayloads(track, payload, repair, settings),
      extensions: extensionsFor(theirs, settings),
      sends,
    };
  });
  if (agreed.length === 0) throw new ProtocolError('SDP_CODECS', `the offer takes none of the codecs of the stream: ${codecNames(tracks)}`);
  return { agreement: { medias: agreed, plan: { cname, slots }, ...securityOf(offer) }, medias };
}

/** Media that an offer wants to receive. */
export function askedKinds({ medias }: SessionDescription): readonly MediaKind[] {
  const kinds = medias.map(wantedKind).filter((kind) => kind !== null);
  return [...new Set(kinds)];
}

/** Null when the peer wants nothing by this m-line, or nothing that we have. */
function wantedKind({ kind, rejected, direction }: SdpMedia): MediaKind | null {
  const isWanted = !rejected && direction !== 'inactive' && direction !== 'sendonly';
  return isWanted && (kind === 'video' || kind === 'audio') ? kind : null;
}

function codecNames(tracks: readonly WebrtcTrack[]): string {
  return [...new Set(tracks.map(({ codec }) => codec))].join(', ');
}

/** The payload for the first track that the peer takes. */
function choose(theirs: SdpMedia, tracks: readonly WebrtcTrack[]): { track: WebrtcTrack; payload: SdpPayload } | null {
  for (const track of tracks) {
    if (track.type !== theirs.kind) continue;
    const fitting = theirs.payloads.filter(({ codec }) => codec === track.codec);
    const payload = track.codec === VideoCodec.H264 ? bestH264(fitting, track.codecString) : fitting[0];
    if (payload !== undefined) return { track, payload };
  }
  return null;
}

/** Fragmented units need packetization mode 1; the profile of the stream is best, constrained baseline next. */
function bestH264(payloads: readonly SdpPayload[], codecString: string): SdpPayload | undefined {
  const usable = payloads.filter(({ parameters }) => parameters.get('packetization-mode') === '1');
  const profile = codecString.slice(5, 7).toLowerCase();
  const starting = (prefix: string): SdpPayload | undefined =>
    usable.find(({ parameters }) => (parameters.get('profile-level-id') ?? '').toLowerCase().startsWith(prefix));
  return (profile === '42' ? starting('42e0') : starting(profile)) ?? starting('42e0') ?? usable[0];
}

/** Repair of losses. */
interface Repair {
  /** Retransmission; with error correction it repeats the RED packets. */
  readonly rtx: SdpPayload | null;
  readonly fec: { readonly red: SdpPayload; readonly ulpfec: SdpPayload } | null;
}

/** The peer's repair formats for `payload`. */
function repairOf(theirs: SdpMedia, payload: SdpPayload, { ulpfec: isWanted }: WebrtcSettings): Repair {
  if (theirs.kind !== 'video') return { rtx: null, fec: null };
  // Payload type 0 is PCMU (RFC 3551 section 6); to the fanout it means that there is none.
  const format = (name: string): SdpPayload | undefined =>
    theirs.payloads.find(({ codec, payloadType }) => codec === name && payloadType !== 0);
  const [red, ulpfec] = isWanted ? [format('RED'), format('ULPFEC')] : [];
  const fec = red === undefined || ulpfec === undefined ? null : { red, ulpfec };
  const repeated = `${(fec?.red ?? payload).payloadType}`;
  const rtx = theirs.payloads.find(
    ({ codec, parameters, payloadType }) => codec === 'RTX' && parameters.get('apt') === repeated && payloadType !== 0,
  );
  return { rtx: payload.feedback.includes('nack') ? (rtx ?? null) : null, fec };
}

function answeredPayloads(
  track: WebrtcTrack,
  payload: SdpPayload,
  { rtx, fec }: Repair,
  { bandwidthEstimation }: WebrtcSettings,
): LocalPayload[] {
  const known = [ESTIMATION_FEEDBACK[bandwidthEstimation], 'ccm fir', 'nack', 'nack pli'];
  const offered = [...payload.parameters].map(([name, value]) => (value === '' ? name : `${name}=${value}`)).join(';');
  const main: LocalPayload = {
    payloadType: payload.payloadType,
    map: mapOf(track),
    parameters: track.type === 'audio' ? parametersOf(track) : offered,
    feedback: payload.feedback.filter((value) => known.includes(value) && (value !== 'nack' || rtx !== null)),
  };
  const again = rtx?.payloadType ?? null;
  if (fec !== null) return [main, ...correctionPayloads({ red: fec.red.payloadType, ulpfec: fec.ulpfec.payloadType, rtx: again })];
  if (rtx === null) return [main];
  return [main, { payloadType: rtx.payloadType, map: `rtx/${rtx.clockRate}`, parameters: `apt=${payload.payloadType}`, feedback: [] }];
}

function extensionsFor(theirs: SdpMedia, settings: WebrtcSettings): { id: number; uri: ExtensionUri }[] {
  const ours = theirs.kind === 'video' || theirs.kind === 'audio' ? offeredExtensions(theirs.kind, settings) : [];
  return ours.flatMap(({ uri }) => {
    const id = theirs.extensions.get(uri);
    return id === undefined || (uri === ExtensionUri.MID && !isMidSendable(theirs)) ? [] : [{ id, uri }];
  });
}

function isMidSendable({ mid }: SdpMedia): boolean {
  const length = Buffer.byteLength(mid);
  return length > 0 && length <= MAX_MID_LENGTH;
}

function slotOf(
  theirs: SdpMedia,
  payload: SdpPayload,
  { ssrc, rtxSsrc }: StreamNumbers,
  { rtx, fec }: Repair,
  { playoutDelay, bandwidthEstimation }: WebrtcSettings,
): SlotPlan {
  const midId = theirs.extensions.get(ExtensionUri.MID);
  const delayId = theirs.extensions.get(ExtensionUri.PLAYOUT_DELAY);
  const isVideo = theirs.kind === 'video';
  return {
    ssrc,
    payloadType: payload.payloadType,
    rtx: rtx === null || rtxSsrc === 0 ? null : { ssrc: rtxSsrc, payloadType: rtx.payloadType },
    fec: fec === null ? undefined : { redPayloadType: fec.red.payloadType, payloadType: fec.ulpfec.payloadType },
    extension: buildExtensions({
      absSendTime: isVideo && bandwidthEstimation === 'REMB' ? theirs.extensions.get(ExtensionUri.ABS_SEND_TIME) : undefined,
      transportCc: bandwidthEstimation === 'TransportCC' ? theirs.extensions.get(ExtensionUri.TRANSPORT_CC) : undefined,
      playoutDelay:
        isVideo && delayId !== undefined && playoutDelay !== undefined
          ? { id: delayId, minMs: playoutDelay.min, maxMs: playoutDelay.max }
          : undefined,
      mid: midId !== undefined && isMidSendable(theirs) ? { id: midId, value: theirs.mid } : undefined,
    }),
  };
}
