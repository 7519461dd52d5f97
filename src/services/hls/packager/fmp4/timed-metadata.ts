/** ID3 tags waiting for the part whose time range holds them. */

import type { BoxWriter } from '../../../../containers/isobmff/box-writer.ts';
import { ID3_SCHEME, writeEventMessage } from '../../../../containers/isobmff/event-message.ts';

/** More tags than this in one part are not metadata any more: the oldest go. */
const MAX_WAITING = 64;
const ID3_MAGIC = [0x49, 0x44, 0x33];

/** One for each stream; a tag goes into the first part that is written behind its time. */
export class TimedMetadata {
  readonly #waiting: { time: number; data: Uint8Array }[] = [];
  #nextId = 0;
  /** Tags that had to go because too many waited. */
  dropped = 0;

  /** Takes a data packet at `time` (ms). What is not ID3 has no place in LL-HLS and is ignored. */
  push(time: number, data: Uint8Array): void {
    if (!ID3_MAGIC.every((byte, index) => data[index] === byte)) return;
    if (this.#waiting.length === MAX_WAITING) {
      this.#waiting.shift();
      this.dropped += 1;
    }
    this.#waiting.push({ time, data });
  }

  /** Appends the tags due before `end` (ms) as emsg boxes. `offset` (ms) leads to the time of the fragments. */
  write(writer: BoxWriter, part: { start: number; end: number; offset: number; timescale: number }): void {
    while (true) {
      const next = this.#waiting[0];
      if (next === undefined || next.time >= part.end) return;
      this.#waiting.shift();
      const time = Math.max(part.start, next.time) + part.offset;
      writeEventMessage(writer, {
        scheme: ID3_SCHEME,
        timescale: part.timescale,
        presentationTime: Math.max(0, Math.round((time / 1000) * part.timescale)),
        id: this.#nextId,
        data: next.data,
      });
      this.#nextId += 1;
    }
  }
}
