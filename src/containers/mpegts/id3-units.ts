/** Timed ID3 metadata of a transport stream ("Timed Metadata for HTTP Live Streaming"). */
import type { UnitReader, UnitSink } from './elementary-unit.ts';
import type { PesPacket } from './ts-demuxer.ts';

const MAGIC = [0x49, 0x44, 0x33] as const;

/** The data begins with an ID3 tag. */
export function isId3(data: Uint8Array): boolean {
  return MAGIC.every((byte, index) => data[index] === byte);
}

/** Passes on the tags of a PES packet; a packet without a time is skipped. */
export class Id3Units implements UnitReader {
  readonly config = null;

  read({ pts, data }: PesPacket, sink: UnitSink): void {
    if (pts !== null && isId3(data)) sink({ pts, dts: pts, data: data.slice() });
  }
}
