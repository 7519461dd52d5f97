/** The information file of a dump: its files, and whether more will come. */
import { formatTimestamp } from '../../../util/timestamp.ts';
import { escapeXml } from '../../../util/xml-text.ts';

/** Contents of the information file, in the words of the API. */
export const DumpStatus = {
  RUNNING: 'Running',
  COMPLETED: 'Completed',
  ERROR: 'Error',
} as const;
/** A status. */
export type DumpStatus = (typeof DumpStatus)[keyof typeof DumpStatus];

/** The status element. User data cannot contain it, because its angle brackets are escaped. */
export function statusElement(status: DumpStatus): string {
  return `<Status>${status}</Status>`;
}

/** Text of the file; items are rendered once. */
export class DumpInfo {
  readonly #head: string;
  #items = '';
  #count = 0;

  /** `stream` is the internal path of the stream. */
  constructor(stream: string, userData: string) {
    this.#head = `  <UserData>${escapeXml(userData)}</UserData>\n  <Stream>${escapeXml(stream)}</Stream>\n`;
  }

  /** `file` was written at `time`, ms since the epoch. */
  add(file: string, time: number): void {
    this.#items += `    <Item>\n      <Seq>${this.#count}</Seq>\n      <Time>${formatTimestamp(time)}</Time>\n`;
    this.#items += `      <File>${escapeXml(file)}</File>\n    </Item>\n`;
    this.#count += 1;
  }

  /** Discards the items. */
  clear(): void {
    this.#items = '';
  }

  text(status: DumpStatus): string {
    const head = `<?xml version="1.0" encoding="utf-8"?>\n<HLSDumpInfo>\n${this.#head}`;
    return `${head}  ${statusElement(status)}\n  <Items>\n${this.#items}  </Items>\n</HLSDumpInfo>\n`;
  }
}
