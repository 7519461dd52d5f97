/**
 * Cuts payloads into transport stream packets, ISO/IEC 13818-1 §2.4.3.2.
 *
 *  47 | error 1, unit start 1, priority 1, PID 13 | scrambling 2, adaptation 1, payload 1, continuity 4 | adaptation | payload
 */
import type { Gather } from './gather.ts';
import { putPcr } from './timestamp.ts';
import { TS_PACKET_LENGTH, TS_SYNC, type TsBuffer } from './ts-buffer.ts';

const HEADER_LENGTH = 4;
const ROOM = TS_PACKET_LENGTH - HEADER_LENGTH;
const STUFFING = 0xff;
const FLAG_RANDOM_ACCESS = 0x40;
const FLAG_PCR = 0x10;
/** Bytes of the length and flags; the clock follows them. */
const FLAGS_LENGTH = 2;
const PCR_LENGTH = 6;

/** A PID and its continuity counter. */
export interface PidState {
  readonly pid: number;
  /** Continuity counter of the next packet, 0 to 15. */
  continuity: number;
}

/** Contents of the adaptation field in the first packet of a payload. */
export interface UnitFlags {
  /** 90 kHz, wrapped; null without a clock. */
  pcr: number | null;
  randomAccess: boolean;
}

/** Writes a table section after its pointer field, in as many packets as it needs; the last one is padded. */
export function writeSection(output: TsBuffer, state: PidState, section: Uint8Array): void {
  output.reserve(Math.ceil((1 + section.length) / ROOM));
  const bytes = output.bytes;
  for (let written = 0; written < section.length; ) {
    const at = output.claim();
    const first = written === 0;
    putHeader(bytes, at, state, first, false);
    const from = at + HEADER_LENGTH + (first ? 1 : 0);
    if (first) bytes[at + HEADER_LENGTH] = 0;
    const piece = section.subarray(written, written + at + TS_PACKET_LENGTH - from);
    bytes.set(piece, from);
    bytes.fill(STUFFING, from + piece.length, at + TS_PACKET_LENGTH);
    written += piece.length;
  }
}

/** Writes the whole of `payload` (a PES packet); the last packet is filled by its adaptation field. */
export function writePayload(output: TsBuffer, state: PidState, payload: Gather, flags: UnitFlags): void {
  let left = payload.length;
  const wanted = adaptationLength(flags);
  const packets = 1 + Math.ceil(Math.max(0, left - (ROOM - wanted)) / ROOM);
  output.reserve(packets);
  const bytes = output.bytes;
  // The payload is put at the end of its packets and moved to the front piece by piece, which costs less than a view of each piece.
  let from = output.length + packets * TS_PACKET_LENGTH - left;
  payload.copyTo(bytes, from);
  let first = true;
  while (left > 0) {
    const at = output.claim();
    const adaptation = Math.max(first ? wanted : 0, ROOM - left);
    const count = ROOM - adaptation;
    bytes.copyWithin(at + HEADER_LENGTH + adaptation, from, from + count);
    putHeader(bytes, at, state, first, adaptation > 0);
    if (adaptation > 0) putAdaptation(bytes, at + HEADER_LENGTH, adaptation, first ? flags : null);
    from += count;
    left -= count;
    first = false;
  }
}

function adaptationLength(flags: UnitFlags): number {
  if (flags.pcr !== null) return FLAGS_LENGTH + PCR_LENGTH;
  return flags.randomAccess ? FLAGS_LENGTH : 0;
}

function putHeader(bytes: Uint8Array, at: number, state: PidState, unitStart: boolean, adaptation: boolean): void {
  bytes[at] = TS_SYNC;
  bytes[at + 1] = (unitStart ? 0x40 : 0) | (state.pid >> 8);
  bytes[at + 2] = state.pid;
  bytes[at + 3] = (adaptation ? 0x30 : 0x10) | state.continuity;
  state.continuity = (state.continuity + 1) & 0xf;
}

/** `length` is the length of the whole field. In a field of one byte, that byte is 0. */
function putAdaptation(bytes: Uint8Array, at: number, length: number, flags: UnitFlags | null): void {
  bytes[at] = length - 1;
  if (length === 1) return;
  let used = FLAGS_LENGTH;
  let bits = 0;
  if (flags !== null) {
    bits = flags.randomAccess ? FLAG_RANDOM_ACCESS : 0;
    if (flags.pcr !== null) {
      bits |= FLAG_PCR;
      putPcr(bytes, at + used, flags.pcr);
      used += PCR_LENGTH;
    }
  }
  bytes[at + 1] = bits;
  bytes.fill(STUFFING, at + used, at + length);
}
