/** A transport stream in pieces of any size → the PES packets of one program, ISO/IEC 13818-1. */
import { ProtocolError } from '../../util/protocol-error.ts';
import { MAX_SPLICE_SECTION } from '../markers/splice-info.ts';
import { PacketSync } from './packet-sync.ts';
import { type PesCounters, PesReader, type PesUnit } from './pes-reader.ts';
import type { PmtEntry } from './psi.ts';
import { isOnlySection, type PatEntry, parsePat, parsePmt } from './psi-parser.ts';
import { SectionReader } from './section-reader.ts';
import { describeElementaryStream, type StreamDescription } from './stream-kind.ts';
import { ClockUnwrapper, readPcr } from './timestamp.ts';
import { TS_PACKET_LENGTH } from './ts-buffer.ts';

const PAT_PID = 0;
const NULL_PID = 0x1f_ff;
const FLAG_ERROR = 0x80;
const FLAG_UNIT_START = 0x40;
const FLAG_DISCONTINUITY = 0x80;
const FLAG_RANDOM_ACCESS = 0x40;
const FLAG_PCR = 0x10;
const MIN_PCR_FIELD = 7;

/** One PES packet of a stream of the program. */
export interface PesPacket {
  readonly pid: number;
  /** 90 kHz, without wraps; null if the packet has no time. */
  readonly pts: number | null;
  readonly dts: number | null;
  /** The multiplexer marks this as a point where decoding can begin. */
  readonly randomAccess: boolean;
  /** Packets before this one are missing, or its clock has been reset. */
  readonly discontinuity: boolean;
  /** Valid during the call only. */
  readonly data: Uint8Array;
}

/** The streams of the program; reported again whenever they change. */
export interface TsProgram {
  readonly programNumber: number;
  readonly pcrPid: number;
  readonly streams: readonly StreamDescription[];
}

/** The demuxer's output. */
export interface TsOutput {
  onProgram(program: TsProgram): void;
  onPes(packet: PesPacket): void;
  /** A section of a stream of kind `splices`; valid during the call only. */
  onSplice?(section: Uint8Array): void;
}

/** The program to follow, and limits of the memory that a sender can occupy. */
export interface TsDemuxerOptions {
  /** Number of the program to follow; absent: the first of the PAT. */
  readonly program?: number;
  /** Largest PES packet, bytes; larger ones are dropped. */
  readonly maxPesBytes?: number;
  /** Limit of the program's streams; further streams are left out. */
  readonly maxStreams?: number;
}

const DEFAULT_MAX_PES = 4_194_304;
const DEFAULT_MAX_STREAMS = 16;

/** Counts of received, lost and skipped packets. */
export interface TsCounters extends PesCounters {
  packets: number;
  /** Packets marked as broken by the transport below. */
  errors: number;
  /** Packets with an impossible header. */
  invalid: number;
  /** Gaps of continuity counters. */
  gaps: number;
  duplicates: number;
  /** Encrypted packets, which are dropped. */
  scrambled: number;
}

interface PidState {
  /** Continuity counter of the last packet; -1 before the first. */
  counter: number;
  readonly pes: PesReader | null;
  /** The reader of a stream of sections. */
  readonly sections: SectionReader | null;
  readonly description: StreamDescription | null;
  /** Flags of the current PES packet and of the next one. */
  randomAccess: boolean;
  discontinuity: boolean;
  nextRandomAccess: boolean;
  nextDiscontinuity: boolean;
}

/**
 * Follows one program. Never throws: unreadable input is counted. Memory is bounded by `maxStreams` times `maxPesBytes`; each stream takes
 * only as much as its largest packet.
 */
export class TsDemuxer {
  readonly counters: TsCounters = {
    packets: 0,
    errors: 0,
    invalid: 0,
    gaps: 0,
    duplicates: 0,
    scrambled: 0,
    malformed: 0,
    damaged: 0,
    oversized: 0,
  };
  readonly #output: TsOutput;
  readonly #wanted: number | null;
  readonly #maxPesBytes: number;
  readonly #maxStreams: number;
  readonly #sync = new PacketSync((data, at) => this.#packet(data, at));
  readonly #patReader = new SectionReader((section) => this.#pat(section));
  #pmtReader = new SectionReader((section) => this.#pmt(section));
  readonly #patState = pidState(null, null);
  #pmtState = pidState(null, null);
  #program: PatEntry | null = null;
  #streams = new Map<number, PidState>();
  #pcrPid = NULL_PID;
  #pmtBytes: Uint8Array | null = null;
  readonly #clock = new ClockUnwrapper();
  /** Sections that were broken or contradict themselves. */
  #badSections = 0;
  /** Programs of the last PAT section. */
  #programs: readonly PatEntry[] = [];

  constructor(output: TsOutput, options: TsDemuxerOptions = {}) {
    this.#output = output;
    this.#wanted = options.program ?? null;
    this.#maxPesBytes = options.maxPesBytes ?? DEFAULT_MAX_PES;
    this.#maxStreams = options.maxStreams ?? DEFAULT_MAX_STREAMS;
  }

  /** Bytes that belonged to no packet. */
  get skippedBytes(): number {
    return this.#sync.skipped;
  }

  /** Tables that were truncated, failed their CRC or contradict themselves. */
  get brokenTables(): number {
    return this.#badSections + this.#patReader.broken + this.#pmtReader.broken;
  }

  /** The reason why the wanted program is missing, as a text for the log; null if it is present, or no table has arrived. */
  get missingProgram(): string | null {
    if (this.#wanted === null || this.#program !== null || this.#programs.length === 0) return null;
    return `there is no program ${this.#wanted} among ${this.#programs.map(({ programNumber }) => programNumber).join(', ')}`;
  }

  /** Takes the next piece; packets may be cut anywhere between two pieces. */
  push(data: Uint8Array): void {
    this.#sync.push(data);
  }

  /** A time of 33 bits, 90 kHz, on the clock of PES packets. */
  timeNear(ticks: number): number {
    return this.#clock.near(ticks);
  }

  /** The source has ended: passes on the last units. */
  flush(): void {
    this.#sync.reset();
    for (const state of this.#streams.values()) state.pes?.flush();
  }

  #packet(data: Uint8Array, at: number): void {
    this.counters.packets += 1;
    const flags = data[at + 1] ?? 0;
    if ((flags & FLAG_ERROR) !== 0) {
      this.counters.errors += 1;
      return;
    }
    const pid = ((flags & 0x1f) << 8) | (data[at + 2] ?? 0);
    const state = this.#stateOf(pid);
    if (state === undefined) {
      // The clock may be on another PID.
      if (pid === this.#pcrPid && pid !== NULL_PID) this.#adaptation(null, data, at);
      return;
    }
    const control = data[at + 3] ?? 0;
    const hasPayload = (control & 0x10) !== 0;
    const payload = (control & 0x20) === 0 ? at + 4 : this.#adaptation(state, data, at);
    if (payload < 0) return;
    if (!hasPayload) return;
    if ((control & 0xc0) !== 0) {
      this.counters.scrambled += 1;
      return;
    }
    if (!this.#continues(state, pid, control & 0xf)) return;
    const end = at + TS_PACKET_LENGTH;
    if (payload >= end) return;
    this.#payload(state, pid, data, payload, end, (flags & FLAG_UNIT_START) !== 0);
  }

  #stateOf(pid: number): PidState | undefined {
    if (pid === PAT_PID) return this.#patState;
    return pid === this.#program?.pmtPid ? this.#pmtState : this.#streams.get(pid);
  }

  #payload(state: PidState, pid: number, data: Uint8Array, start: number, end: number, unitStart: boolean): void {
    if (state.pes !== null) {
      // The current PES packet ends here and keeps its flags.
      if (unitStart) {
        state.pes.flush();
        state.randomAccess = state.nextRandomAccess;
        state.discontinuity = state.nextDiscontinuity;
        state.nextRandomAccess = false;
        state.nextDiscontinuity = false;
      }
      state.pes.push(data, start, end, unitStart);
    } else if (state.sections !== null) {
      state.sections.push(data.subarray(start, end), unitStart);
    } else if (pid === PAT_PID) {
      this.#patReader.push(data.subarray(start, end), unitStart);
    } else {
      this.#pmtReader.push(data.subarray(start, end), unitStart);
    }
  }

  /** Reads the adaptation field; returns where the payload begins, -1 if the field is longer than the packet. */
  #adaptation(state: PidState | null, data: Uint8Array, at: number): number {
    const length = data[at + 4] ?? 0;
    const payload = at + 5 + length;
    if (payload > at + TS_PACKET_LENGTH) {
      this.counters.invalid += 1;
      return -1;
    }
    if (length === 0) return payload;
    const flags = data[at + 5] ?? 0;
    if ((flags & FLAG_DISCONTINUITY) !== 0 && state !== null) {
      state.counter = -1;
      state.nextDiscontinuity = true;
    }
    if ((flags & FLAG_RANDOM_ACCESS) !== 0 && state !== null) state.nextRandomAccess = true;
    if ((flags & FLAG_PCR) !== 0 && length >= MIN_PCR_FIELD && this.#isClock(data, at)) this.#clock.unwrap(readPcr(data, at + 6));
    return payload;
  }

  #isClock(data: Uint8Array, at: number): boolean {
    return ((((data[at + 1] ?? 0) & 0x1f) << 8) | (data[at + 2] ?? 0)) === this.#pcrPid;
  }

  /** Checks the continuity counter; false for a duplicate. */
  #continues(state: PidState, pid: number, counter: number): boolean {
    const last = state.counter;
    state.counter = counter;
    if (last < 0 || counter === ((last + 1) & 0xf)) return true;
    if (counter === last) {
      this.counters.duplicates += 1;
      return false;
    }
    this.counters.gaps += 1;
    state.nextDiscontinuity = true;
    if (state.pes !== null) state.pes.lose();
    else if (state.sections !== null) state.sections.lose();
    else if (pid === PAT_PID) this.#patReader.lose();
    else this.#pmtReader.lose();
    return true;
  }

  #pat(section: Uint8Array): void {
    const programs = parsePat(section);
    if (programs === null) return;
    this.#programs = programs;
    const current = this.#program;
    const kept = programs.find(({ programNumber }) => programNumber === (this.#wanted ?? current?.programNumber));
    // A PAT may have several sections, and the program may be in another one.
    const mayLeave = this.#wanted === null && (current === null || isOnlySection(section));
    const chosen = kept ?? (mayLeave ? programs[0] : undefined);
    if (chosen === undefined || (current?.programNumber === chosen.programNumber && current.pmtPid === chosen.pmtPid)) return;
    this.#program = chosen;
    this.#pmtState = pidState(null, null);
    this.#badSections += this.#pmtReader.broken;
    this.#pmtReader = new SectionReader((found) => this.#pmt(found));
    this.#pmtBytes = null;
  }

  #pmt(section: Uint8Array): void {
    // The same table comes several times a second.
    if (this.#pmtBytes !== null && Buffer.compare(this.#pmtBytes, section) === 0) return;
    try {
      const pmt = parsePmt(section);
      if (pmt === null || pmt.programNumber !== this.#program?.programNumber) return;
      this.#pmtBytes = section.slice();
      this.#follow(
        pmt.programNumber,
        pmt.pcrPid,
        pmt.entries.map((entry) => this.#describe(entry)),
      );
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#badSections += 1;
    }
  }

  /** A stream of the previous table keeps its description, so that its users see the same object. */
  #describe(entry: PmtEntry): StreamDescription {
    const fresh = describeElementaryStream(entry);
    const known = this.#streams.get(entry.pid)?.description;
    return known !== undefined && known !== null && isSame(known, fresh) ? known : fresh;
  }

  /** Takes over the streams of a new table; streams that were in the old table continue. */
  #follow(programNumber: number, pcrPid: number, streams: readonly StreamDescription[]): void {
    const states = new Map<number, PidState>();
    for (const description of streams) {
      if (description.kind.type === 'unsupported' || states.size >= this.#maxStreams || states.has(description.pid)) continue;
      const known = this.#streams.get(description.pid);
      states.set(description.pid, known?.description === description ? known : this.#open(description));
    }
    for (const [pid, state] of this.#streams) {
      if (states.get(pid) !== state) state.pes?.flush();
    }
    this.#pcrPid = pcrPid;
    this.#streams = states;
    this.#output.onProgram({ programNumber, pcrPid, streams });
  }

  #open(description: StreamDescription): PidState {
    if (description.kind.type === 'splices') {
      return {
        ...pidState(null, description),
        sections: new SectionReader((section) => this.#output.onSplice?.(section), MAX_SPLICE_SECTION),
      };
    }
    const state: PidState = pidState(
      new PesReader({ onUnit: (unit) => this.#emit(state, unit), counters: this.counters, maxBytes: this.#maxPesBytes }),
      description,
    );
    return state;
  }

  #emit(state: PidState, unit: PesUnit): void {
    if (state.description === null) return;
    const dts = unit.dts === null ? null : this.#clock.unwrap(unit.dts);
    const pts = unit.pts === null ? null : this.#clock.unwrap(unit.pts);
    const { randomAccess, discontinuity } = state;
    this.#output.onPes({ pid: state.description.pid, pts, dts, randomAccess, discontinuity, data: unit.data });
  }
}

function pidState(pes: PesReader | null, description: StreamDescription | null): PidState {
  return {
    counter: -1,
    pes,
    sections: null,
    description,
    randomAccess: false,
    discontinuity: false,
    nextRandomAccess: false,
    nextDiscontinuity: false,
  };
}

function isSame(a: StreamDescription, b: StreamDescription): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
