/** A playlist as output profiles declare it and stream information prints it. */
export interface PlaylistRendition {
  readonly name: string;
  /** Variant name of the video / audio tracks; empty when the rendition has none. */
  readonly videoVariantName: string;
  readonly audioVariantName: string;
  /** Index of the track among those with the variant name; -1: all, or the first. */
  readonly videoIndexHint: number;
  readonly audioIndexHint: number;
}

/** Refers to tracks by the names of their encodes, so it applies to every stream of the profile. */
export interface Playlist {
  readonly name: string;
  /** URL part without extension. */
  readonly fileName: string;
  readonly options: {
    readonly webrtcAutoAbr: boolean;
    /** -1 absolute, 0 file only, 1 `../stream/`, 2 `../../app/stream/`. */
    readonly hlsChunklistPathDepth: number;
    readonly enableTsPackaging: boolean;
    readonly enableSubtitles: boolean;
  };
  readonly renditions: readonly PlaylistRendition[];
  /** Made by a publisher for its own players; not announced to other servers, which make their own. */
  readonly publisherDefault?: true;
}
