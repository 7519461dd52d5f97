/** The core as providers see it: a provider asks an application for an inbound stream and feeds it. */
import type { AudioCodec, BitstreamFormat, VideoCodec } from '../media/codec.ts';
import type { SegmentMark } from '../media/segment-mark.ts';
import type { Timebase } from '../media/timebase.ts';
import type { TimedEvent } from '../media/timed-event.ts';
import type { ProviderKind, SourceType } from './kinds.ts';
import type { Playlist } from './playlist.ts';
import type { Urgency } from './urgency.ts';

interface SourceTrackBase {
  /** Unique within the stream. */
  readonly id: number;
  readonly timebase: Timebase;
  /** Bits per second as announced; 0 when unknown. */
  readonly bitrateConf: number;
  /** The track's name in playlists of the source. */
  readonly variantName?: string;
  readonly publicName?: string;
  readonly language?: string;
  readonly characteristics?: string;
}

/** A video track as the wire announced it. `config` may be null when parameter sets come in-band. */
export interface SourceVideoTrack extends SourceTrackBase {
  readonly type: 'video';
  readonly codec: VideoCodec;
  readonly format: BitstreamFormat;
  /** avcC, hvcC, av1C or vpcC payload; null when parameter sets arrive in-band. */
  readonly config: Uint8Array | null;
  /** Announced frames per second; 0 when unknown. */
  readonly framerateConf: number;
  /** Announced size; used only when the bitstream does not tell. */
  readonly width: number;
  readonly height: number;
  /** Final frame size, if the sender begins with smaller frames: the track has this size from the beginning. */
  readonly fullSize?: { readonly width: number; readonly height: number };
}

/** An audio track as the wire announced it; sample rate in Hz. */
export interface SourceAudioTrack extends SourceTrackBase {
  readonly type: 'audio';
  readonly codec: AudioCodec;
  readonly format: BitstreamFormat;
  /** AudioSpecificConfig or OpusHead; null when frames describe themselves (MP3). */
  readonly config: Uint8Array | null;
  readonly sampleRate: number;
  readonly channels: number;
}

/** Timed data beside the media, such as ID3; its payload passes as it is. */
export interface SourceDataTrack extends SourceTrackBase {
  readonly type: 'data';
}

/** A track as a provider announces it. */
export type SourceTrack = SourceVideoTrack | SourceAudioTrack | SourceDataTrack;

/** A packet as it came off the wire. The buffer passes to the core and must not be reused. */
export interface SourcePacket {
  readonly trackId: number;
  /** In the track's timebase. Wire timestamps may wrap, jump or start anywhere. */
  readonly pts: number;
  readonly dts: number;
  /** Null when the wire does not tell: the router looks into the bitstream. */
  readonly keyframe: boolean | null;
  /** Display time of a frame in the track's timebase, if the source knows the next frame. Otherwise the router computes it. */
  readonly duration?: number | undefined;
  readonly data: Uint8Array;
  /** See `Packet.mark`; the times of such a source are kept. */
  readonly mark?: SegmentMark | undefined;
}

/** An event at a time of the stream. It is sent on the data track, whether the source has one or not. */
export interface SourceEvent extends TimedEvent {
  /** Data in the format `format`; the core owns the buffer from now on. */
  readonly data: Uint8Array;
  /** Time of the source, seconds; null: when it comes. */
  readonly at: number | null;
  /** The sender ends the breaks that it begins. */
  readonly settled?: boolean;
  /** The source sent it: breaks that it begins do not outlive the source. Set by the stream. */
  readonly ofSource?: boolean;
}

/** A cue of a subtitle track as a source brings it. */
export interface SourceCue {
  /** Time of the source, seconds. */
  readonly at: number;
  /** ms. */
  readonly duration: number;
  /** Cue settings of WebVTT; empty for none. */
  readonly settings: string;
  /** Cue text of WebVTT. */
  readonly text: string;
}

/** Why a stream or session ended: `code` for machines, `detail` for the log. */
export interface CloseReason {
  readonly code:
    | 'peer-left'
    | 'peer-error'
    | 'timeout'
    | 'replaced'
    | 'deleted'
    | 'application-restart'
    | 'shutdown'
    | 'denied'
    | 'no-room'
    | 'expired';
  readonly detail: string;
}

/** A provider's description of a source when it asks for a stream. The application keeps it while the source is there. */
export interface IngestRequest {
  readonly streamName: string;
  readonly provider: ProviderKind;
  readonly sourceType: SourceType;
  /** Shown as `sourceUrl`, e.g. `TCP://10.0.0.5:50412`. */
  readonly sourceUrl: string;
  /** Address of the publisher; absent if the server pulls the stream. */
  readonly client?: string;
  /** Tracks are bypassed, whatever output profiles the application has. */
  readonly passthrough?: boolean;
  /** The source came from the origin map: another server is the origin, this one only relays. */
  readonly fromOriginMap?: boolean;
  /** Times come from a clock that never jumps: a gap in tracks is a gap in the media, however long. */
  readonly steadyTime?: boolean;
  /** The core wants the connection gone (stream deleted, replaced, application restart, shutdown). Called at most once. */
  readonly onClose: (reason: CloseReason) => void;
  /**
   * The media is unusable because of its times, parameters or size, and no more is accepted. A provider with several sources tries the next
   * one. Default: `onClose` is called.
   */
  readonly onUnusable?: (reason: CloseReason) => void;
  /** Packets arrive faster than they are processed: a provider should stop reading until `onRelieved`. */
  readonly onCongested?: () => void;
  readonly onRelieved?: () => void;
  /** A viewer, push or recording needs packets now: the provider delivers at once instead of in the next batch. */
  readonly onWatched?: () => void;
  /**
   * A viewer needs a keyframe of a track that passes as it is; asked at most once a second for each track. For providers whose
   * protocol can ask for one (RTCP has PLI; RTMP, SRT and MPEG-TS have nothing).
   */
  readonly onKeyframeWanted?: (trackId: number) => void;
}

/** An open inbound stream, seen from its provider. */
export interface IngestStream {
  /** The virtual host that the requested host name led to. */
  readonly vhost: string;
  readonly name: string;
  readonly closed: boolean;
  /** The provider's part of the application's configuration; its type is the provider's to know. */
  readonly settings?: unknown;
  /** How soon packets are needed: a provider may deliver batches accordingly, and asks again after each. */
  readonly urgency: Urgency;
  /**
   * With `LOW_LATENCY`: the wall clock, ms, before which no packet completes a part that is waited for, if packets arrive as in the last
   * seconds. Valid until the next packet; in the past if unknown.
   */
  readonly neededAt: number;
  /**
   * Announces all tracks. The first call starts the stream; later calls change it (new parameters for the same ids, or added tracks).
   * `playlists` come from the source; relayed streams keep them. Tracks with invalid parameters are left out; throws ProtocolError if that
   * leaves none.
   */
  setTracks(tracks: readonly SourceTrack[], playlists?: readonly Playlist[]): void;
  /** Passes a packet on. Never throws for bad media, which is counted and dropped. */
  push(packet: SourcePacket): void;
  /**
   * Passes on an event, in order with the packets; it does not count as a sign of life of the source. False, and counted, if it cannot be
   * carried: too large, too frequent, or before the first media.
   */
  pushEvent(event: SourceEvent): boolean;
  /**
   * Puts a cue on the subtitle track of its language. False, and counted, if the application has no such track, or if the cue is too large,
   * too frequent, or before the first media.
   */
  pushCue(language: string, cue: SourceCue): boolean;
  /** Counts bytes received from the peer, protocol overhead included. */
  countBytes(bytes: number): void;
  /** Ends the stream. Idempotent; `onClose` is not called. */
  close(reason: CloseReason): void;
}

/** Ends of a source after which another source may continue the stream; all others end it. */
export function isRecoverable(code: CloseReason['code']): boolean {
  return code === 'peer-left' || code === 'peer-error' || code === 'timeout';
}

/** Why an ingest was refused; `code` is stable. */
export class IngestRefused extends Error {
  override readonly name = 'IngestRefused';
  readonly code: 'no-virtual-host' | 'no-application' | 'provider-disabled' | 'duplicate-name' | 'invalid-name' | 'full' | 'shutting-down';
  constructor(code: IngestRefused['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** The stream that a publisher requests. */
export interface IngestTarget {
  readonly host: string;
  readonly app: string;
  readonly vhost?: string;
}

/** The parts of a request that decide whether a publisher is admitted. */
export type IngestName = Pick<IngestRequest, 'streamName' | 'provider' | 'passthrough'>;

/** Parts of the server that a push provider needs. */
export interface IngestGate {
  /**
   * Registers a stream name synchronously, so two publishers cannot race for one name. `host` is the host name that the client asked for;
   * it selects the virtual host. Where clients may also give the name of a virtual host, it is in `vhost` and takes precedence. Throws
   * `IngestRefused`.
   */
  openIngest(target: IngestTarget, request: IngestRequest): IngestStream;
  /** Throws `IngestRefused` when `openIngest` would now; registers nothing. */
  checkIngest(target: IngestTarget, request: IngestName): void;
}
