/** A channel's tap on one of its sources: the mapped tracks of an output stream, with events and cues, in the time of the channel. */
import { isId3 } from '../../containers/mpegts/id3-units.ts';
import type { CloseReason, SourcePacket, SourceTrack } from '../../core/ingest.ts';
import type { OutboundStream } from '../../core/outbound-stream.ts';
import type { PublisherStream } from '../../core/publishing.ts';
import type { StreamAddress } from '../../core/stream-address.ts';
import type { StreamLineage } from '../../core/stream-lineage.ts';
import { type StreamSideData, sideDataOf } from '../../core/stream-side-data.ts';
import type { Urgency } from '../../core/urgency.ts';
import type { Packet } from '../../media/packet.ts';
import { MILLISECONDS, toMilliseconds } from '../../media/timebase.ts';
import { EventFormat } from '../../media/timed-event.ts';
import type { Track } from '../../media/track.ts';
import type { ChannelSource, MappedTrack } from './channel-definition.ts';
import type { ChannelTime, SourceTime } from './channel-time.ts';
import { canBeMapped, mappedTrackOf } from './mapped-track.ts';

/** The channel's listener for its source. */
export interface TapListener {
  /** How soon the channel needs packets. */
  readonly urgency: Urgency;
  /** The mapped tracks, whenever they have changed. */
  onTracks(tracks: readonly SourceTrack[]): void;
  onPacket(packet: SourcePacket): void;
  /** An event or a cue; times in ms of the channel. */
  onSideData(data: StreamSideData): void;
  /** The source has ended; not called after `close` of the tap. */
  onEnd(reason: CloseReason): void;
}

/** Numbers for tracks of a channel; the same for the same place, also when its source has been away. */
export interface TrackNumbers {
  of(place: string): number;
}

/** A track of the source in one of its places in the channel. */
interface MappedOutput {
  readonly id: number;
  readonly mapped: MappedTrack;
  /** The last time passed on, ms: later packets do not go back before it. */
  lastAt: number;
  /** Nothing can be shown before the next keyframe. */
  waits: boolean;
}

/** Made by the channel, which closes it. */
export class SourceTap {
  /** Packets that overlapped the channel's present media, or preceded the first keyframe. */
  discarded = 0;
  readonly stream: OutboundStream;
  readonly #source: ChannelSource;
  readonly #listener: TapListener;
  readonly #numbers: TrackNumbers;
  readonly #last: Map<number, number>;
  readonly #time: SourceTime;
  readonly #channelTime: ChannelTime;
  /** By outbound track. */
  readonly #outputs = new Map<number, readonly MappedOutput[]>();
  #tracks: readonly SourceTrack[] = [];
  /** The channel has got media of it: its time is known. */
  #delivers = false;
  readonly #unlink: () => void;
  #untap: (() => void) | null = null;
  #closed = false;

  /** `last`: by id, the last times of the channel's tracks, ms, which outlive the tap. */
  constructor(options: {
    /** The inbound stream of the channel. */
    readonly channel: StreamAddress;
    readonly lineage: StreamLineage;
    readonly stream: OutboundStream;
    readonly source: ChannelSource;
    readonly time: ChannelTime;
    readonly numbers: TrackNumbers;
    readonly last: Map<number, number>;
    readonly listener: TapListener;
  }) {
    this.stream = options.stream;
    this.#source = options.source;
    this.#channelTime = options.time;
    this.#time = options.time.join(options.stream);
    this.#numbers = options.numbers;
    this.#last = options.last;
    this.#listener = options.listener;
    this.#unlink = options.lineage.add(options.channel, inboundOf(options.stream));
  }

  /** The mapped tracks of the source as they are now. */
  get tracks(): readonly SourceTrack[] {
    return this.#tracks;
  }

  /** Names of the map that no track of the source has. */
  get missing(): string[] {
    return this.#source.trackMap
      .map(({ sourceTrackName }) => sourceTrackName)
      .filter((name) => !this.stream.tracks.some((track) => canBeMapped(track) && track.variantName === name));
  }

  /** Begins to listen; the listener gets the tracks within the call. `who` names the tap in the log. */
  open(who: string): void {
    const listener = this.#listener;
    const tap: PublisherStream = {
      get urgency() {
        return listener.urgency;
      },
      onTracks: (tracks) => this.#onTracks(tracks),
      onPacket: (packet) => this.#onPacket(packet),
      close: (reason) => this.#onEnd(reason),
    };
    this.#untap = this.stream.tap(who, tap);
  }

  /** Asks for a keyframe of a track of the channel. */
  requestKeyframe(id: number): void {
    for (const [trackId, outputs] of this.#outputs) if (outputs.some((output) => output.id === id)) this.stream.requestKeyframe(trackId);
  }

  /** Idempotent. */
  close(): void {
    this.#closed = true;
    this.#channelTime.leave(this.#time);
    this.#unlink();
    this.#untap?.();
    this.#untap = null;
  }

  #onTracks(tracks: readonly Track[]): void {
    if (this.#closed) return;
    const mapped: SourceTrack[] = [];
    for (const track of tracks) {
      if (!canBeMapped(track)) continue;
      const outputs = this.#outputs.get(track.id) ?? this.#outputsOf(track, tracks);
      this.#outputs.set(track.id, outputs);
      for (const output of outputs) mapped.push(mappedTrackOf(track, output.id, output.mapped));
    }
    this.#tracks = mapped;
    this.#listener.onTracks(mapped);
  }

  #outputsOf(track: Track, tracks: readonly Track[]): MappedOutput[] {
    const alike = tracks.filter((other) => other.type === track.type && other.variantName === track.variantName);
    return this.#source.trackMap.flatMap((mapped, index) => {
      if (mapped.sourceTrackName !== track.variantName) return [];
      const id = this.#numbers.of(`${index} ${track.type} ${alike.indexOf(track)}`);
      return [{ id, mapped, lastAt: this.#last.get(id) ?? Number.NEGATIVE_INFINITY, waits: true }];
    });
  }

  #onPacket(packet: Packet): void {
    if (this.#closed) return;
    const { type } = packet.track;
    if (type === 'data' || type === 'subtitle') {
      this.#takeSideData(packet);
      return;
    }
    const outputs = this.#outputs.get(packet.track.id);
    if (outputs === undefined) return;
    const offset = this.#time.offset(packet.track.timebase);
    const dts = packet.dts + offset;
    const at = toMilliseconds(dts, packet.track.timebase);
    for (const output of outputs) {
      if (at <= output.lastAt || (output.waits && !packet.keyframe)) {
        // The clock of the source went back: the frames after this one refer to the dropped frame.
        output.waits = true;
        this.discarded += 1;
        continue;
      }
      output.waits = false;
      this.#delivers = true;
      output.lastAt = at;
      this.#last.set(output.id, at);
      this.#listener.onPacket({ trackId: output.id, pts: packet.pts + offset, dts, keyframe: packet.keyframe, data: packet.data });
      if (this.#closed) return;
    }
  }

  #takeSideData(packet: Packet): void {
    if (!this.#delivers) return;
    const data = packet.event === undefined ? this.#tagOf(packet) : sideDataOf(packet);
    if (data !== null) this.#listener.onSideData({ ...data, at: data.at + this.#time.offset(MILLISECONDS) });
  }

  /** The ID3 tag of a source that has a track for them; it goes where the packagers put such tags: into the track that leads. */
  #tagOf({ track, pts, data }: Packet): StreamSideData | null {
    if (!isId3(data)) return null;
    const target = this.#tracks.some(({ type }) => type === 'video') ? 'video' : 'audio';
    return { type: 'event', at: toMilliseconds(pts, track.timebase), event: { format: EventFormat.ID3, target }, data };
  }

  #onEnd(reason: CloseReason): void {
    if (this.#closed) return;
    this.close();
    this.#listener.onEnd(reason);
  }
}

/** The inbound stream behind an output stream. */
export function inboundOf({ vhost, app, sourceName: stream }: OutboundStream): StreamAddress {
  return { vhost, app, stream };
}
