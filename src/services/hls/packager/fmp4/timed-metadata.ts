/** ID3 tags waiting for the part whose time range holds them. */

import type { BoxWriter } from '../../../../containers/isobmff/box-writer.ts';
import { ID3_SCHEME, writeEventMessage } from '../../../../containers/isobmff/event-message.ts';
import { isId3 } from '../../../../containers/mpegts/id3-units.ts';

/** More tags than this in one part are not metadata any more: the oldest go. */
const MAX_WAITING = 64;
/** As many bytes as a part of media may have: tags are not counted there. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** One for each stream; a tag goes into the first part that is written behind its time. */
export class TimedMetadata {
  readonly #waiting: { time: number; data: Uint8Array }[] = [];
  #bytes = 0;
  #nextId = 0;
  /** Tags that had to go because too many waited. */
  dropped = 0;

  /** Takes a data packet at `time` (ms). What is not ID3 has no place in LL-HLS and is ignored. */
  push(time: number, data: Uint8Array): void {
    if (!isId3(data)) return;
    this.#waiting.push({ time, data });
    this.#bytes += data.length;
    while (this.#waiting.length > MAX_WAITING || this.#bytes > MAX_WAITING_BYTES) {
      this.#take();
      this.dropped += 1;
    }
  }

  /** Appends the tags due before `end` (ms) as emsg boxes. `offset` (ms) leads to the time of the fragments. */
  write(writer: BoxWriter, part: { start: number; end: number; offset: number; timescale: number }): void {
    while (true) {
      const next = this.#waiting[0];
      if (next === undefined || next.time >= part.end) return;
      this.#take();
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

  /** The oldest goes. */
  #take(): void {
    this.#bytes -= this.#waiting.shift()?.data.length ?? 0;
  }
}
