/** Cues of one subtitle track for segments that are still to come. */
import { readCuePayload } from '../../../containers/webvtt/cue-payload.ts';
import { type TimedCue, writeVtt } from '../../../containers/webvtt/vtt-writer.ts';
import type { Packet } from '../../../media/packet.ts';
import { toMilliseconds } from '../../../media/timebase.ts';

/** Limit of cues of one track that are shown now or later: each segment repeats the cues that it needs. */
const MAX_CUES = 512;
/** UTF-16 units of all of them. */
const MAX_LENGTH = 64 * 1024;

/** One for each subtitle track of a packaged stream. */
export class WaitingCues {
  /** Dropped cues: too many waited, or the cue was empty or over when it came. */
  dropped = 0;
  readonly #mediaOffset: () => number;
  #cues: TimedCue[] = [];
  #length = 0;
  /** Everything before it, ms, has been written. */
  #written = 0;

  /** `mediaOffset` (ms) is added to times of the stream to get timestamps of its media. */
  constructor(mediaOffset: () => number) {
    this.#mediaOffset = mediaOffset;
  }

  /** Takes a packet of the track. */
  push({ track, pts, duration, data }: Packet): void {
    const start = toMilliseconds(pts, track.timebase);
    const end = start + toMilliseconds(duration, track.timebase);
    // Derived from its content, so that all servers of a stream agree.
    const twin = this.#cues.filter((other) => other.start === start && other.end === end).length;
    const cue = { id: `${start}-${end}-${twin}`, start, end, ...readCuePayload(data) };
    if (cue.end <= this.#written || cue.text === '') {
      this.dropped += 1;
      return;
    }
    const later = this.#cues.findIndex((other) => other.start > start);
    this.#cues.splice(later < 0 ? this.#cues.length : later, 0, cue);
    this.#length += lengthOf(cue);
    while (this.#cues.length > MAX_CUES || this.#length > MAX_LENGTH) {
      this.#length -= lengthOf(this.#cues.pop() ?? cue);
      this.dropped += 1;
    }
  }

  /** The file for the media from `start` to `end`, ms. */
  write(start: number, end: number): Buffer {
    this.#written = Math.max(this.#written, end);
    const shown = this.#cues.filter((cue) => cue.start < end && cue.end > start);
    return Buffer.from(writeVtt(shown, start, start + this.#mediaOffset()));
  }

  /** Nothing before `time` (ms) will be written. */
  forget(time: number): void {
    if (this.#cues.length === 0) return;
    this.#cues = this.#cues.filter(({ end }) => end > time);
    this.#length = this.#cues.reduce((sum, cue) => sum + lengthOf(cue), 0);
  }
}

function lengthOf({ text, settings }: TimedCue): number {
  return text.length + settings.length;
}
