import type { Packet } from '../media/packet.ts';
import type { Timebase } from '../media/timebase.ts';
import type { Track } from '../media/track.ts';
import type { SourcePacket, SourceTrack } from './ingest.ts';
import type { TimelineTrack } from './timeline.ts';

/** Turns the packets of one source track into router packets: one layout per codec, clean timestamps, durations. */
export interface TrackNormalizer {
  /** The track as of the last packet; a new object after a parameter change. Null until its parameters are known. */
  readonly track: Track | null;
  readonly source: SourceTrack;
  readonly position: TimelineTrack;
  /** Null when the packet is dropped (nothing decodable yet, or before the start of the timeline). Throws ProtocolError for bad media. */
  normalize(packet: SourcePacket): Packet | null;
  /** The packet starts a decodable frame sequence. */
  isKeyframe(packet: SourcePacket): boolean;
}

/** The part of a track that comes straight from its source; `word` begins its name if the source gives none. */
export function commonFields(source: SourceTrack, word: string, timebase: Timebase) {
  return {
    id: source.id,
    publicName: source.publicName ?? `${word}_${source.id}`,
    variantName: source.variantName ?? '',
    timebase,
    bitrateConf: Math.round(source.bitrateConf),
    language: source.language ?? '',
    characteristics: source.characteristics ?? '',
    bypass: false,
  };
}
