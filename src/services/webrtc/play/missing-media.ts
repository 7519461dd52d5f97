/** Media of a stream that WebRTC viewers do not get, in sentences that tell the operator the remedy. */
import type { Playlist, PlaylistRendition } from '../../../core/playlist.ts';
import { AudioCodec, VideoCodec } from '../../../media/codec.ts';
import type { Track } from '../../../media/track.ts';
import { isPlayable, type MediaKind, type WebrtcTrack } from './codec-plan.ts';

/** `key` is equal for cases that are the same to the operator. */
export interface MissingMedia {
  readonly key: string;
  readonly text: string;
}

/** Codecs of every browser. */
const COMMON = { video: VideoCodec.H264, audio: AudioCodec.OPUS } as const;
const MAX_NAMED_RENDITIONS = 8;

/** A viewer's request and the result of its negotiation. */
export interface ViewerTerms {
  readonly playlist: Playlist;
  readonly tracks: readonly Track[];
  /** Media that the viewer wants. */
  readonly asked: readonly MediaKind[];
  /** The media that it negotiated. */
  readonly agreed: readonly MediaKind[];
}

/** At most one entry for each kind. */
export function missingMedia({ playlist, tracks, asked, agreed }: ViewerTerms): MissingMedia[] {
  return asked.flatMap((kind) => {
    const variants = new Map<string, WebrtcTrack[]>();
    for (const track of tracks) {
      if (track.type !== kind || !isWanted(playlist, kind, track.variantName)) continue;
      const variant = variants.get(track.variantName) ?? [];
      variants.set(track.variantName, variant);
      variant.push(track);
    }
    if (variants.size === 0) return [];
    const unplayable = [...variants].filter(([, members]) => !members.some(isPlayable));
    const all = [...variants.values()].flat();
    if (unplayable.length === variants.size) {
      const text = `viewers over WebRTC get no ${kind}: it is in ${codecsOf(all)}, which WebRTC does not carry. ${cure(kind)}`;
      return [{ key: `${kind} not carried`, text }];
    }
    if (!agreed.includes(kind)) {
      const text = `a viewer over WebRTC gets no ${kind}: its player supports none of ${codecsOf(all.filter(isPlayable))}. ${cure(kind)}`;
      return [{ key: `${kind} not taken`, text }];
    }
    // The publisher's own playlist takes the first sendable track by design.
    if (unplayable.length === 0 || playlist.publisherDefault === true) return [];
    const names = renditionsWithout(playlist, kind, new Set(unplayable.map(([name]) => name)));
    if (names.length === 0) return [];
    const codecs = codecsOf(unplayable.flatMap(([, members]) => members));
    const text = `viewers over WebRTC do not get ${listed(names)}: the ${kind} is in ${codecs}, which WebRTC does not carry. ${cure(kind)}`;
    return [{ key: `${kind} of some renditions not carried`, text }];
  });
}

function isWanted({ renditions, publisherDefault }: Playlist, kind: MediaKind, variant: string): boolean {
  if (publisherDefault === true) return true;
  return renditions.some((rendition) => (kind === 'video' ? rendition.videoVariantName : rendition.audioVariantName) === variant);
}

/** Names of the renditions whose `kind` is among `unplayable`, except those whose video has other audio as well. */
function renditionsWithout({ renditions }: Playlist, kind: MediaKind, unplayable: ReadonlySet<string>): string[] {
  if (kind === 'video') return renditions.filter(({ videoVariantName }) => unplayable.has(videoVariantName)).map(({ name }) => name);
  const isLacking = ({ audioVariantName }: PlaylistRendition): boolean => unplayable.has(audioVariantName);
  const covered = new Set(renditions.filter((rendition) => !isLacking(rendition)).map(({ videoVariantName }) => videoVariantName));
  return renditions.filter((rendition) => isLacking(rendition) && !covered.has(rendition.videoVariantName)).map(({ name }) => name);
}

function listed(names: readonly string[]): string {
  const some = names.slice(0, MAX_NAMED_RENDITIONS).map((name) => `'${name}'`);
  return `${some.join(', ')}${names.length > MAX_NAMED_RENDITIONS ? ' and more' : ''}`;
}

function codecsOf(tracks: readonly WebrtcTrack[]): string {
  return [...new Set(tracks.map(({ codec }) => codec))].join(', ');
}

function cure(kind: MediaKind): string {
  return `Let an output profile make ${COMMON[kind]} of it`;
}
