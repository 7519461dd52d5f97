/** Tags of media playlists for writers, each as whole lines. Sections are those of rfc8216bis. */
import { quoted, seconds } from './attribute-list.ts';

/** Delivery directives that a server supports; times in seconds, null if not announced. */
export interface ServerControl {
  readonly canBlockReload: boolean;
  readonly canSkipUntil: number | null;
  readonly holdBack: number | null;
  readonly partHoldBack: number | null;
}

/** EXT-X-SERVER-CONTROL (§4.4.3.8) with the attributes that are set. */
export function serializeServerControl(control: ServerControl): string {
  const attributes: string[] = [];
  if (control.canBlockReload) attributes.push('CAN-BLOCK-RELOAD=YES');
  if (control.canSkipUntil !== null) attributes.push(`CAN-SKIP-UNTIL=${seconds(control.canSkipUntil)}`);
  if (control.holdBack !== null) attributes.push(`HOLD-BACK=${seconds(control.holdBack)}`);
  if (control.partHoldBack !== null) attributes.push(`PART-HOLD-BACK=${seconds(control.partHoldBack)}`);
  return `#EXT-X-SERVER-CONTROL:${attributes.join(',')}\n`;
}

/** EXT-X-PART-INF (§4.4.3.7); `partTarget` in seconds. */
export function serializePartInf(partTarget: number): string {
  return `#EXT-X-PART-INF:PART-TARGET=${seconds(partTarget)}\n`;
}

/** One partial segment. */
export interface PartTag {
  /** Seconds. */
  readonly duration: number;
  readonly uri: string;
  /** The part has a frame that can be decoded without others. */
  readonly independent: boolean;
}

/** EXT-X-PART (§4.4.4.9). */
export function serializePart(part: PartTag): string {
  return `#EXT-X-PART:DURATION=${seconds(part.duration)},URI=${quoted(part.uri)}${part.independent ? ',INDEPENDENT=YES' : ''}\n`;
}

/** EXT-X-GAP (§4.4.4.7), before the URI of a missing segment: players should not request it. */
export const GAP = '#EXT-X-GAP\n';

/** EXT-X-PROGRAM-DATE-TIME (§4.4.4.6). `time` in ms since the epoch; printed in local time with its offset, as the reference does. */
export function serializeProgramDateTime(time: number): string {
  return `#EXT-X-PROGRAM-DATE-TIME:${formatLocalTime(time)}\n`;
}

/** ISO 8601 in local time with milliseconds and `±hh:mm`. */
function formatLocalTime(time: number): string {
  const rounded = Math.round(time);
  const offset = -new Date(rounded).getTimezoneOffset();
  const local = new Date(rounded + offset * 60_000).toISOString().slice(0, -1);
  const minutes = Math.abs(offset);
  const hh = String(Math.floor(minutes / 60)).padStart(2, '0');
  const mm = String(minutes % 60).padStart(2, '0');
  return `${local}${offset < 0 ? '-' : '+'}${hh}:${mm}`;
}

/** EXT-X-SKIP of delta updates (§4.4.5.2), in place of the oldest segments of the playlist. */
export function serializeSkip(skippedSegments: number): string {
  return `#EXT-X-SKIP:SKIPPED-SEGMENTS=${skippedSegments}\n`;
}

/** A resource that the server expects to list next. */
export interface PreloadHint {
  readonly type: 'PART' | 'MAP';
  readonly uri: string;
}

/** EXT-X-PRELOAD-HINT (§4.4.5.3) of a whole resource, never of a byte range. */
export function serializePreloadHint(hint: PreloadHint): string {
  return `#EXT-X-PRELOAD-HINT:TYPE=${hint.type},URI=${quoted(hint.uri)}\n`;
}

/** Position of another media playlist of the presentation. */
export interface RenditionReport {
  readonly uri: string;
  readonly lastMsn: number;
  /** Index of the last part of that segment; null if it has none. */
  readonly lastPart: number | null;
}

/** EXT-X-RENDITION-REPORT (§4.4.5.4). */
export function serializeRenditionReport(report: RenditionReport): string {
  const lastPart = report.lastPart === null ? '' : `,LAST-PART=${report.lastPart}`;
  return `#EXT-X-RENDITION-REPORT:URI=${quoted(report.uri)},LAST-MSN=${report.lastMsn}${lastPart}\n`;
}

/** EXT-X-CUE-OUT in the form that ad inserters know; `duration` in seconds, 0 for a break until further notice. */
export function serializeCueOut(duration: number): string {
  return duration > 0 ? `#EXT-X-CUE-OUT:DURATION=${duration.toFixed(3)}\n` : '#EXT-X-CUE-OUT\n';
}

/** EXT-X-CUE-OUT-CONT: a break continues. Both in seconds; `duration` 0: unknown. */
export function serializeCueCont(elapsed: number, duration: number): string {
  return `#EXT-X-CUE-OUT-CONT:ElapsedTime=${elapsed.toFixed(3)}${duration > 0 ? `,Duration=${duration.toFixed(3)}` : ''}\n`;
}

/** EXT-X-CUE-IN: the break ends. */
export const CUE_IN = '#EXT-X-CUE-IN\n';

/** Beginning of every EXT-X-DATERANGE. */
export const DATE_RANGE_TAG = '#EXT-X-DATERANGE:';

/** A splice as a date range (§4.4.5.1). */
export interface SpliceRange {
  readonly id: string;
  /** Beginning of the break, ms since the epoch. */
  readonly start: number;
  /** Seconds; null if unknown, and for splices that begin no break. */
  readonly plannedDuration: number | null;
  readonly attribute: 'SCTE35-OUT' | 'SCTE35-IN' | 'SCTE35-CMD';
  /** The splice_info_section. */
  readonly section: Uint8Array;
}

/** EXT-X-DATERANGE of a splice. */
export function serializeSpliceRange({ id, start, plannedDuration, attribute, section }: SpliceRange): string {
  const planned = plannedDuration === null ? '' : `,PLANNED-DURATION=${plannedDuration.toFixed(3)}`;
  const bytes = Buffer.from(section).toString('hex').toUpperCase();
  return `${DATE_RANGE_TAG}ID=${quoted(id)},START-DATE="${formatLocalTime(start)}"${planned},${attribute}=0x${bytes}\n`;
}
