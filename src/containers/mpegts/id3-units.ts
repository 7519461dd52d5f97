/** Timed ID3 metadata of a transport stream ("Timed Metadata for HTTP Live Streaming"). */
import type { UnitReader, UnitSink } from './elementary-unit.ts';
import type { PesPacket } from './ts-demuxer.ts';

/** Hands on what a PES packet holds; one without a time is left out. */
export class Id3Units implements UnitReader {
  readonly config = null;

  read({ pts, data }: PesPacket, sink: UnitSink): void {
    if (pts !== null && data[0] === 0x49 && data[1] === 0x44 && data[2] === 0x33) sink({ pts, dts: pts, data: data.slice() });
  }
}
