/** Extracts access units and frames from the PES packets of one elementary stream, with a class for each kind of stream. */
import { AudioCodec } from '../../media/codec.ts';
import { AdtsUnits, LatmUnits, MpegAudioUnits, OpusUnits } from './audio-units.ts';
import type { UnitReader } from './elementary-unit.ts';
import { Id3Units } from './id3-units.ts';
import type { StreamKind } from './stream-kind.ts';
import { VideoUnits } from './video-units.ts';

/** The reader for streams of `kind`. */
export function unitReader(kind: Exclude<StreamKind, { type: 'unsupported' | 'splices' }>): UnitReader {
  if (kind.type === 'video') return new VideoUnits(kind.codec);
  if (kind.type === 'data') return new Id3Units();
  if (kind.codec === AudioCodec.OPUS) return new OpusUnits(kind.channels);
  if (kind.codec === AudioCodec.MP3) return new MpegAudioUnits();
  return kind.layout === 'latm' ? new LatmUnits() : new AdtsUnits();
}
