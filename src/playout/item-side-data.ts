/** Events and cues of a live item, on their way to the stream of its channel. */
import type { IngestStream } from '../core/ingest.ts';
import { SourceBreaks } from '../core/source-breaks.ts';
import type { StreamSideData } from '../core/stream-side-data.ts';
import { isMarker } from '../media/timed-event.ts';

/** Limit of waiting events of one item: the oldest is dropped. */
const MAX_WAITING = 100;

type Beside = Pick<IngestStream, 'pushCue' | 'pushEvent'>;

/** Side data of one item, waiting in the order of arrival, and the breaks that it began. */
export class ItemSideData {
  readonly #breaks = new SourceBreaks();
  #waiting: StreamSideData[] = [];

  add(data: StreamSideData): void {
    if (this.#waiting.length >= MAX_WAITING) this.#waiting.shift();
    this.#waiting.push(data);
  }

  /**
   * Sends data that is due by `until`; data before `from` or after `cut` is discarded. `offset` converts times of the item to these times,
   * all in ms of the channel. Markers are sent at once, because encoders and packagers must know a cut in advance.
   */
  send(
    stream: Beside,
    { offset, from, until, cut }: { readonly offset: number; readonly from: number; readonly until: number; readonly cut: number },
  ): void {
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter((data) => {
      const at = offset + data.at;
      const isOfBreak = data.type === 'event' && isMarker(data.event);
      // The cut may still move.
      if (isOfBreak ? at >= cut : at > until && at < cut) return true;
      if (at < from || at >= cut) return false;
      if (data.type === 'event') this.#sendEvent(stream, data, at / 1000);
      else {
        const { language, duration, settings, text } = data;
        const shown = Math.round(Math.min(duration, cut - at));
        if (shown > 0) stream.pushCue(language, { at: at / 1000, duration: shown, settings, text });
      }
      return false;
    });
  }

  /** The item is off air at `at`, ms of the channel: its breaks end there. Idempotent. */
  leave(stream: Beside, at: number): void {
    for (const end of this.#breaks.end(at / 1000)) stream.pushEvent(end);
  }

  #sendEvent(stream: Beside, { event, data }: Extract<StreamSideData, { type: 'event' }>, at: number): void {
    if (!isMarker(event)) stream.pushEvent({ ...event, data, at });
    // Its stream ends the breaks that it begins.
    else if (this.#breaks.admits({ ...event, data })) stream.pushEvent({ ...event, data, at, settled: true });
  }
}
