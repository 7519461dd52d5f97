/** The interfaces between a stream and the stand-in that plays on it while its encoder is away. */
import type { StandInConfig } from '../config/index.ts';
import type { Track } from '../media/track.ts';
import type { IngestStream, SourceCue, SourcePacket, SourceTrack } from './ingest.ts';
import type { StreamAddress } from './stream-address.ts';
import type { Urgency } from './urgency.ts';

/** The stream on which a stand-in plays. */
export interface StandInStage {
  readonly address: StreamAddress;
  /** Tracks that viewers have. */
  readonly tracks: readonly Track[];
  readonly urgency: Urgency;
  readonly closed: boolean;
  /** The stand-in is on air from the first call until `rest`. */
  setTracks(tracks: readonly SourceTrack[]): void;
  push(packet: SourcePacket): void;
  pushCue(language: string, cue: SourceCue): boolean;
  /** It cannot be played, or no longer: the controller calls `play` again later. `reason` is for the log. */
  onFailed(reason: string): void;
}

/** Plays on one stage. Closed by its owner, before the stream is. */
export interface StandIn {
  /** The tracks of the stage are known or have changed: prepares slow work in advance. May be called repeatedly. */
  prepare(): void;
  /** Begins as soon as it can. `since`: the wall clock, ms, at the end of the media that viewers have received. */
  play(since: number): void;
  /** Off air from now on. */
  rest(): void;
  /** A viewer has come who needs packets now. */
  wake(): void;
  /** Idempotent. */
  close(): void;
}

/** Makes the stand-in of a stream. */
export type StandIns = (settings: StandInConfig, stage: StandInStage) => StandIn;

/** The stream behind a gate. */
export type GatedStream = Pick<
  IngestStream,
  'vhost' | 'name' | 'closed' | 'urgency' | 'neededAt' | 'countBytes' | 'setTracks' | 'push' | 'pushEvent' | 'pushCue'
> & {
  /** The encoder has sent a packet that is not passed on. */
  heard(packet: SourcePacket): void;
  /** The encoder has announced tracks that are not passed on. */
  heardTracks(tracks: readonly SourceTrack[]): void;
  /** The encoder's media is unusable: the encoder is removed after this call. */
  dismiss(detail: string): void;
  /** By the id that the encoder gives the track. */
  askKeyframe(trackId: number): void;
};
