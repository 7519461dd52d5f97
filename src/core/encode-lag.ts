/** How far the encodes of an outbound stream are behind their source while it begins. */
import type { Packet } from '../media/packet.ts';
import { toSeconds } from '../media/timebase.ts';
import type { PlannedTrack } from './output-profile.ts';

/** An encode this close to its source, seconds, has caught up: encoders hold back about as much. */
const CAUGHT_UP_S = 0.5;

/**
 * Tells how long bypassed media must wait for the encodes of a stream. A transcoder starts late and then works off its waiting packets;
 * without the wait, viewers would have no encoded tracks for seconds. Times are seconds of media, at the end of a packet.
 */
export class EncodeLag {
  /** End of the last packet of each inbound track. */
  readonly #heard = new Map<number, number>();
  /** End of the last packet of each encode of audio or video. */
  readonly #made = new Map<string, number>();
  /** The source of each encode that bypassed media waits for. */
  #sources = new Map<string, number>();
  #newest = Number.NEGATIVE_INFINITY;
  /** The time after which encodes are not waited for, whatever their lag. */
  #end = Number.POSITIVE_INFINITY;

  /** A packet of the inbound stream. */
  heard({ track, dts, duration, event }: Packet): void {
    // Events have times that say nothing about the progress of the media.
    if (event !== undefined) return;
    const end = toSeconds(dts + duration, track.timebase);
    this.#heard.set(track.id, end);
    this.#newest = Math.max(this.#newest, end);
  }

  /** A packet of an encode. */
  made(key: string, { track, dts, duration }: Packet): void {
    this.#made.set(key, toSeconds(dts + duration, track.timebase));
  }

  /** The stream begins with these tracks. Its encodes get as much time to catch up as it has waited for them. */
  begin(tracks: readonly PlannedTrack[], waitedSeconds: number): void {
    const encodes = tracks.filter(({ kind }) => kind === 'video' || kind === 'audio');
    this.#sources = new Map(encodes.map(({ key, source }) => [key, source.id]));
    this.#end = this.#newest + waitedSeconds;
  }

  /** All encodes have caught up, or are not waited for any longer. */
  get over(): boolean {
    if (this.#newest >= this.#end) return true;
    for (const [key, source] of this.#sources) {
      if (this.#madeOf(key) < (this.#heard.get(source) ?? Number.NEGATIVE_INFINITY) - CAUGHT_UP_S) return false;
    }
    return true;
  }

  /** The media time that all encodes have reached. */
  get until(): number {
    let until = Number.POSITIVE_INFINITY;
    for (const key of this.#sources.keys()) until = Math.min(until, this.#madeOf(key));
    return until;
  }

  #madeOf(key: string): number {
    return this.#made.get(key) ?? Number.NEGATIVE_INFINITY;
  }
}
