/** Event message box (ISO/IEC 23009-1 §5.10.3.3), in which CMAF carries ID3. */
import type { BoxWriter } from './box-writer.ts';

/** Scheme of "Carriage of ID3 Timed Metadata in CMAF". */
export const ID3_SCHEME = 'https://aomedia.org/emsg/ID3';
const UNKNOWN_DURATION = 0xffff_ffff;

/** One event; its box precedes the moof whose time range includes it. */
export interface EventMessage {
  readonly scheme: string;
  readonly timescale: number;
  /** In `timescale`, on the timeline of the track that carries it. */
  readonly presentationTime: number;
  readonly id: number;
  readonly data: Uint8Array;
}

/** Appends an emsg box of version 1. */
export function writeEventMessage(writer: BoxWriter, event: EventMessage): void {
  const emsg = writer.fullBox('emsg', 1, 0);
  writer.u32(event.timescale);
  writer.u64(event.presentationTime);
  writer.u32(UNKNOWN_DURATION);
  writer.u32(event.id >>> 0);
  writer.ascii(`${event.scheme}\0`);
  writer.ascii('\0');
  writer.bytes(event.data);
  writer.end(emsg);
}
