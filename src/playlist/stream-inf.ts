/** EXT-X-STREAM-INF (rfc8216bis §4.4.6.2). */
import { quoted } from './attribute-list.ts';

const TAG = '#EXT-X-STREAM-INF';

/** A variant stream and the URI of its media playlist. */
export interface Variant {
  /** Bits per second. */
  readonly bandwidth: number;
  /** Null for audio only. */
  readonly video: { readonly width: number; readonly height: number; readonly frameRate: number } | null;
  readonly codecs: readonly string[];
  /** GROUP-ID of the audio renditions; null when there are none. */
  readonly audioGroup: string | null;
  readonly uri: string;
}

/** The tag and, on the next line, its URI. */
export function serializeVariant(variant: Variant): string {
  const attributes = [`BANDWIDTH=${variant.bandwidth}`];
  if (variant.video !== null) {
    if (variant.video.width > 0) attributes.push(`RESOLUTION=${variant.video.width}x${variant.video.height}`);
    attributes.push(`FRAME-RATE=${variant.video.frameRate.toFixed(3)}`);
  }
  attributes.push(`CODECS=${quoted(variant.codecs.join(','))}`);
  if (variant.audioGroup !== null) attributes.push(`AUDIO=${quoted(variant.audioGroup)}`);
  return `${TAG}:${attributes.join(',')}\n${variant.uri}\n`;
}
