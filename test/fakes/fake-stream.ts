/** A stream as publishers see it, with fixed figures. */
import type { Playlist } from '../../src/core/playlist.ts';
import type { PublishableStream, SessionHandle, SessionRequest, TrackFigures } from '../../src/core/publishing.ts';
import { SegmentMarks } from '../../src/core/segment-marks.ts';
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
  maxWidth: 0,
  maxHeight: 0,
};

export class FakeStream implements PublishableStream {
  readonly id: number = 1;
  readonly vhost = 'default';
  readonly app: string = 'app';
  readonly name: string = 'stream';
  readonly sourceName: string = 'source';
  readonly fromOriginMap: boolean = false;
  tracks: readonly Track[] = [];
  playlists: readonly Playlist[] = [];
  startedAt = Date.UTC(2026, 0, 2, 3, 4, 5);
  readonly estimatedStart = (): number => this.startedAt;
  readonly marks = new SegmentMarks();
  bytes = 0;
  viewers = 0;
  /** Sessions open now. */
  readonly sessions: { readonly request: SessionRequest; bytes: number }[] = [];
  readonly keyframeRequests: number[] = [];
  /** Reasons of ended sessions. */
  readonly ends: (string | undefined)[] = [];
  /** Number of `wake` calls. */
  comings = 0;
  readonly figuresById = new Map<number, Partial<TrackFigures>>();
  readonly meter = {
    countBytes: (bytes: number): void => {
      this.bytes += bytes;
    },
    connect: (_kind: string, count = 1): void => {
      this.viewers += count;
    },
    disconnect: (_kind: string, count = 1): void => {
      this.viewers -= count;
    },
  };

  /** Limit of viewers. */
  maxViewers = Number.POSITIVE_INFINITY;

  hasRoom(): boolean {
    return this.sessions.length < this.maxViewers;
  }

  openSession(request: SessionRequest): SessionHandle {
    const session = { request, bytes: 0 };
    this.sessions.push(session);
    this.viewers += 1;
    return {
      countBytes: (bytes) => {
        session.bytes += bytes;
      },
      close: (reason) => {
        const at = this.sessions.indexOf(session);
        if (at < 0) return;
        this.sessions.splice(at, 1);
        this.ends.push(reason);
        this.viewers -= 1;
      },
    };
  }

  wake(): void {
    this.comings += 1;
  }

  requestKeyframe(trackId: number): void {
    this.keyframeRequests.push(trackId);
  }

  figures(trackId: number): TrackFigures {
    return { ...FIGURES, ...this.figuresById.get(trackId) };
  }
}
