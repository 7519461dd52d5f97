/** ID3 tags waiting for the parts whose time range holds them. */

import type { BoxWriter } from '../../../../containers/isobmff/box-writer.ts';
import { ID3_SCHEME, writeEventMessage } from '../../../../containers/isobmff/event-message.ts';
import { isId3 } from '../../../../containers/mpegts/id3-units.ts';
import type { EventTarget } from '../../../../media/timed-event.ts';
import type { Track } from '../../../../media/track.ts';

/** Limit of tags in one part; the oldest are dropped. */
const MAX_WAITING = 64;
/** Limit of their bytes, equal to that of a part's media: tags are not counted there. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** Maximum lag between tracks, ms: a tag for several tracks waits no longer. */
const MAX_LAG = 10_000;

interface WaitingTag {
  /** Media time, ms. */
  readonly time: number;
  readonly data: Uint8Array;
  readonly target: EventTarget | 'leader';
  /** The same in all tracks, so that players recognise one event. */
  readonly id: number;
  /** Tracks that have it. */
  readonly written: Set<number>;
}

/** One for each stream; a tag goes into the first part of each of its tracks that ends after its time. */
export class TimedMetadata {
  #waiting: WaitingTag[] = [];
  #bytes = 0;
  #nextId = 0;
  /** Tags dropped because too many waited. */
  dropped = 0;

  /** No tags wait. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /**
   * Takes the data of a tag at `time` (ms) for the tracks of `target`; `leader` means the leading track. LL-HLS carries ID3 only, so other
   * formats are ignored.
   */
  push(time: number, data: Uint8Array, target: EventTarget | 'leader'): void {
    if (!isId3(data)) return;
    this.#waiting.push({ time, data, target, id: this.#nextId, written: new Set() });
    this.#nextId += 1;
    this.#bytes += data.length;
    while (this.#waiting.length > MAX_WAITING || this.#bytes > MAX_WAITING_BYTES) {
      this.#bytes -= this.#waiting.shift()?.data.length ?? 0;
      this.dropped += 1;
    }
  }

  /** Appends the tags of `track` due before `end` (ms) as emsg boxes. `offset` (ms) leads to the time of the fragments. */
  write(
    writer: BoxWriter,
    track: Pick<Track, 'id' | 'type'>,
    part: { readonly start: number; readonly end: number; readonly offset: number; readonly timescale: number; readonly leads: boolean },
  ): void {
    let isDone = false;
    for (const tag of this.#waiting) {
      if (tag.time >= part.end) continue;
      const { id, target, data, written } = tag;
      const isMine = target === 'leader' ? part.leads : target === 'all' || target === track.type;
      if (isMine && !written.has(track.id)) {
        written.add(track.id);
        const time = Math.max(part.start, tag.time) + part.offset;
        const presentationTime = Math.max(0, Math.round((time / 1000) * part.timescale));
        writeEventMessage(writer, { scheme: ID3_SCHEME, timescale: part.timescale, presentationTime, id, data });
      }
      isDone ||= isOver(tag, part);
    }
    if (!isDone) return;
    this.#waiting = this.#waiting.filter((tag) => !isOver(tag, part));
    this.#bytes = this.#waiting.reduce((sum, { data }) => sum + data.length, 0);
  }
}

function isOver({ target, written, time }: WaitingTag, { end }: { readonly end: number }): boolean {
  return target === 'leader' ? written.size > 0 : end - time > MAX_LAG;
}
