/** Where streams come through on their way between servers, so that none goes in a circle. */
import { createHash, randomUUID } from 'node:crypto';
import { type StreamAddress, streamKey } from '../../core/stream-address.ts';

/** A stream that has passed more servers than this goes in a circle, or might as well. */
const MAX_HOPS = 16;
/** Circles remembered until whoever asked is told. */
const MAX_CIRCLES = 1000;
/** 128 bits. */
const STATION_LENGTH = 22;
/** How the refusal of a stream that goes in a circle begins, in answers between servers. */
export const CIRCLE = 'The stream would go in a circle';

/** One for each server, shared by what serves streams and what pulls them. Needs no closing. */
export class RelayPaths {
  /** Names this server to others, while it runs. */
  readonly id = randomUUID();
  /** Stations that a pulled stream comes through, the nearest first; by stream. */
  readonly #upstream = new Map<string, readonly string[]>();
  /** Streams that could not be pulled because they would go in a circle. */
  readonly #circles = new Set<string>();

  /**
   * How paths name `stream` on this server. A server may pull one stream from itself or back from another as a second one, a transcoded one say:
   * only the same stream goes in a circle. Others learn no names by it.
   */
  stationOf(stream: StreamAddress): string {
    return createHash('sha256')
      .update(`${this.id} ${streamKey(stream)}`)
      .digest('base64url')
      .slice(0, STATION_LENGTH);
  }

  /** The station of `stream`, and those that it comes through. */
  pathOf(stream: StreamAddress): readonly string[] {
    return [this.stationOf(stream), ...(this.#upstream.get(streamKey(stream)) ?? [])].slice(0, MAX_HOPS + 1);
  }

  /** `stream` comes through `path` from now on. Returns how to forget that. */
  pulledThrough(stream: StreamAddress, path: readonly string[]): () => void {
    const key = streamKey(stream);
    this.#upstream.set(key, path);
    return () => {
      if (this.#upstream.get(key) === path) this.#upstream.delete(key);
    };
  }

  /** Why the stations `askers`, the last of which asks here, may not have `stream`; null: they may. */
  circleOf(stream: StreamAddress, askers: readonly string[]): string | null {
    const asker = askers.at(-1) ?? '';
    if (askers.includes(this.stationOf(stream))) return `${CIRCLE}: this server asks for it itself, through ${askers.length} servers`;
    if (askers.length > MAX_HOPS) return `${CIRCLE}: more than ${MAX_HOPS} servers ask each other for it`;
    if (this.#upstream.get(streamKey(stream))?.includes(asker) === true) return `${CIRCLE}: it comes from the server that asks for it`;
    return null;
  }

  /** Why what comes through `path` is not to be pulled as `stream`; null: it is. */
  circleIn(path: readonly string[], stream: StreamAddress | undefined): string | null {
    if (stream !== undefined && path.includes(this.stationOf(stream)))
      return `${CIRCLE}: it comes from this server, through ${path.length} servers`;
    return path.length > MAX_HOPS ? `${CIRCLE}: it has passed more than ${MAX_HOPS} servers` : null;
  }

  /** `stream` could not be pulled because of a circle. */
  noteCircle(stream: StreamAddress): void {
    this.#circles.add(streamKey(stream));
    for (const oldest of this.#circles) {
      if (this.#circles.size <= MAX_CIRCLES) break;
      this.#circles.delete(oldest);
    }
  }

  /** Whether the last try to pull `stream` ended in a circle; told once. */
  takeCircle(stream: StreamAddress): boolean {
    return this.#circles.delete(streamKey(stream));
  }
}
