/** Codecs as announced to browsers: numbers and parameters of the reference server. */
import { AudioCodec, VideoCodec } from '../../../media/codec.ts';
import { type AudioTrack, isMediaTrack, type Track, type VideoTrack } from '../../../media/track.ts';
import { ExtensionUri } from '../../../wire/rtp/header-extensions.ts';
import type { LocalPayload } from '../../../wire/sdp/local-description.ts';
import type { WebrtcSettings } from './settings.ts';

/** Tracks with media; not every one of them is playable. */
export type WebrtcTrack = VideoTrack | AudioTrack;
/** The kinds of m-lines we negotiate. */
export type MediaKind = 'video' | 'audio';

/** Payload types of the reference server, which has no AV1. */
const PAYLOAD_TYPES: Partial<Record<VideoCodec | AudioCodec, { readonly main: number; readonly rtx: number }>> = {
  [VideoCodec.H264]: { main: 98, rtx: 99 },
  [VideoCodec.H265]: { main: 100, rtx: 101 },
  [VideoCodec.VP8]: { main: 96, rtx: 97 },
  [VideoCodec.AV1]: { main: 104, rtx: 105 },
  [AudioCodec.OPUS]: { main: 110, rtx: 0 },
};
const OFFER_ORDER: readonly (VideoCodec | AudioCodec)[] = [
  VideoCodec.H264,
  VideoCodec.H265,
  VideoCodec.VP8,
  VideoCodec.AV1,
  AudioCodec.OPUS,
];

/** Feedback for bandwidth estimation, as `a=rtcp-fb` names it. */
export const ESTIMATION_FEEDBACK = { REMB: 'goog-remb', TransportCC: 'transport-cc' } as const;

/** Payload types of error correction. */
const RED = 120;
const RED_RTX = 121;
const ULPFEC = 122;

/** Ids of header extensions in our offers. */
const ExtensionId = { PLAYOUT_DELAY: 2, TRANSPORT_CC: 3, ABS_SEND_TIME: 4, MID: 6 } as const;

/** Ticks of RTP timestamps per second, of every video codec. */
const VIDEO_CLOCK = 90_000;
/** Ticks of RTP timestamps per second, whatever the sampling rate of the audio (RFC 7587 section 4.1). */
const OPUS_CLOCK = 48_000;

/** True for a track that WebRTC carries. */
export function isPlayable(track: Track): track is WebrtcTrack {
  return isMediaTrack(track) && PAYLOAD_TYPES[track.codec] !== undefined;
}

/** RTP clock of a track. */
export function playClockRate(track: WebrtcTrack): number {
  return track.type === 'video' ? VIDEO_CLOCK : OPUS_CLOCK;
}

/** The offered formats for these tracks of one kind: each codec once, then the formats of error correction. */
export function offeredPayloads(tracks: readonly WebrtcTrack[], settings: WebrtcSettings): LocalPayload[] {
  const codecs = offeredCodecs(tracks, settings);
  const hasCorrection = settings.ulpfec && tracks.some(({ type }) => type === 'video');
  return hasCorrection ? [...codecs, ...correctionPayloads({ red: RED, ulpfec: ULPFEC, rtx: settings.rtx ? RED_RTX : null })] : codecs;
}

/** RED (RFC 2198), its retransmissions, and ULPFEC (RFC 5109), under these payload types. */
export function correctionPayloads(types: { readonly red: number; readonly ulpfec: number; readonly rtx: number | null }): LocalPayload[] {
  const plain = (payloadType: number, map: string, parameters = ''): LocalPayload => ({ payloadType, map, parameters, feedback: [] });
  const { red, ulpfec, rtx } = types;
  const repeated = rtx === null ? [] : [plain(rtx, `rtx/${VIDEO_CLOCK}`, `apt=${red}`)];
  return [plain(red, `red/${VIDEO_CLOCK}`), ...repeated, plain(ulpfec, `ulpfec/${VIDEO_CLOCK}`)];
}

function offeredCodecs(tracks: readonly WebrtcTrack[], settings: WebrtcSettings): LocalPayload[] {
  return OFFER_ORDER.flatMap((codec) => {
    const track = tracks.find((candidate) => candidate.codec === codec);
    const types = PAYLOAD_TYPES[codec];
    if (track === undefined || types === undefined) return [];
    const payload: LocalPayload = {
      payloadType: types.main,
      map: mapOf(track),
      parameters: parametersOf(track),
      feedback: feedbackOf(track, settings),
    };
    if (!settings.rtx || track.type === 'audio') return [payload];
    return [payload, { payloadType: types.rtx, map: `rtx/${VIDEO_CLOCK}`, parameters: `apt=${types.main}`, feedback: [] }];
  });
}

/** Header extensions we offer. */
export function offeredExtensions(kind: MediaKind, settings: WebrtcSettings): { id: number; uri: ExtensionUri }[] {
  const list: { id: number; uri: ExtensionUri }[] = [];
  // The estimate must include audio, or the path would seem narrower than it is.
  const transportCc = { id: ExtensionId.TRANSPORT_CC, uri: ExtensionUri.TRANSPORT_CC };
  const mid = { id: ExtensionId.MID, uri: ExtensionUri.MID };
  if (kind === 'audio') return settings.bandwidthEstimation === 'TransportCC' ? [transportCc, mid] : [mid];
  if (settings.playoutDelay !== undefined) list.push({ id: ExtensionId.PLAYOUT_DELAY, uri: ExtensionUri.PLAYOUT_DELAY });
  if (settings.bandwidthEstimation === 'TransportCC') list.push(transportCc);
  else list.push({ id: ExtensionId.ABS_SEND_TIME, uri: ExtensionUri.ABS_SEND_TIME });
  return [...list, mid];
}

/** The codec of one of our payload types; undefined for RTX, RED and ULPFEC. */
export function codecOf({ map }: LocalPayload): WebrtcTrack['codec'] | undefined {
  const [name] = map.split('/');
  return OFFER_ORDER.find((codec) => codec === name);
}

/** Value of `a=rtpmap`. */
export function mapOf(track: WebrtcTrack): string {
  return track.type === 'audio' ? `OPUS/${OPUS_CLOCK}/2` : `${track.codec}/${VIDEO_CLOCK}`;
}

/** Value of `a=fmtp`. Constrained baseline is announced whatever the stream's profile: browsers decode more than they admit. */
export function parametersOf(track: WebrtcTrack): string {
  if (track.type === 'audio') {
    const stereo = track.channels === 1 ? 0 : 1;
    return `sprop-stereo=${stereo};stereo=${stereo};minptime=10;useinbandfec=1`;
  }
  return track.codec === VideoCodec.H264 ? 'packetization-mode=1;profile-level-id=42e01f;level-asymmetry-allowed=1' : '';
}

function feedbackOf(track: WebrtcTrack, { rtx, bandwidthEstimation }: WebrtcSettings): string[] {
  if (track.type === 'audio') return bandwidthEstimation === 'REMB' ? [] : ['transport-cc'];
  return [ESTIMATION_FEEDBACK[bandwidthEstimation], 'ccm fir', ...(rtx ? ['nack'] : []), 'nack pli'];
}
