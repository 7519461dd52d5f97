/** Passes the media packets of one origin to the core. */
import { parseAdtsHeader } from '../../codecs/aac/adts.ts';
import type { SourceTrack } from '../../core/ingest.ts';
import type { PullSink } from '../../core/pull.ts';
import type { SegmentMark } from '../../media/segment-mark.ts';
import { type Timebase, toSeconds } from '../../media/timebase.ts';
import { ProtocolError } from '../../util/protocol-error.ts';
import type { PlacedMark } from '../../wire/ovt/mark.ts';
import type { OvtMediaPacket } from '../../wire/ovt/media-packet.ts';
import { eventOf, OvtFlag, OvtFormat } from '../../wire/ovt/wire-numbers.ts';

const AAC_FRAME_SAMPLES = 1024;

interface FeedTrack {
  readonly source: SourceTrack;
  /** Formats that packets may have. */
  readonly formats: readonly number[];
  /** No keyframe has arrived on this connection. */
  waits: boolean;
}

/** Takes assembled media packets of one session; holds frames back until the first keyframe. Needs no closing. */
export class MediaFeed {
  /** Packets of tracks without a description, or in an unknown format. */
  unusable = 0;
  readonly #sink: PullSink;
  /** Mark of a packet that has not arrived yet. */
  #mark: PlacedMark | null = null;
  /** The origin sends marks of segments. */
  #marked = false;
  /** The first packet that may start the media has arrived. */
  #begun = true;
  readonly #tracks: ReadonlyMap<number, FeedTrack>;
  /** Timebases of event tracks, by id. */
  readonly #events: ReadonlyMap<number, Timebase>;

  constructor(sink: PullSink, tracks: readonly SourceTrack[]) {
    this.#sink = sink;
    const media = tracks.filter(({ type }) => type !== 'data');
    this.#events = new Map(tracks.filter(({ type }) => type === 'data').map(({ id, timebase }) => [id, timebase]));
    this.#tracks = new Map(
      media.map((source): [number, FeedTrack] => [source.id, { source, formats: formatsOf(source), waits: source.type === 'video' }]),
    );
  }

  /** The origin will send marks: media starts with a segment. Call it before media arrives. */
  expectMarks(): void {
    this.#marked = true;
    this.#begun = false;
  }

  /** A segment starts with a later packet. */
  mark(mark: PlacedMark): void {
    this.#mark = mark;
  }

  push(packet: OvtMediaPacket): void {
    const track = this.#tracks.get(packet.trackId);
    const events = this.#events.get(packet.trackId);
    if (events !== undefined) {
      this.#takeEvent(packet, events);
      return;
    }
    if (track?.formats.includes(packet.format) !== true) {
      this.unusable += 1;
      return;
    }
    if (!this.#begun && !this.#begins(packet)) {
      this.#sink.heard();
      return;
    }
    if (track.source.type === 'video') this.#pushVideo(track, packet);
    else if (packet.format === OvtFormat.AAC_ADTS) this.#pushAdts(track.source.timebase, packet);
    else this.#pushAudio(packet.trackId, packet.pts, packet.data);
  }

  /** The origin ends breaks with its own events. */
  #takeEvent({ trackId, pts, dts, format, packetType, data }: OvtMediaPacket, timebase: Timebase): void {
    const event = eventOf(format, packetType);
    if (event !== null) this.#sink.pushEvent({ ...event, data, at: toSeconds(pts, timebase), settled: true });
    else if (format === OvtFormat.ID3) this.#sink.push({ trackId, pts, dts, keyframe: true, data });
    else this.unusable += 1;
  }

  /** Whether decoders can start with the packet and a segment begins with it. */
  #begins({ trackId, dts, flag }: OvtMediaPacket): boolean {
    const placed = this.#mark;
    this.#begun = placed !== null && placed.trackId === trackId && placed.dts === dts && flag !== OvtFlag.NONE;
    return this.#begun;
  }

  #takeMark(trackId: number, dts: number): SegmentMark | undefined {
    const placed = this.#mark;
    if (placed === null || placed.trackId !== trackId || placed.dts > dts) return undefined;
    this.#mark = null;
    return placed.dts === dts ? placed.mark : undefined;
  }

  /** A session may start in the middle of a GOP. */
  #pushVideo(track: FeedTrack, packet: OvtMediaPacket): void {
    if (packet.flag !== OvtFlag.NONE) track.waits = false;
    if (track.waits) return;
    // The router computes flags that the origin does not send.
    const keyframe = packet.flag === OvtFlag.UNKNOWN ? null : packet.flag === OvtFlag.KEYFRAME;
    const { trackId, pts, dts, data } = packet;
    if (this.#marked) this.#sink.push({ trackId, pts, dts, keyframe, duration: packet.duration, data, mark: this.#takeMark(trackId, dts) });
    else this.#sink.push({ trackId, pts, dts, keyframe, data });
  }

  #pushAdts(timebase: Timebase, { trackId, pts, data }: OvtMediaPacket): void {
    try {
      for (let at = 0, frame = 0; at < data.length; frame += 1) {
        const { headerLength, frameLength, sampleRate } = parseAdtsHeader(data, at);
        if (at + frameLength > data.length) throw new ProtocolError('ADTS', `frame of ${frameLength} bytes`, at);
        const ticks = (frame * AAC_FRAME_SAMPLES * timebase.den) / (sampleRate * timebase.num);
        this.#pushAudio(trackId, pts + Math.round(ticks), data.subarray(at + headerLength, at + frameLength));
        at += frameLength;
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.unusable += 1;
    }
  }

  #pushAudio(trackId: number, pts: number, data: Uint8Array): void {
    if (this.#marked) this.#sink.push({ trackId, pts, dts: pts, keyframe: true, data, mark: this.#takeMark(trackId, pts) });
    else this.#sink.push({ trackId, pts, dts: pts, keyframe: true, data });
  }
}

/** Formats of a track's packets; codecs with only one format may omit it. */
function formatsOf(source: SourceTrack): readonly number[] {
  if (source.type === 'data') return [];
  switch (source.codec) {
    case 'H264':
      return [OvtFormat.H264_ANNEXB];
    case 'H265':
      return [OvtFormat.H265_ANNEXB];
    case 'AAC':
      return [OvtFormat.AAC_ADTS, OvtFormat.AAC_RAW];
    case 'VP8':
      return [OvtFormat.VP8, OvtFormat.UNKNOWN];
    case 'OPUS':
      return [OvtFormat.OPUS, OvtFormat.UNKNOWN];
    case 'MP3':
      return [OvtFormat.MP3, OvtFormat.UNKNOWN];
    default:
      return [OvtFormat.UNKNOWN];
  }
}
