/** Tags of multivariant playlists for writers, each as whole lines. Sections are those of rfc8216bis. */
import { quoted, yesOrNo } from './attribute-list.ts';

/** An alternative audio rendition. */
export interface AudioRendition {
  readonly groupId: string;
  readonly name: string;
  readonly default: boolean;
  readonly autoselect: boolean;
  readonly channels: number;
  readonly language: string;
  readonly characteristics: string;
  readonly uri: string;
}

/** EXT-X-MEDIA (§4.4.6.1) of type AUDIO. Empty language and characteristics are left out. */
export function serializeAudioRendition(rendition: AudioRendition): string {
  const attributes = [
    'TYPE=AUDIO',
    `GROUP-ID=${quoted(rendition.groupId)}`,
    `NAME=${quoted(rendition.name)}`,
    `DEFAULT=${yesOrNo(rendition.default)}`,
    `AUTOSELECT=${yesOrNo(rendition.autoselect)}`,
    `CHANNELS="${rendition.channels}"`,
  ];
  if (rendition.language !== '') attributes.push(`LANGUAGE=${quoted(rendition.language)}`);
  if (rendition.characteristics !== '') attributes.push(`CHARACTERISTICS=${quoted(rendition.characteristics)}`);
  attributes.push(`URI=${quoted(rendition.uri)}`);
  return `#EXT-X-MEDIA:${attributes.join(',')}\n`;
}

/** A rendition of subtitles. */
export interface SubtitleRendition {
  readonly groupId: string;
  readonly name: string;
  readonly default: boolean;
  readonly autoselect: boolean;
  readonly forced: boolean;
  readonly language: string;
  readonly uri: string;
}

/** EXT-X-MEDIA (§4.4.6.1) of type SUBTITLES. */
export function serializeSubtitleRendition(rendition: SubtitleRendition): string {
  const attributes = [
    'TYPE=SUBTITLES',
    `GROUP-ID=${quoted(rendition.groupId)}`,
    `NAME=${quoted(rendition.name)}`,
    `DEFAULT=${yesOrNo(rendition.default)}`,
    `AUTOSELECT=${yesOrNo(rendition.autoselect)}`,
    `FORCED=${yesOrNo(rendition.forced)}`,
  ];
  if (rendition.language !== '') attributes.push(`LANGUAGE=${quoted(rendition.language)}`);
  attributes.push(`URI=${quoted(rendition.uri)}`);
  return `#EXT-X-MEDIA:${attributes.join(',')}\n`;
}

/** A caption channel inside the video. */
export interface ClosedCaptions {
  readonly groupId: string;
  readonly name: string;
  /** `CC1` to `CC4`, `SERVICE1` to `SERVICE63`. */
  readonly instreamId: string;
}

/** EXT-X-MEDIA (§4.4.6.1) of type CLOSED-CAPTIONS: shown only at the viewer's request. */
export function serializeClosedCaptions({ groupId, name, instreamId }: ClosedCaptions): string {
  const group = `GROUP-ID=${quoted(groupId)},NAME=${quoted(name)}`;
  return `#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,${group},DEFAULT=NO,AUTOSELECT=YES,INSTREAM-ID=${quoted(instreamId)}\n`;
}

/** A variant stream and the URI of its media playlist. */
export interface Variant {
  /** Bits per second. */
  readonly bandwidth: number;
  /** Null for audio only. */
  readonly video: { readonly width: number; readonly height: number; readonly frameRate: number } | null;
  readonly codecs: readonly string[];
  /** GROUP-ID of the audio renditions; null without any. */
  readonly audioGroup: string | null;
  /** GROUP-ID of the subtitles; null without any. */
  readonly subtitleGroup: string | null;
  /** GROUP-ID of the captions in the video; null if none have been seen so far. */
  readonly captionGroup: string | null;
  readonly uri: string;
}

/** EXT-X-STREAM-INF (§4.4.6.2) and, on the next line, its URI. */
export function serializeVariant(variant: Variant): string {
  const attributes = [`BANDWIDTH=${variant.bandwidth}`];
  if (variant.video !== null) {
    if (variant.video.width > 0) attributes.push(`RESOLUTION=${variant.video.width}x${variant.video.height}`);
    attributes.push(`FRAME-RATE=${variant.video.frameRate.toFixed(3)}`);
  }
  attributes.push(`CODECS=${quoted(variant.codecs.join(','))}`);
  if (variant.audioGroup !== null) attributes.push(`AUDIO=${quoted(variant.audioGroup)}`);
  if (variant.subtitleGroup !== null) attributes.push(`SUBTITLES=${quoted(variant.subtitleGroup)}`);
  if (variant.captionGroup !== null) attributes.push(`CLOSED-CAPTIONS=${quoted(variant.captionGroup)}`);
  return `#EXT-X-STREAM-INF:${attributes.join(',')}\n${variant.uri}\n`;
}
