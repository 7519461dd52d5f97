/** Attributes of EXT-X-STREAM-INF for a variant, RFC 8216 §4.3.4.2. */
import type { TrackFigures } from '../../../../core/publishing.ts';
import type { Track } from '../../../../media/track.ts';
import type { HlsVariant } from './variants.ts';

/** Written while nothing is measured or announced. */
const UNKNOWN_BANDWIDTH = 1_000_000;
const UNKNOWN_FRAMERATE = 30;

/** The attribute list; `figures` gives the measured values of a track, `groups` are the GROUP-IDs of subtitles and of captions, null for none. */
export function streamInfAttributes(
  variant: HlsVariant,
  figures: (trackId: number) => TrackFigures,
  groups: { readonly subtitles: string | null; readonly captions: string | null } = { subtitles: null, captions: null },
): string {
  const tracks = [...(variant.video === null ? [] : [variant.video]), ...variant.audios];
  const sum = (bitrate: (track: Track) => number): number =>
    Math.round(tracks.reduce((total, track) => total + bitrate(track), 0)) || UNKNOWN_BANDWIDTH;
  const average = (track: Track): number => track.bitrateConf || figures(track.id).bitrateAvg;
  const attributes = [
    `BANDWIDTH=${sum((track) => figures(track.id).bitrateLatest || average(track))}`,
    `AVERAGE-BANDWIDTH=${sum(average)}`,
  ];
  if (variant.video !== null) {
    const { id, width, height, framerateConf } = variant.video;
    const framerate = framerateConf || figures(id).framerateAvg || UNKNOWN_FRAMERATE;
    attributes.push(`RESOLUTION=${width}x${height}`, `FRAME-RATE=${framerate.toFixed(3)}`);
  }
  const codecs = [...new Set(tracks.map(({ codecString }) => codecString))];
  attributes.push(`CODECS="${codecs.join(',')}"`);
  if (groups.subtitles !== null) attributes.push(`SUBTITLES="${groups.subtitles}"`);
  if (groups.captions !== null) attributes.push(`CLOSED-CAPTIONS="${groups.captions}"`);
  return attributes.join(',');
}
