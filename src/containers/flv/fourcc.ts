/** Codec names of Enhanced RTMP and the codec numbers of classic FLV. */
import { AudioCodec, VideoCodec } from '../../media/codec.ts';

const VIDEO_BY_FOURCC: ReadonlyMap<string, VideoCodec> = new Map([
  ['avc1', VideoCodec.H264],
  ['hvc1', VideoCodec.H265],
  ['vp08', VideoCodec.VP8],
  ['vp09', VideoCodec.VP9],
  ['av01', VideoCodec.AV1],
]);

const AUDIO_BY_FOURCC: ReadonlyMap<string, AudioCodec> = new Map([
  ['mp4a', AudioCodec.AAC],
  ['Opus', AudioCodec.OPUS],
  ['.mp3', AudioCodec.MP3],
]);

/** CodecID of a classic video tag; 12 is the widespread extension for HEVC. */
export const FlvVideoCodecId = { AVC: 7, HEVC: 12 } as const;
/** SoundFormat of an audio tag; 9 announces the enhanced header. */
export const FlvSoundFormat = { MP3: 2, EX_HEADER: 9, AAC: 10, MP3_8K: 14 } as const;

/** Names of classic codec numbers that this server does not accept (FLV 10.1, E.4.3.1 and E.4.2.1). */
const FOREIGN_VIDEO: ReadonlyMap<string, string> = new Map([
  ['1', 'JPEG'],
  ['2', 'Sorenson H.263 (FLV1)'],
  ['3', 'Screen Video'],
  ['4', 'VP6'],
  ['5', 'VP6 with alpha'],
  ['6', 'Screen Video 2'],
]);
const FOREIGN_AUDIO: ReadonlyMap<string, string> = new Map([
  ['0', 'PCM'],
  ['1', 'ADPCM'],
  ['3', 'PCM'],
  ['4', 'Nellymoser'],
  ['5', 'Nellymoser'],
  ['6', 'Nellymoser'],
  ['7', 'G.711 A-law'],
  ['8', 'G.711 mu-law'],
  ['11', 'Speex'],
]);

/** Readable name of an unsupported codec; `text` is the number or FourCC of the tag. */
export function unsupportedCodecName(type: 'video' | 'audio', text: string): string {
  const name = (type === 'video' ? FOREIGN_VIDEO : FOREIGN_AUDIO).get(text);
  // The four bytes of a FourCC may be unprintable.
  return name ?? `codec ${JSON.stringify(text.replace(/[^\x20-\x7e]/g, '?'))}`;
}

/** FourCC texts of the supported video codecs. */
export const VIDEO_FOURCCS: readonly string[] = [...VIDEO_BY_FOURCC.keys()];
/** FourCC texts of the supported audio codecs. */
export const AUDIO_FOURCCS: readonly string[] = [...AUDIO_BY_FOURCC.keys()];

/** The codec of a FourCC; null if it is not supported. */
export function videoCodecOfFourCc(text: string): VideoCodec | null {
  return VIDEO_BY_FOURCC.get(text) ?? null;
}

/** The codec of a FourCC; null if it is not supported. */
export function audioCodecOfFourCc(text: string): AudioCodec | null {
  return AUDIO_BY_FOURCC.get(text) ?? null;
}

/** The FourCC of a codec; null if FLV has none. */
export function fourCcOf(codec: VideoCodec | AudioCodec): string | null {
  for (const [text, known] of [...VIDEO_BY_FOURCC, ...AUDIO_BY_FOURCC]) if (known === codec) return text;
  return null;
}

/** `videocodecid` of metadata: an FLV number, a FourCC as a number or as text, or the words of older encoders. */
export function videoCodecOfMetadata(value: unknown): VideoCodec | null {
  if (value === FlvVideoCodecId.AVC || value === 'H264Avc') return VideoCodec.H264;
  if (value === FlvVideoCodecId.HEVC) return VideoCodec.H265;
  return videoCodecOfFourCc(fourCcText(value));
}

/** `audiocodecid` of metadata: an FLV number or a FourCC as a number or as text. */
export function audioCodecOfMetadata(value: unknown): AudioCodec | null {
  if (value === FlvSoundFormat.AAC) return AudioCodec.AAC;
  if (value === FlvSoundFormat.MP3 || value === FlvSoundFormat.MP3_8K) return AudioCodec.MP3;
  return audioCodecOfFourCc(fourCcText(value));
}

function fourCcText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > 0xffff_ffff) return '';
  return String.fromCharCode(value >>> 24, (value >>> 16) & 0xff, (value >>> 8) & 0xff, value & 0xff);
}
