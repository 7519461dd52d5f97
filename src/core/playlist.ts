/** A playlist as output profiles declare it and stream information prints it. */
export interface PlaylistRendition {
  readonly name: string;
  /** Variant name of the video / audio tracks; empty when the rendition has none. */
  readonly videoVariantName: string;
  readonly audioVariantName: string;
  /** Which of the tracks with that variant name; -1 = all / first. */
  readonly videoIndexHint: number;
  readonly audioIndexHint: number;
}

/** Names its tracks by those of their encodes, so that it holds for every stream of the profile. */
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
  /** Made by a publisher for its own players: other servers make their own and are not told of it. */
  readonly publisherDefault?: true;
}
