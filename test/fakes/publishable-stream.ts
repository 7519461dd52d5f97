/** Stands in for an outbound stream of the core. */
import type { Playlist, PlaylistRendition } from '../../src/core/playlist.ts';
import type { EgressMeter, PublishableStream, TrackFigures } from '../../src/core/publishing.ts';
import type { Track } from '../../src/media/track.ts';

const FIGURES: TrackFigures = {
  bitrateAvg: 0,
  bitrateLatest: 0,
  framerateAvg: 0,
  framerateLatest: 0,
  keyFrameIntervalAvg: 0,
  keyFrameIntervalLatest: 0,
  deltaFramesSinceLastKeyFrame: 0,
  hasBframes: false,
};

export class FakeMeter implements EgressMeter {
  bytes = 0;
  sessions = 0;

  countBytes(bytes: number): void {
    this.bytes += bytes;
  }

  connect(_kind: string, count = 1): void {
    this.sessions += count;
  }

  disconnect(_kind: string, count = 1): void {
    this.sessions -= count;
  }
}

export class FakePublishableStream implements PublishableStream {
  readonly id = 1;
  readonly vhost = 'default';
  readonly app = 'app';
  readonly name = 'stream';
  tracks: readonly Track[] = [];
  playlists: readonly Playlist[] = [];
  readonly startedAt = Date.UTC(2026, 0, 11, 12, 0, 0);
  readonly meter = new FakeMeter();
  readonly measured = new Map<number, Partial<TrackFigures>>();

  figures(trackId: number): TrackFigures {
    return { ...FIGURES, ...this.measured.get(trackId) };
  }
}

/** A playlist for transport streams; renditions are `[video variant, audio variant]` or more of a rendition. */
export function tsPlaylist(fileName: string, renditions: readonly Partial<PlaylistRendition>[]): Playlist {
  const plain: PlaylistRendition = { name: 'r', videoVariantName: '', audioVariantName: '', videoIndexHint: -1, audioIndexHint: -1 };
  return {
    name: fileName,
    fileName,
    options: { webrtcAutoAbr: true, hlsChunklistPathDepth: -1, enableTsPackaging: true, enableSubtitles: true },
    renditions: renditions.map((rendition) => ({ ...plain, ...rendition })),
  };
}
