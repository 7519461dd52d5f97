/** RTCP compound packets, RFC 3550 §6.4: sender reports and goodbyes in, receiver reports out. */
import { ByteWriter } from '../../util/byte-writer.ts';
import { ProtocolError } from '../../util/protocol-error.ts';

const TYPE_SR = 200;
const TYPE_RR = 201;
const TYPE_SDES = 202;
const TYPE_BYE = 203;
const SR_LENGTH = 28;
const SDES_CNAME = 1;
const VERSION = 2;

/** A sender report's times. */
export interface SenderReport {
  readonly ssrc: number;
  /** Wall clock, seconds since 1900. */
  readonly ntp: number;
  /** The middle 32 bits of the NTP time, for `lastReport` of receiver reports. */
  readonly compactNtp: number;
  /** The same instant in the clock of the media, 32 bits. */
  readonly rtpTimestamp: number;
}

/** The parts of a compound packet that a receiver of media needs; other packets in it are skipped. */
export interface RtcpContent {
  readonly reports: readonly SenderReport[];
  /** Sources that have left. */
  readonly byes: readonly number[];
}

/** Parses a compound packet; unknown kinds of packets are skipped. Throws `RTCP` for a truncated packet. */
export function parseRtcp(data: Uint8Array): RtcpContent {
  const reports: SenderReport[] = [];
  const byes: number[] = [];
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  let at = 0;
  while (at < data.length) {
    if (at + 4 > data.length) throw new ProtocolError('RTCP', 'header ends early', at);
    const first = view.getUint8(at);
    if (first >> 6 !== VERSION) throw new ProtocolError('RTCP', `version ${first >> 6}`, at);
    const length = (view.getUint16(at + 2) + 1) * 4;
    if (at + length > data.length) throw new ProtocolError('RTCP', `packet of ${length} bytes, ${data.length - at} left`, at);
    const type = view.getUint8(at + 1);
    if (type === TYPE_SR && length >= SR_LENGTH) reports.push(readSenderReport(view, at + 4));
    if (type === TYPE_BYE) {
      for (let index = 0; index < (first & 0x1f) && 4 + index * 4 + 4 <= length; index += 1) byes.push(view.getUint32(at + 4 + index * 4));
    }
    at += length;
  }
  return { reports, byes };
}

function readSenderReport(view: DataView, at: number): SenderReport {
  const seconds = view.getUint32(at + 4);
  const fraction = view.getUint32(at + 8);
  return {
    ssrc: view.getUint32(at),
    ntp: seconds + fraction / 2 ** 32,
    compactNtp: ((seconds & 0xff_ff) * 2 ** 16 + (fraction >>> 16)) >>> 0,
    rtpTimestamp: view.getUint32(at + 12),
  };
}

/** A receiver's report about one source. */
export interface ReceptionReport {
  readonly ssrc: number;
  /** Share of packets lost since the last report, 1/256. */
  readonly fractionLost: number;
  readonly totalLost: number;
  /** Sequence number with its wraps in the upper 16 bits. */
  readonly highestSequence: number;
  /** Interarrival jitter, in the clock of the media. */
  readonly jitter: number;
  /** `compactNtp` of the last sender report; 0 without one. */
  readonly lastReport: number;
  /** Time since that report, 1/65536 s. */
  readonly delaySinceLastReport: number;
}

/** Limit of sources in one report. */
const MAX_REPORTS = 31;

/** A receiver report followed by the name of the receiver, which a compound packet must hold (§6.1). At most 31 sources. */
export function buildReceiverReport(ownSsrc: number, name: string, sources: readonly ReceptionReport[]): Uint8Array {
  const writer = new ByteWriter(64);
  const reports = sources.slice(0, MAX_REPORTS);
  const count = reports.length;
  writer
    .u8(0x80 | count)
    .u8(TYPE_RR)
    .u16(1 + count * 6)
    .u32(ownSsrc);
  for (const report of reports) {
    writer.u32(report.ssrc).u8(report.fractionLost).u24(Math.min(report.totalLost, 0x7f_ff_ff));
    writer.u32(report.highestSequence).u32(report.jitter).u32(report.lastReport).u32(report.delaySinceLastReport);
  }
  // An item and at least one zero after it, padded to four bytes.
  const padding = 4 - ((2 + name.length) % 4);
  writer
    .u8(0x81)
    .u8(TYPE_SDES)
    .u16((4 + 2 + name.length + padding) / 4)
    .u32(ownSsrc);
  return writer.u8(SDES_CNAME).u8(name.length).text(name).zeros(padding).finish();
}
