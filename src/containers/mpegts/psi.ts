/** Program association and program map tables, ISO/IEC 13818-1 §2.4.4. */
import { ByteWriter } from '../../util/byte-writer.ts';
import { crc32Mpeg } from './crc32.ts';

const TABLE_PAT = 0x00;
const TABLE_PMT = 0x02;
const TRANSPORT_STREAM_ID = 1;

/** The number of the only program in our output. */
export const PROGRAM_NUMBER = 1;

/** One line of a program map table. */
export interface PmtEntry {
  readonly pid: number;
  readonly streamType: number;
  readonly descriptors: Uint8Array;
}

/** A whole PAT section with one program. */
export function buildPat(pmtPid: number, version: number): Uint8Array {
  return section(
    TABLE_PAT,
    TRANSPORT_STREAM_ID,
    version,
    new ByteWriter(4)
      .u16(PROGRAM_NUMBER)
      .u16(0xe0_00 | pmtPid)
      .view(),
  );
}

/** A whole PMT section. At most 1024 bytes are allowed (§2.4.4.8), which suffice for 40 streams of any kind. */
export function buildPmt(table: {
  readonly pcrPid: number;
  readonly version: number;
  readonly descriptors: Uint8Array;
  readonly entries: readonly PmtEntry[];
}): Uint8Array {
  const body = new ByteWriter(128).u16(0xe0_00 | table.pcrPid);
  body.u16(0xf0_00 | table.descriptors.length).bytes(table.descriptors);
  for (const entry of table.entries) {
    body.u8(entry.streamType).u16(0xe0_00 | entry.pid);
    body.u16(0xf0_00 | entry.descriptors.length).bytes(entry.descriptors);
  }
  return section(TABLE_PMT, PROGRAM_NUMBER, table.version, body.view());
}

function section(tableId: number, extension: number, version: number, body: Uint8Array): Uint8Array {
  const length = 5 + body.length + 4;
  const writer = new ByteWriter(3 + length)
    .u8(tableId)
    .u16(0xb0_00 | length)
    .u16(extension);
  writer
    .u8(0xc0 | (version << 1) | 1)
    .u8(0)
    .u8(0)
    .bytes(body);
  return writer.u32(crc32Mpeg(writer.view())).finish();
}
