/** The core as publishers see it: outbound streams to attach to, and packets. */
import type { Packet } from '../media/packet.ts';
import type { Track } from '../media/track.ts';
import type { CloseReason } from './ingest.ts';
import type { PublisherKind } from './kinds.ts';
import type { Playlist } from './playlist.ts';
import type { SegmentMarks } from './segment-marks.ts';
import type { Urgency } from './urgency.ts';

/** Reason of a refusal when `PublishableStream.hasRoom` returns false. */
export const NO_ROOM = 'the application has all the viewers that its publisher may have (MaxConnection)';

/** Measured figures of a track, updated while packets pass. */
export interface TrackFigures {
  /** Bits per second: average since start, and over the last second. */
  readonly bitrateAvg: number;
  readonly bitrateLatest: number;
  readonly framerateAvg: number;
  readonly framerateLatest: number;
  /** Frames between keyframes. */
  readonly keyFrameIntervalAvg: number;
  readonly keyFrameIntervalLatest: number;
  readonly deltaFramesSinceLastKeyFrame: number;
  readonly hasBframes: boolean;
  /** The largest frame seen, pixels; 0 for audio. */
  readonly maxWidth: number;
  readonly maxHeight: number;
}

/** Bytes and sessions, counted by publishers, rolled up to application, virtual host and server. */
export interface EgressMeter {
  countBytes(bytes: number): void;
  /** A connection began / ended (`count` at once). Viewers are counted by `PublishableStream.openSession`. */
  connect(kind: PublisherKind, count?: number): void;
  disconnect(kind: PublisherKind, count?: number): void;
}

/** A publisher's description of a new viewer. */
export interface SessionRequest {
  readonly kind: PublisherKind;
  /** Unique among the viewers of the inbound stream; the API addresses the session by it. */
  readonly id: string;
  /** Where the viewer is: an address, with a port where a connection is one viewer. */
  readonly client?: string | undefined;
  /** The viewer must be disconnected for good. Its session is closed already. */
  readonly onTerminate: (reason: string) => void;
}

/** A viewer session that is counted and that the API lists; its opener closes it. */
export interface SessionHandle {
  /** Counts bytes sent to this viewer. The stream's meter counts separately. */
  countBytes(bytes: number): void;
  /** `reason` is for the log and the notices. Idempotent. */
  close(reason?: string): void;
}

/** The outbound stream as publishers see it. */
export interface PublishableStream {
  /** Unique while the server runs. */
  readonly id: number;
  readonly vhost: string;
  readonly app: string;
  readonly name: string;
  /** Name of its inbound stream. */
  readonly sourceName: string;
  /** The stream comes from another server of the origin map, so it is not registered there. */
  readonly fromOriginMap: boolean;
  /** Tracks as they are now; [] until the stream has started. */
  readonly tracks: readonly Track[];
  /** Configured playlists and the publishers' defaults. */
  readonly playlists: readonly Playlist[];
  /** Wall clock of media time 0, ms since the epoch; moves when the clock of the source pauses or jumps. */
  readonly startedAt: number;
  /** As `startedAt`, as close as the packets of the last seconds tell it. */
  estimatedStart(): number;
  /** Where segments begin; told by the publisher that numbers them. */
  readonly marks: SegmentMarks;
  readonly meter: EgressMeter;
  /** Another viewer may begin, as far as `MaxConnection` of the application's publisher goes. */
  hasRoom(kind: PublisherKind): boolean;
  /** Counts and lists a viewer. The publisher limits their number. */
  openSession(request: SessionRequest): SessionHandle;
  /** A reader without a session needs packets from now on; the publisher's `urgency` has been raised already. */
  wake(): void;
  figures(trackId: number): TrackFigures;
  /** Asks for a keyframe of a video track soon: its encoder, or the source if the track is bypassed. May be called often. */
  requestKeyframe(trackId: number): void;
}

/**
 * One stream inside a publisher. The core calls it directly, one publisher after the other, without a queue: a publisher with slow viewers,
 * receivers or disks has a bounded queue for each. A publisher that throws loses the stream.
 */
export interface PublisherStream {
  /** How soon the stream needs packets; packets that can wait come in batches. Default: `REAL_TIME`. */
  readonly urgency?: Urgency;
  /** With `LOW_LATENCY`: the wall clock, ms, before which no packet completes a part that viewers wait for. Default: any packet may. */
  readonly neededAt?: number;
  /** Sentences about media that viewers do not get or get badly, with remedies; each is logged as well. Default: none. */
  readonly warnings?: readonly string[];
  /** Tracks are known, or changed mid-stream; called before the first packet that needs them. */
  onTracks(tracks: readonly Track[]): void;
  /** Must not block and must not throw for odd media. */
  onPacket(packet: Packet): void;
  /** The turn is complete: a good moment to flush complete units. */
  onDrained?(): void;
  /** The stream ended. Idempotent. */
  close(reason: CloseReason): void;
}

/** A module that serves outbound streams. `Settings` is its part of the application's configuration. */
export interface Publisher<Settings = unknown> {
  readonly kind: PublisherKind;
  /** The playlist made without configuration, or null when no track of the stream can be served. */
  defaultPlaylist(tracks: readonly Track[], settings: Settings): Playlist | null;
  attach(stream: PublishableStream, settings: Settings): PublisherStream;
  /** The application was deleted, not only restarted: remove everything kept for it. */
  forgetApplication?(vhost: string, app: string): void;
}
