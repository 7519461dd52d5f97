/** EXT-X-RENDITION-REPORT (rfc8216bis §4.4.5.4). */
import { quoted } from './attribute-list.ts';

const TAG = '#EXT-X-RENDITION-REPORT';

/** How far another media playlist of the presentation is. */
export interface RenditionReport {
  readonly uri: string;
  readonly lastMsn: number;
  /** Index of the last part of that segment; null when it has none. */
  readonly lastPart: number | null;
}

/** The whole line. */
export function serializeRenditionReport(report: RenditionReport): string {
  const lastPart = report.lastPart === null ? '' : `,LAST-PART=${report.lastPart}`;
  return `${TAG}:URI=${quoted(report.uri)},LAST-MSN=${report.lastMsn}${lastPart}\n`;
}
