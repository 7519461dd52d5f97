import type { Packet } from '../media/packet.ts';
import type { AudioTrack, Track, VideoTrack } from '../media/track.ts';
import type { OutboundStream } from './outbound-stream.ts';

type Operator = 'eq' | 'lte' | 'gte';

/** The part of an encode that decides whether a track crosses untouched. */
interface EncodeRule {
  readonly name?: string | undefined;
  readonly bypass: boolean;
  readonly codec?: string | undefined;
  readonly bypassIfMatch?: { readonly codec?: string | undefined } | undefined;
}

export interface VideoEncodeRule extends EncodeRule {
  readonly width: number;
  readonly height: number;
  readonly framerate: number;
  readonly bypassIfMatch?:
    | {
        readonly codec?: string | undefined;
        readonly width?: string | undefined;
        readonly height?: string | undefined;
        readonly framerate?: string | undefined;
      }
    | undefined;
}

export interface AudioEncodeRule extends EncodeRule {
  readonly samplerate: number;
  readonly channel: number;
  readonly bypassIfMatch?:
    | { readonly codec?: string | undefined; readonly samplerate?: string | undefined; readonly channel?: string | undefined }
    | undefined;
}

/** An output profile as far as bypassing is concerned. */
export interface ProfileRules {
  readonly name: string;
  readonly outputStreamName: string;
  readonly encodes?:
    | {
        readonly videos: readonly VideoEncodeRule[];
        readonly audios: readonly AudioEncodeRule[];
        readonly images: readonly { readonly name?: string | undefined }[];
      }
    | undefined;
}

/** One outbound track and the inbound track it is made from. */
export interface PlannedTrack {
  readonly sourceId: number;
  readonly track: Track;
}

export interface OutputPlan {
  readonly tracks: readonly PlannedTrack[];
  /** Encodes that would need a transcoder, by name. */
  readonly unserved: readonly string[];
}

/** What `profile` makes of `inbound`: bypassed tracks by reference; encodes are named in `unserved`. */
export function planOutput(profile: ProfileRules, inbound: readonly Track[]): OutputPlan {
  const tracks: PlannedTrack[] = [];
  const unserved: string[] = [];
  const add = (source: Track, variantName: string): void => {
    tracks.push({ sourceId: source.id, track: { ...source, id: tracks.length, variantName, bypass: true } });
  };
  profile.encodes?.videos.forEach((encode, index) => {
    const name = encode.name ?? `video_${index}`;
    for (const source of inbound) {
      if (source.type !== 'video') continue;
      if (encode.bypass || matchesVideo(encode, source)) add(source, name);
      else unserved.push(name);
    }
  });
  profile.encodes?.audios.forEach((encode, index) => {
    const name = encode.name ?? `audio_${index}`;
    for (const source of inbound) {
      if (source.type !== 'audio') continue;
      if (encode.bypass || matchesAudio(encode, source)) add(source, name);
      else unserved.push(name);
    }
  });
  profile.encodes?.images.forEach((encode, index) => {
    if (inbound.some((source) => source.type === 'video')) unserved.push(encode.name ?? `image_${index}`);
  });
  for (const source of inbound) {
    if (source.type === 'data') add(source, '');
  }
  return { tracks, unserved };
}

function matchesVideo(encode: VideoEncodeRule, source: VideoTrack): boolean {
  const rule = encode.bypassIfMatch;
  if (rule === undefined) return false;
  const conditions = [
    sameCodec(rule.codec, encode.codec, source.codec),
    compare(rule.width, source.width, encode.width),
    compare(rule.height, source.height, encode.height),
    compare(rule.framerate, source.framerateConf, encode.framerate),
  ];
  return allHold(conditions);
}

function matchesAudio(encode: AudioEncodeRule, source: AudioTrack): boolean {
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

/** Carries packets of an inbound stream to one outbound stream, under the outbound track's identity. */
export class OutboundMap {
  readonly profileName: string;
  readonly stream: OutboundStream;
  readonly #routes = new Map<number, Track[]>();

  constructor(profileName: string, stream: OutboundStream) {
    this.profileName = profileName;
    this.stream = stream;
  }

  /** Replaces the routes by those of `plan`. */
  follow(plan: OutputPlan): void {
    this.#routes.clear();
    for (const { sourceId, track } of plan.tracks) {
      const routes = this.#routes.get(sourceId);
      if (routes === undefined) this.#routes.set(sourceId, [track]);
      else routes.push(track);
    }
  }

  route(packet: Packet): void {
    const routes = this.#routes.get(packet.track.id);
    if (routes === undefined) return;
    for (const track of routes) {
      this.stream.push({
        track,
        pts: packet.pts,
        dts: packet.dts,
        duration: packet.duration,
        keyframe: packet.keyframe,
        data: packet.data,
      });
    }
  }
}
