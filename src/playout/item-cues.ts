/** The subtitles of an item on their way to the stream of its channel. */
import type { IngestStream } from '../core/ingest.ts';
import type { ItemSubtitles } from './sidecars.ts';

/** A stream without media takes no cue: it is offered so many times, once in each turn. */
const MAX_OFFERS = 50;

interface WaitingCue {
  readonly language: string;
  /** ms of the channel. */
  readonly start: number;
  readonly end: number;
  readonly settings: string;
  readonly text: string;
}

/** One for each item that goes on air. */
export class ItemCues {
  readonly #cues: readonly WaitingCue[];
  #next = 0;
  #offers = 0;

  /** `offset` (ms) leads from the time of the item to that of the channel. */
  constructor(subtitles: readonly ItemSubtitles[], offset: number) {
    const cues = subtitles.flatMap(({ language, cues: own }) =>
      own.map(({ start, duration, settings, text }) => ({
        language,
        start: offset + start,
        end: offset + start + duration,
        settings,
        text,
      })),
    );
    this.#cues = cues.sort((a, b) => a.start - b.start);
  }

  /** There is nothing left to send. */
  get isEmpty(): boolean {
    return this.#next >= this.#cues.length;
  }

  /** Sends those that begin before `until`; nothing is shown before `from` or behind `cut`. All in ms of the channel. */
  send(
    stream: Pick<IngestStream, 'pushCue'>,
    { from, until, cut }: { readonly from: number; readonly until: number; readonly cut: number },
  ): void {
    for (let cue = this.#cues[this.#next]; cue !== undefined && cue.start < Math.min(until, cut); cue = this.#cues[this.#next]) {
      const start = Math.max(cue.start, from);
      const duration = Math.round(Math.min(cue.end, cut) - start);
      const { language, settings, text } = cue;
      const isOver = duration <= 0 || cue.end <= from;
      if (!isOver && !stream.pushCue(language, { at: start / 1000, duration, settings, text }) && this.#offers < MAX_OFFERS) {
        this.#offers += 1;
        return;
      }
      this.#next += 1;
    }
  }
}
