/** The subtitles of an item on their way to the stream of its channel. */
import type { IngestStream } from '../core/ingest.ts';
import type { ItemSubtitles } from './sidecars.ts';

/** A stream without media takes no cue: it is offered this many times, once in each turn. */
const MAX_OFFERS = 50;
/** Limit of simultaneous cues that are sent in pieces; further cues are sent whole. */
const MAX_OPEN = 16;

interface Span {
  readonly from: number;
  readonly until: number;
  readonly cut: number;
}

interface WaitingCue {
  readonly language: string;
  /** ms of the channel. */
  readonly start: number;
  readonly end: number;
  readonly settings: string;
  readonly text: string;
}

/** The cues of one language, and which of them is next. */
interface CueTrack extends ItemSubtitles {
  next: number;
}

/** One for each item on air. */
export class ItemCues {
  readonly #cueTracks: readonly CueTrack[];
  readonly #offset: number;
  readonly #pieceMs: number;
  /** Remaining cues that have begun. */
  readonly #open: WaitingCue[] = [];
  #offers = 0;

  /**
   * `offset` (ms) converts times of the item to those of the channel. `pieceMs`: a cue is sent in pieces of this length, each at its time,
   * so that little of it overlaps the next item when the end of the item is not known in advance.
   */
  constructor(subtitles: readonly ItemSubtitles[], offset: number, pieceMs = Number.POSITIVE_INFINITY) {
    this.#pieceMs = pieceMs;
    this.#offset = offset;
    this.#cueTracks = subtitles.map((each) => ({ ...each, next: 0 }));
  }

  /** No cues are left. */
  get isEmpty(): boolean {
    return this.#first === null && this.#open.length === 0;
  }

  /** The language whose next cue begins first; null: no language has cues left. */
  get #first(): CueTrack | null {
    let first: CueTrack | null = null;
    for (const cueTrack of this.#cueTracks)
      if (startOf(cueTrack) < (first === null ? Number.POSITIVE_INFINITY : startOf(first))) first = cueTrack;
    return first;
  }

  /** Sends the cues that begin before `until`; nothing is shown before `from` or behind `cut`. All in ms of the channel. */
  send(stream: Pick<IngestStream, 'pushCue'>, span: Span): void {
    const { from, until, cut } = span;
    for (const cue of this.#open.splice(0)) this.#goOn(stream, cue, span);
    const last = Math.min(until, cut);
    for (let cueTrack = this.#first; cueTrack !== null && this.#offset + startOf(cueTrack) < last; cueTrack = this.#first) {
      const cue = nextOf(cueTrack, this.#offset);
      const start = Math.max(cue.start, from);
      const isWhole = this.#open.length >= MAX_OPEN;
      const end = Math.min(cue.end, cut, isWhole ? cut : start + this.#pieceMs);
      const isOver = Math.round(end - start) <= 0;
      if (!isOver && !push(stream, cue, start, end) && this.#offers < MAX_OFFERS) {
        this.#offers += 1;
        return;
      }
      cueTrack.next += 1;
      if (!isOver) this.#goOn(stream, { ...cue, start: end }, span);
    }
  }

  /** Sends the pieces of a cue that begin before `until`, whether they are taken or not. */
  #goOn(stream: Pick<IngestStream, 'pushCue'>, cue: WaitingCue, { until, cut }: Span): void {
    const last = Math.min(cue.end, cut);
    let { start } = cue;
    while (start < Math.min(until, last)) {
      const end = Math.min(last, start + this.#pieceMs);
      push(stream, cue, start, end);
      start = end;
    }
    if (start < last) this.#open.push({ ...cue, start });
  }
}

function startOf({ cues, next }: CueTrack): number {
  return cues[next]?.start ?? Number.POSITIVE_INFINITY;
}

/** `offset` leads to ms of the channel. */
function nextOf({ language, cues, next }: CueTrack, offset: number): WaitingCue {
  const { start = 0, duration = 0, settings = '', text = '' } = cues[next] ?? {};
  return { language, start: offset + start, end: offset + start + duration, settings, text };
}

function push(stream: Pick<IngestStream, 'pushCue'>, { language, settings, text }: WaitingCue, start: number, end: number): boolean {
  return stream.pushCue(language, { at: start / 1000, duration: Math.round(end - start), settings, text });
}
