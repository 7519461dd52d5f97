/** Events and cues of a live item, on their way to the stream of its channel. */
import type { IngestStream } from '../core/ingest.ts';
import { SourceBreaks } from '../core/source-breaks.ts';
import type { StreamAside } from '../core/stream-aside.ts';
import { isMarker } from '../media/timed-event.ts';

/** Limit of waiting events of one item: the oldest is dropped. */
const MAX_WAITING = 100;

type Beside = Pick<IngestStream, 'pushCue' | 'pushEvent'>;

/** Those of one item that wait for their time, in the order in which they came, and the breaks that it has begun. */
export class ItemAsides {
  readonly #breaks = new SourceBreaks();
  #waiting: StreamAside[] = [];

  add(aside: StreamAside): void {
    if (this.#waiting.length >= MAX_WAITING) this.#waiting.shift();
    this.#waiting.push(aside);
  }

  /**
   * Sends those whose time has come by `until`; what lies before `from` or behind `cut` is left out. `offset` leads to these, all ms of the channel.
   * Markers go at once: whoever is to cut there has to know before.
   */
  send(
    stream: Beside,
    { offset, from, until, cut }: { readonly offset: number; readonly from: number; readonly until: number; readonly cut: number },
  ): void {
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter((aside) => {
      const at = offset + aside.at;
      const isOfBreak = aside.type === 'event' && isMarker(aside.event);
      // The cut may still move.
      if (isOfBreak ? at >= cut : at > until && at < cut) return true;
      if (at < from || at >= cut) return false;
      if (aside.type === 'event') this.#sendEvent(stream, aside, at / 1000);
      else {
        const { language, duration, settings, text } = aside;
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

  #sendEvent(stream: Beside, { event, data }: Extract<StreamAside, { type: 'event' }>, at: number): void {
    if (!isMarker(event)) stream.pushEvent({ ...event, data, at });
    // Its stream ends the breaks that it begins.
    else if (this.#breaks.admits({ ...event, data })) stream.pushEvent({ ...event, data, at, settled: true });
  }
}
