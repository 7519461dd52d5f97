import {
  type BypassIfMatchConfig,
  type EncodeAudioConfig,
  type EncodeImageConfig,
  type EncodeVideoConfig,
  type OutputProfileConfig,
  readOutputProfile,
} from '../config/index.ts';
import type { AudioTrack, Track, VideoTrack } from '../media/track.ts';

/** The output profile of streams that pass untouched (`PassthroughOutputProfile`). Tracks that have names keep them. */
export const PASSTHROUGH_PROFILE: OutputProfileConfig = readOutputProfile({
  name: 'passthrough',
  outputStreamName: '${OriginStreamName}',
  encodes: { videos: [{ bypass: true }], audios: [{ bypass: true }] },
}).typed;

/** Difference below which two frame rates are equal, because they are written with two or three decimals. */
const SAME_FRAMERATE = 0.0005;

type Operator = 'eq' | 'lte' | 'gte';

interface Planned {
  /** Identifies the encode and its inbound track; the outbound track keeps its id by this key while the profile exists. */
  readonly key: string;
  readonly source: Track;
  /** Name of the encode; empty for data. */
  readonly variantName: string;
}

/** An outbound track that a transcoder makes. */
export type PlannedEncode = Planned &
  (
    | { readonly kind: 'video'; readonly encode: EncodeVideoConfig }
    | { readonly kind: 'audio'; readonly encode: EncodeAudioConfig }
    | { readonly kind: 'image'; readonly encode: EncodeImageConfig }
  );

/** An outbound track, bypassed or encoded. */
export type PlannedTrack = PlannedEncode | (Planned & { readonly kind: 'bypass' });

/** Knowledge about inbound tracks beyond their own descriptions. */
export interface SourceFigures {
  /** Frames per second; 0 when unknown. */
  framerate(track: VideoTrack): number;
}

const ANNOUNCED: SourceFigures = { framerate: ({ framerateConf }) => framerateConf };

/** The profile cannot be planned before the frame rates of the source are known. */
export function needsFramerate({ encodes }: OutputProfileConfig): boolean {
  const asks = ({ bypassIfMatch }: { readonly bypassIfMatch?: BypassIfMatchConfig | undefined }): boolean =>
    bypassIfMatch?.framerate !== undefined;
  return encodes.videos.some((encode) => !encode.bypass && asks(encode)) || encodes.images.some(asks);
}

/** Applies `profile` to `inbound`. The outbound tracks are in this order: videos, audios, images, data and subtitles. */
export function planOutput(profile: OutputProfileConfig, inbound: readonly Track[], figures = ANNOUNCED): readonly PlannedTrack[] {
  const planned: PlannedTrack[] = [];
  // Playlists of the source name its tracks by their original names.
  const nameOf = (encode: { readonly name: string }, { variantName }: Track): string =>
    profile === PASSTHROUGH_PROFILE && variantName !== '' ? variantName : encode.name;
  profile.encodes.videos.forEach((encode, index) => {
    for (const source of inbound) {
      if (source.type !== 'video') continue;
      const common = { key: `video ${index} ${source.id}`, source, variantName: nameOf(encode, source) };
      planned.push(
        encode.bypass || matchesVideo(encode, source, figures) ? { ...common, kind: 'bypass' } : { ...common, kind: 'video', encode },
      );
    }
  });
  profile.encodes.audios.forEach((encode, index) => {
    for (const source of inbound) {
      if (source.type !== 'audio') continue;
      const common = { key: `audio ${index} ${source.id}`, source, variantName: nameOf(encode, source) };
      planned.push(encode.bypass || matchesAudio(encode, source) ? { ...common, kind: 'bypass' } : { ...common, kind: 'audio', encode });
    }
  });
  profile.encodes.images.forEach((encode, index) => {
    for (const source of inbound) {
      if (source.type !== 'video') continue;
      const common = { key: `image ${index} ${source.id}`, source, variantName: encode.name };
      planned.push(matchesImage(encode, source, figures) ? { ...common, kind: 'bypass' } : { ...common, kind: 'image', encode });
    }
  });
  for (const source of inbound) {
    if (source.type === 'data') planned.push({ key: `data ${source.id}`, source, variantName: '', kind: 'bypass' });
    if (source.type === 'subtitle') planned.push({ key: `subtitle ${source.id}`, source, variantName: source.variantName, kind: 'bypass' });
  }
  return planned;
}

/** A track whose codec differs from the encode's cannot be its image, whatever the rule says. */
function matchesImage(encode: EncodeImageConfig, source: VideoTrack, figures: SourceFigures): boolean {
  return sameCodec('eq', encode.codec, source.codec) === true && matchesVideo(encode, source, figures);
}

function matchesVideo(encode: EncodeVideoConfig | EncodeImageConfig, source: VideoTrack, figures: SourceFigures): boolean {
  const rule = encode.bypassIfMatch;
  if (rule === undefined) return false;
  const conditions = [
    sameCodec(rule.codec, encode.codec, source.codec),
    compare(rule.width, source.width, encode.width),
    compare(rule.height, source.height, encode.height),
    compareFramerate(rule.framerate, figures.framerate(source), encode.framerate),
    sameAspect(rule.sAR, encode, source),
  ];
  return allHold(conditions);
}

function matchesAudio(encode: EncodeAudioConfig, source: AudioTrack): boolean {
  const rule = encode.bypassIfMatch;
  if (rule === undefined) return false;
  const conditions = [
    sameCodec(rule.codec, encode.codec, source.codec),
    compare(rule.samplerate, source.sampleRate, encode.samplerate),
    compare(rule.channel, source.channels, encode.channel),
  ];
  return allHold(conditions);
}

/** At least one condition is given and all given ones hold. */
function allHold(conditions: readonly (boolean | null)[]): boolean {
  const given = conditions.filter((condition) => condition !== null);
  return given.length > 0 && given.every(Boolean);
}

function sameCodec(rule: string | undefined, wanted: string | undefined, actual: string): boolean | null {
  if (rule === undefined) return null;
  // `h264_x264` names codec and encoder module.
  return (wanted ?? '').split('_')[0]?.toUpperCase() === actual;
}

/** An encode that leaves a side open keeps the aspect ratio of its source. */
function sameAspect(rule: string | undefined, encode: EncodeVideoConfig | EncodeImageConfig, source: VideoTrack): boolean | null {
  if (rule === undefined) return null;
  if (encode.width === 0 || encode.height === 0) return true;
  return encode.width * source.height === encode.height * source.width;
}

/** An unknown rate matches nothing; 29.97 means 30000/1001. */
function compareFramerate(rule: string | undefined, actual: number, wanted: number): boolean | null {
  if (rule === undefined) return null;
  if (actual <= 0) return false;
  return compare(rule, Math.abs(actual / wanted - 1) < SAME_FRAMERATE ? wanted : actual, wanted);
}

function compare(rule: string | undefined, actual: number, wanted: number): boolean | null {
  switch (rule?.toLowerCase() as Operator | undefined) {
    case undefined:
      return null;
    case 'eq':
      return actual === wanted;
    case 'lte':
      return actual <= wanted;
    case 'gte':
      return actual >= wanted;
    default:
      return false;
  }
}
