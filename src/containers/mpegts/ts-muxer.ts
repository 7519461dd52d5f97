/** Packets of several tracks → one MPEG-2 transport stream with a single program, ISO/IEC 13818-1. */
import type { Packet } from '../../media/packet.ts';
import { MPEG_90K, rescale } from '../../media/timebase.ts';
import { EventFormat } from '../../media/timed-event.ts';
import type { Track } from '../../media/track.ts';
import { retimeSplice } from '../markers/splice-info.ts';
import { type ElementaryStream, elementaryStream, sameElementary } from './elementary.ts';
import { Gather } from './gather.ts';
import { type PidState, type UnitFlags, writePayload, writeSection } from './packet-writer.ts';
import { MAX_PES_HEADER, putPesHeader } from './pes.ts';
import { buildPat, buildPmt, PROGRAM_NUMBER } from './psi.ts';
import { canCarry, programDescriptors, StreamId, StreamType, streamDescriptors, streamTypeOf } from './stream-type.ts';
import { wrap33 } from './timestamp.ts';
import type { TsBuffer } from './ts-buffer.ts';

const PAT_PID = 0;
const PMT_PID = 0x10_00;
const FIRST_STREAM_PID = 0x1_00;
/** After the PIDs of all streams. */
const SPLICE_PID = 0x1_f0;
const VERSIONS = 32;

/** Streams that fit into a program map table. */
const MAX_STREAMS = 40;

/** Written value of media time 0 (90 kHz), so that the earlier clock and slightly negative times stay positive. */
export const TIME_OFFSET = 90_000;
/** The clock runs this far behind decoding, 90 kHz: room for a decoder's buffer and for late audio. */
const PCR_LEAD = 63_000;

interface MuxedStream extends PidState {
  track: Track;
  elementary: ElementaryStream;
  readonly streamId: number;
}

/**
 * Writes tables and packets into buffers of the caller. Continuity counters continue across buffers and track changes, so that segments can
 * be cut anywhere between two calls.
 */
export class TsMuxer {
  /** Subtracted from every timestamp, 90 kHz. */
  origin = 0;
  readonly #pat: PidState = { pid: PAT_PID, continuity: 0 };
  readonly #pmt: PidState = { pid: PMT_PID, continuity: 0 };
  /** Streams by track id. PIDs of removed tracks are reused, continuity counters included. */
  #streams = new Map<number, MuxedStream>();
  readonly #counters = new Map<number, number>();
  readonly #payload = new Gather();
  readonly #header = new Uint8Array(MAX_PES_HEADER);
  readonly #flags: UnitFlags = { pcr: null, randomAccess: false };
  #patSection: Uint8Array = new Uint8Array(0);
  #pmtSection: Uint8Array = new Uint8Array(0);
  #clock: MuxedStream | null = null;
  #version = VERSIONS - 1;
  #tracks: readonly Track[] = [];
  /** Null before the first splice: streams without splices do not announce them. */
  #splices: PidState | null = null;

  /** Tracks that a transport stream cannot carry (see `canCarry`), and tracks beyond the 40th, are left out. */
  constructor(tracks: readonly Track[]) {
    this.setTracks(tracks);
  }

  /** Replaces the tracks; call `writeTables` before the next packet. Throws `ProtocolError` for a broken configuration. */
  setTracks(tracks: readonly Track[]): void {
    for (const { pid, continuity } of this.#streams.values()) this.#counters.set(pid, continuity);
    const carried = tracks.filter(canCarry).slice(0, MAX_STREAMS);
    const streams = carried.map((track, index) => this.#open(track, FIRST_STREAM_PID + index, index));
    this.#streams = new Map(streams.map((stream) => [stream.track.id, stream]));
    this.#clock = streams.find(({ track }) => track.type === 'video') ?? streams[0] ?? null;
    this.#tracks = carried;
    this.#buildTables();
  }

  #buildTables(): void {
    const streams = [...this.#streams.values()];
    this.#version = (this.#version + 1) % VERSIONS;
    this.#patSection = buildPat(PMT_PID, this.#version);
    this.#pmtSection = buildPmt({
      pcrPid: this.#clock?.pid ?? FIRST_STREAM_PID,
      version: this.#version,
      descriptors: programDescriptors(this.#tracks, PROGRAM_NUMBER, this.#splices !== null),
      entries: [
        ...streams.map(({ track, pid }) => ({ pid, streamType: streamTypeOf(track) ?? 0, descriptors: streamDescriptors(track) })),
        ...(this.#splices === null ? [] : [{ pid: SPLICE_PID, streamType: StreamType.SCTE35, descriptors: new Uint8Array(0) }]),
      ],
    });
  }

  /** Whether packets of the track are written. */
  carries(trackId: number): boolean {
    return this.#streams.has(trackId);
  }

  /** Writes PAT and PMT: two packets, more for many tracks. */
  writeTables(output: TsBuffer): void {
    writeSection(output, this.#pat, this.#patSection);
    writeSection(output, this.#pmt, this.#pmtSection);
  }

  /**
   * Writes one packet; unknown tracks, and events without a transport stream form, are ignored. A new track object brings a new decoder
   * configuration. If the packet is broken, throws `ProtocolError` and writes nothing.
   */
  writePacket(packet: Packet, output: TsBuffer): void {
    const stream = this.#streams.get(packet.track.id);
    if (stream === undefined) return;
    if (stream.track !== packet.track) this.#follow(stream, packet.track);
    const offset = TIME_OFFSET - this.origin;
    if (packet.event !== undefined && packet.event.format !== EventFormat.ID3) {
      if (packet.event.format === EventFormat.SCTE35) this.#writeSplice(packet, offset, output);
      return;
    }
    const dts = rescale(packet.dts, packet.track.timebase, MPEG_90K) + offset;
    const pts = rescale(packet.pts, packet.track.timebase, MPEG_90K) + offset;
    const payload = this.#payload;
    payload.reset();
    const headerLength = putPesHeader(this.#header, stream.streamId, wrap33(pts), wrap33(dts));
    payload.add(this.#header, 0, headerLength);
    stream.elementary.add(packet, payload);
    const afterLength = payload.length - 6;
    // Only video may omit its length (§2.4.3.7), and frames are often too long for 16 bits.
    this.#putLength(packet.track.type === 'video' ? 0 : afterLength);
    const clock = stream === this.#clock;
    this.#flags.pcr = clock ? wrap33(dts - PCR_LEAD) : null;
    this.#flags.randomAccess = packet.keyframe && packet.track.type === 'video';
    writePayload(output, stream, payload, this.#flags);
  }

  /** A section on a separate PID, which the tables announce from the first section on. */
  #writeSplice({ data, pts, track }: Packet, offset: number, output: TsBuffer): void {
    const section = retimeSplice(data, rescale(pts, track.timebase, MPEG_90K) + offset);
    if (this.#splices === null) {
      this.#splices = { pid: SPLICE_PID, continuity: 0 };
      this.#buildTables();
      this.writeTables(output);
    }
    writeSection(output, this.#splices, section);
  }

  #putLength(length: number): void {
    const value = length > 0xff_ff ? 0 : length;
    this.#header[4] = value >> 8;
    this.#header[5] = value;
  }

  #open(track: Track, pid: number, index: number): MuxedStream {
    const streamId =
      track.type === 'video' ? StreamId.VIDEO : track.type === 'audio' && track.codec !== 'OPUS' ? StreamId.AUDIO : StreamId.PRIVATE_1;
    // Numbered ids of audio and video let demuxers that rely on them distinguish streams.
    const numbered = streamId === StreamId.PRIVATE_1 ? streamId : streamId + (index & 0xf);
    return { track, pid, continuity: this.#counters.get(pid) ?? 0, elementary: elementaryStream(track), streamId: numbered };
  }

  #follow(stream: MuxedStream, track: Track): void {
    if (!sameElementary(stream.track, track)) stream.elementary = elementaryStream(track);
    stream.track = track;
  }
}
