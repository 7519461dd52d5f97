import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';
import { nearestFramerate } from './track-meter.ts';

/** Half a second of most streams: timestamps of whole milliseconds are off by less than the tolerance then. */
const FRAMES = 16;
/** An announced frame rate within this relative distance of the measured one is accepted. */
const TOLERANCE = 0.02;

/** Measures the frame rate of a video track by its first frames, because what sources announce is often wrong or missing. */
export class FramerateProbe {
  #frames = 0;
  /** Decoding times, seconds. */
  #first = 0;
  #last = 0;

  /** Enough frames were measured. */
  get settled(): boolean {
    return this.#frames >= FRAMES;
  }

  count({ dts, track }: Packet): void {
    if (this.settled) return;
    this.#last = toSeconds(dts, track.timebase);
    if (this.#frames === 0) this.#first = this.#last;
    this.#frames += 1;
  }

  /** Frames per second: the announced rate (0: none) unless the measurement contradicts it. */
  rate(announced: number): number {
    const seconds = this.#last - this.#first;
    if (seconds <= 0) return announced;
    const measured = (this.#frames - 1) / seconds;
    return Math.abs(announced / measured - 1) <= TOLERANCE ? announced : nearestFramerate(measured, TOLERANCE);
  }
}
