/** Numbers for kinds of tracks, codecs and layouts in OVT descriptions and media packets. */
import { AudioCodec, VideoCodec } from '../../media/codec.ts';
import { EventFormat, type EventTarget, type TimedEvent } from '../../media/timed-event.ts';

/** Kinds of tracks, in descriptions and in media packets. */
export const OvtMediaType = { VIDEO: 0, AUDIO: 1, DATA: 2 } as const;

/** Whether a media packet is a keyframe. */
export const OvtFlag = { UNKNOWN: 0, NONE: 1, KEYFRAME: 2 } as const;

/** How the bytes of a media packet are laid out. */
export const OvtFormat = {
  /** As a byte: -1. */
  UNKNOWN: 0xff,
  H264_ANNEXB: 1,
  H265_ANNEXB: 4,
  VP8: 6,
  AAC_RAW: 8,
  AAC_ADTS: 10,
  OPUS: 12,
  MP3: 14,
  JPEG: 15,
  PNG: 16,
  WEBP: 17,
  ID3: 18,
  CONCLUSION: 19,
  CUE: 20,
  AMF: 21,
  SCTE35: 23,
} as const;

/** Whether the data are NAL units; for events, the kind of tracks that carry them. */
export const OvtPacketType = { RAW: 1, NALU: 3, EVENT: 4, VIDEO_EVENT: 5, AUDIO_EVENT: 6 } as const;

/** Formats of events that OVT carries; SEI is inside the frames already. */
const EVENT_FORMATS: Readonly<Partial<Record<EventFormat, number>>> = {
  [EventFormat.ID3]: OvtFormat.ID3,
  [EventFormat.CONCLUSION]: OvtFormat.CONCLUSION,
  [EventFormat.CUE]: OvtFormat.CUE,
  [EventFormat.AMF]: OvtFormat.AMF,
  [EventFormat.SCTE35]: OvtFormat.SCTE35,
};
const EVENT_TYPES: Readonly<Record<EventTarget, number>> = {
  all: OvtPacketType.EVENT,
  video: OvtPacketType.VIDEO_EVENT,
  audio: OvtPacketType.AUDIO_EVENT,
};

/** The wire numbers of an event; null for an event that is not relayed. */
export function eventNumbers({ format, target }: TimedEvent): { readonly format: number; readonly packetType: number } | null {
  const number = EVENT_FORMATS[format];
  return number === undefined ? null : { format: number, packetType: EVENT_TYPES[target] };
}

/** The event with these numbers; null for unknown numbers. */
export function eventOf(format: number, packetType: number): TimedEvent | null {
  const [known] = Object.entries(EVENT_FORMATS).find(([, number]) => number === format) ?? [];
  const [target] = Object.entries(EVENT_TYPES).find(([, number]) => number === packetType) ?? [];
  return known === undefined || target === undefined ? null : { format: known as EventFormat, target: target as EventTarget };
}

const CODEC_IDS: Readonly<Partial<Record<VideoCodec | AudioCodec, number>>> = {
  [VideoCodec.H264]: 1,
  [VideoCodec.H265]: 2,
  [VideoCodec.VP8]: 3,
  [VideoCodec.VP9]: 4,
  [VideoCodec.AV1]: 5,
  [AudioCodec.AAC]: 7,
  [AudioCodec.MP3]: 8,
  [AudioCodec.OPUS]: 9,
  [VideoCodec.JPEG]: 10,
  [VideoCodec.PNG]: 11,
  [VideoCodec.WEBP]: 12,
};

/**
 * Numbers of codecs that only supporting edges get (`codecs` of a request): an edge of the reference never becomes ready to play a stream
 * whose description names AV1.
 */
export const UNCOMMON_CODEC_IDS: readonly number[] = [5];

const VIDEO_BY_ID = new Map(Object.values(VideoCodec).map((codec) => [CODEC_IDS[codec], codec]));
const AUDIO_BY_ID = new Map(Object.values(AudioCodec).map((codec) => [CODEC_IDS[codec], codec]));

/** The number of a codec; undefined if OVT has none. */
export function codecIdOf(codec: VideoCodec | AudioCodec): number | undefined {
  return CODEC_IDS[codec];
}

/** The video codec of a number; undefined for other numbers. */
export function videoCodecOf(id: number): VideoCodec | undefined {
  return VIDEO_BY_ID.get(id);
}

/** The audio codec of a number; undefined for other numbers. */
export function audioCodecOf(id: number): AudioCodec | undefined {
  return AUDIO_BY_ID.get(id);
}

/** Speaker masks by number of channels; the front pair is 3, the centre 4, the subwoofer 8. */
const LAYOUTS: readonly number[] = [0, 0x4, 0x3, 0x7, 0x107, 0x607, 0x60f, 0x70f, 0x63f];
const STEREO = 0x3;

/** The usual layout of this number of channels. */
export function layoutOf(channels: number): number {
  return LAYOUTS[channels] ?? STEREO;
}

/** The number of speakers in a layout. */
export function channelsOf(layout: number): number {
  let count = 0;
  for (let left = layout >>> 0; left !== 0; left &= left - 1) count += 1;
  return count;
}
