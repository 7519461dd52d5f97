/** Names of LL-HLS resources: written into playlists, read from requests. */

/** The type of a track, as file names have it. */
export type MediaType = 'video' | 'audio' | 'subtitle';

/** The resource that a file name requests. Numbers are as written; they need not exist. */
export type HlsResource =
  | { readonly kind: 'chunklist'; readonly trackId: number; readonly type: MediaType; readonly runMark: string }
  | { readonly kind: 'init'; readonly trackId: number; readonly generation: number; readonly type: MediaType; readonly runMark: string }
  | { readonly kind: 'segment'; readonly trackId: number; readonly msn: number; readonly type: MediaType; readonly runMark: string }
  | {
      readonly kind: 'part';
      readonly trackId: number;
      readonly msn: number;
      readonly part: number;
      readonly type: MediaType;
      readonly runMark: string;
    };

/** Ending of the names of segments and parts. */
export const MEDIA_EXTENSIONS: Readonly<Record<MediaType, string>> = { video: 'm4s', audio: 'm4s', subtitle: 'vtt' };
const NAME =
  /^(chunklist|init|seg|part)_(\d{1,9})(?:_(\d{1,15}))?(?:_(\d{1,9}))?_(video|audio|subtitle)_([A-Za-z0-9]+)_llhls\.(m4s|vtt|m3u8)$/;

/** Writes the names of one track. */
export class ResourceNames {
  readonly chunklist: string;
  readonly #trackId: number;
  readonly #suffix: string;

  constructor(track: { id: number; type: MediaType }, runMark: string) {
    this.#trackId = track.id;
    this.#suffix = `_${track.type}_${runMark}_llhls.${MEDIA_EXTENSIONS[track.type]}`;
    this.chunklist = `chunklist_${track.id}_${track.type}_${runMark}_llhls.m3u8`;
  }

  /** Init segment; every change of the track's configuration makes a new generation, the first has no number. */
  init(generation: number): string {
    return generation === 0 ? `init_${this.#trackId}${this.#suffix}` : `init_${this.#trackId}_${generation}${this.#suffix}`;
  }

  segment(msn: number): string {
    return `seg_${this.#trackId}_${msn}${this.#suffix}`;
  }

  part(msn: number, part: number): string {
    return `part_${this.#trackId}_${msn}_${part}${this.#suffix}`;
  }
}

/** Parses a file name; null if it is not one of this service. */
export function parseResourceName(file: string): HlsResource | null {
  const match = NAME.exec(file);
  if (match === null) return null;
  const [, prefix, track, first, second, type, runMark, extension] = match;
  if (track === undefined || runMark === undefined || (type !== 'video' && type !== 'audio' && type !== 'subtitle')) return null;
  if (extension !== (prefix === 'chunklist' ? 'm3u8' : MEDIA_EXTENSIONS[type])) return null;
  const base = { trackId: Number(track), type, runMark } as const;
  if (prefix === 'part') return second === undefined ? null : { kind: 'part', ...base, msn: Number(first), part: Number(second) };
  if (second !== undefined) return null;
  if (prefix === 'seg') return first === undefined ? null : { kind: 'segment', ...base, msn: Number(first) };
  // Subtitles need nothing before them.
  if (prefix === 'init' && type === 'subtitle') return null;
  if (prefix === 'init') return { kind: 'init', ...base, generation: Number(first ?? 0) };
  return first === undefined ? { kind: 'chunklist', ...base } : null;
}
