/** Reports of a media receiver in RTCP (RFC 3550 section 6.4, RFC 4585, RFC 5104, draft-alvestrand-rmcat-remb). */
import { type ArrivalReport, readArrivalReport } from './arrival-report.ts';

const PacketType = { RECEIVER_REPORT: 201, TRANSPORT_FEEDBACK: 205, PAYLOAD_FEEDBACK: 206 } as const;
const ARRIVALS_FORMAT = 15;
const PayloadFormat = { PLI: 1, FIR: 4, APPLICATION: 15 } as const;
const REMB = 0x5245_4d42;
const REPORT_LENGTH = 24;
/** Limit of arrival reports read from one compound; players send one. */
const MAX_ARRIVAL_REPORTS = 4;

/** A viewer's report of one RTP stream: a report block (RFC 3550 section 6.4.1). */
export interface ViewerReport {
  readonly ssrc: number;
  /** Share of packets lost since the last report, 0 to 1. */
  readonly fractionLost: number;
  /** Packets lost since the start; negative with duplicates. */
  readonly totalLost: number;
  /** In units of the RTP clock. */
  readonly jitter: number;
  /** Middle 32 bits of the NTP time of the last sender report that arrived; 0 without one. */
  readonly lastReport: number;
  /** Time since that arrived, 1/65536 s. */
  readonly sinceReport: number;
}

/** Contents of a compound packet, all its packets together; `remb` is the last one. */
export interface ViewerFeedback {
  /** The decoder needs a keyframe: PLI or FIR. */
  readonly keyframeWanted: boolean;
  /** Receiver estimate of the bandwidth, bits per second; null when not reported. */
  readonly remb: number | null;
  readonly reports: readonly ViewerReport[];
  /** Which packets came when, by transport-wide numbers. */
  readonly arrivals: readonly ArrivalReport[];
}

/** Seconds from the epoch of NTP to that of Unix. */
const NTP_OFFSET = 2_208_988_800;
const NTP_UNITS = 0x1_0000;
/** Longer times are not round trips. */
const MAX_ROUND_TRIP_S = 60;

/**
 * Round trip to the viewer, s, from a report that came at `now` (wall clock, ms); null if the report does not show it (RFC 3550 section
 * 6.4.1).
 */
export function roundTrip({ lastReport, sinceReport }: ViewerReport, now: number): number | null {
  if (lastReport === 0) return null;
  const ntp = Math.floor((now / 1000 + NTP_OFFSET) * NTP_UNITS) % 2 ** 32;
  const units = (ntp - lastReport - sinceReport) | 0;
  // The difference of two clocks that count ms may be negative.
  const seconds = Math.max(0, units / NTP_UNITS);
  return units < -NTP_UNITS || seconds > MAX_ROUND_TRIP_S ? null : seconds;
}

/** Reads a compound packet; unknown and truncated parts are skipped. */
export function readViewerFeedback(packet: Uint8Array): ViewerFeedback {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.byteLength);
  const reports: ViewerReport[] = [];
  const arrivals: ArrivalReport[] = [];
  let keyframeWanted = false;
  let remb: number | null = null;
  for (let at = 0; at + 4 <= packet.length; ) {
    const end = at + 4 * (view.getUint16(at + 2) + 1);
    if (end > packet.length || view.getUint8(at) >> 6 !== 2) break;
    const count = view.getUint8(at) & 0x1f;
    const type = view.getUint8(at + 1);
    if (type === PacketType.RECEIVER_REPORT) readReports(view, at, end, count, reports);
    else if (type === PacketType.TRANSPORT_FEEDBACK && count === ARRIVALS_FORMAT && arrivals.length < MAX_ARRIVAL_REPORTS) {
      const report = readArrivalReport(view, at, end);
      if (report !== null) arrivals.push(report);
    } else if (type === PacketType.PAYLOAD_FEEDBACK) {
      if (count === PayloadFormat.PLI || count === PayloadFormat.FIR) keyframeWanted = true;
      else if (count === PayloadFormat.APPLICATION) remb = readRemb(view, at, end) ?? remb;
    }
    at = end;
  }
  return { keyframeWanted, remb, reports, arrivals };
}

function readReports(view: DataView, start: number, end: number, count: number, reports: ViewerReport[]): void {
  for (let at = start + 8, n = 0; n < count && at + REPORT_LENGTH <= end; at += REPORT_LENGTH, n += 1) {
    reports.push({
      ssrc: view.getUint32(at),
      fractionLost: view.getUint8(at + 4) / 256,
      totalLost: (view.getInt32(at + 4) << 8) >> 8,
      jitter: view.getUint32(at + 12),
      lastReport: view.getUint32(at + 16),
      sinceReport: view.getUint32(at + 20),
    });
  }
}

function readRemb(view: DataView, start: number, end: number): number | null {
  if (start + 20 > end || view.getUint32(start + 12) !== REMB) return null;
  const packed = view.getUint32(start + 16) & 0xff_ffff;
  return (packed & 0x3_ffff) * 2 ** (packed >> 18);
}
