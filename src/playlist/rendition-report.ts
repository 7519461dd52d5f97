/** EXT-X-RENDITION-REPORT (rfc8216bis §4.4.5.4). */
import { parseAttributeList, quoted, requireAttribute, requireDecimal } from './attribute-list.ts';

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

/** Reads the text after the colon. */
export function parseRenditionReport(text: string): RenditionReport {
  const attributes = parseAttributeList(text);
  return {
    uri: requireAttribute(attributes, TAG, 'URI'),
    lastMsn: requireDecimal(attributes, TAG, 'LAST-MSN'),
    lastPart: attributes.has('LAST-PART') ? requireDecimal(attributes, TAG, 'LAST-PART') : null,
  };
}
