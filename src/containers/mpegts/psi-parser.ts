/** Reads program association and program map tables, ISO/IEC 13818-1 §2.4.4.3 and §2.4.4.8. */
import { ProtocolError } from '../../util/protocol-error.ts';
import type { PmtEntry } from './psi.ts';

const TABLE_PAT = 0x00;
const TABLE_PMT = 0x02;
/** Bytes from table id to last_section_number. */
const HEADER = 8;
const LAST_SECTION_NUMBER = 7;
const CRC = 4;

/** A program of a PAT. */
export interface PatEntry {
  readonly programNumber: number;
  readonly pmtPid: number;
}

/** A program map table. */
export interface Pmt {
  readonly programNumber: number;
  readonly version: number;
  readonly pcrPid: number;
  readonly entries: readonly PmtEntry[];
}

/** The programs of a PAT section without the network PID; null if the section is another table or not valid yet. */
export function parsePat(section: Uint8Array): readonly PatEntry[] | null {
  if (!isCurrent(section, TABLE_PAT)) return null;
  const programs: PatEntry[] = [];
  for (let at = HEADER; at + 4 <= section.length - CRC; at += 4) {
    const programNumber = u16(section, at);
    if (programNumber !== 0) programs.push({ programNumber, pmtPid: u16(section, at + 2) & 0x1f_ff });
  }
  return programs;
}

/** False for a section of a table with several sections. */
export function isOnlySection(section: Uint8Array): boolean {
  return section[LAST_SECTION_NUMBER] === 0;
}

/** A PMT section; its descriptors are copies. Null if it is another table or not valid yet. Throws `TS_PMT`. */
export function parsePmt(section: Uint8Array): Pmt | null {
  if (!isCurrent(section, TABLE_PMT)) return null;
  const end = section.length - CRC;
  let at = HEADER + 4 + (u16(section, 10) & 0xf_ff);
  if (at > end) throw new ProtocolError('TS_PMT', 'program descriptors leave the section', 10);
  const entries: PmtEntry[] = [];
  while (at < end) {
    const next = at + 5 + (u16(section, at + 3) & 0xf_ff);
    if (next > end) throw new ProtocolError('TS_PMT', 'stream descriptors leave the section', at);
    entries.push({ streamType: section[at] ?? 0, pid: u16(section, at + 1) & 0x1f_ff, descriptors: section.slice(at + 5, next) });
    at = next;
  }
  return { programNumber: u16(section, 3), version: ((section[5] ?? 0) >> 1) & 0x1f, pcrPid: u16(section, 8) & 0x1f_ff, entries };
}

/** Calls `visit` with the tag and the body of each descriptor, up to a truncated one. */
export function forEachDescriptor(descriptors: Uint8Array, visit: (tag: number, body: Uint8Array) => void): void {
  let at = 0;
  while (at + 2 <= descriptors.length) {
    const end = at + 2 + (descriptors[at + 1] ?? 0);
    if (end > descriptors.length) return;
    visit(descriptors[at] ?? 0, descriptors.subarray(at + 2, end));
    at = end;
  }
}

function isCurrent(section: Uint8Array, tableId: number): boolean {
  const length = tableId === TABLE_PMT ? HEADER + 4 + CRC : HEADER + CRC;
  return section.length >= length && section[0] === tableId && ((section[5] ?? 0) & 1) === 1;
}

function u16(data: Uint8Array, at: number): number {
  return ((data[at] ?? 0) << 8) | (data[at + 1] ?? 0);
}
