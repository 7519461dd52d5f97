/** What a live item brings beside its media, on its way to the stream of its channel. */
import { readCuePayload } from '../containers/webvtt/cue-payload.ts';
import type { IngestStream } from '../core/ingest.ts';
import type { Packet } from '../media/packet.ts';
import { toMilliseconds } from '../media/timebase.ts';
import { EventFormat, isMarker, type TimedEvent } from '../media/timed-event.ts';

/** What waits of one item: the oldest gives way. */
const MAX_WAITING = 100;

/** An event, or a cue of a subtitle track; times in ms of the item. */
export type ItemAside =
  | { readonly type: 'event'; readonly at: number; readonly event: TimedEvent; readonly data: Uint8Array }
  | {
      readonly type: 'cue';
      readonly at: number;
      readonly language: string;
      readonly duration: number;
      readonly settings: string;
      readonly text: string;
    };

/**
 * What `packet`, which has an `event`, is for a channel. Null for what is of its own stream alone: the end of its live playlists, and breaks, whose
 * ends would be missed where the item is cut.
 */
export function asideOf({ track, pts, duration, data, event }: Packet): ItemAside | null {
  const at = toMilliseconds(pts, track.timebase);
  if (event === undefined || event.format === EventFormat.CONCLUSION || isMarker(event)) return null;
  if (event.format !== EventFormat.SUBTITLE) return { type: 'event', at, event, data };
  return { type: 'cue', at, language: track.language, duration: toMilliseconds(duration, track.timebase), ...readCuePayload(data) };
}

/** Those that wait for their time, in the order in which they came. */
export class ItemAsides {
  #waiting: ItemAside[] = [];

  add(aside: ItemAside): void {
    if (this.#waiting.length >= MAX_WAITING) this.#waiting.shift();
    this.#waiting.push(aside);
  }

  /** Sends those whose time has come by `until`; what lies before `from` or behind `cut` is left out. `offset` leads to these, all ms of the channel. */
  send(
    stream: Pick<IngestStream, 'pushCue' | 'pushEvent'>,
    { offset, from, until, cut }: { readonly offset: number; readonly from: number; readonly until: number; readonly cut: number },
  ): void {
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter((aside) => {
      const at = offset + aside.at;
      if (at > until && at < cut) return true;
      if (at < from || at >= cut) return false;
      if (aside.type === 'event') stream.pushEvent({ ...aside.event, data: aside.data, at: at / 1000 });
      else {
        const { language, duration, settings, text } = aside;
        const shown = Math.round(Math.min(duration, cut - at));
        if (shown > 0) stream.pushCue(language, { at: at / 1000, duration: shown, settings, text });
      }
      return false;
    });
  }
}
