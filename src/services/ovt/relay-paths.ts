/** Paths of streams between servers, so that no stream goes in a loop. */
import { createHash, randomUUID } from 'node:crypto';
import { type StreamAddress, streamKey } from '../../core/stream-address.ts';

/** Limit of servers on a path; a longer path is treated as a loop. */
const MAX_HOPS = 16;
/** Maximum of loops that are remembered until the requesting edge gets the answer. */
const MAX_LOOPS = 1000;
/** 128 bits. */
const STATION_LENGTH = 22;
/**
 * Beginning of the refusal of a stream in a loop, by which servers recognise each other's refusals. Other versions know this text, so it
 * must stay.
 */
export const LOOP_REFUSAL = 'The stream would go in a circle';

/** One per server, shared by its OVT publisher and pull source. Needs no closing. */
export class RelayPaths {
  /** Identifies this server to others while it runs. */
  readonly id = randomUUID();
  /** Stations of a pulled stream, the nearest first; by stream. */
  readonly #upstream = new Map<string, readonly string[]>();
  /** Streams that could not be pulled because they would go in a loop. */
  readonly #loops = new Set<string>();

  /**
   * The name of `stream` on this server in paths. A server may pull a stream from itself or back from another under a second name, e.g. a
   * transcoded one: only the same stream is a loop. Other servers cannot read names from it.
   */
  stationOf(stream: StreamAddress): string {
    return createHash('sha256')
      .update(`${this.id} ${streamKey(stream)}`)
      .digest('base64url')
      .slice(0, STATION_LENGTH);
  }

  /** The station of `stream`, and those on its path. */
  pathOf(stream: StreamAddress): readonly string[] {
    return [this.stationOf(stream), ...(this.#upstream.get(streamKey(stream)) ?? [])].slice(0, MAX_HOPS + 1);
  }

  /** `stream` comes through `path` from now on. Returns a function that removes this entry. */
  pulledThrough(stream: StreamAddress, path: readonly string[]): () => void {
    const key = streamKey(stream);
    this.#upstream.set(key, path);
    return () => {
      if (this.#upstream.get(key) === path) this.#upstream.delete(key);
    };
  }

  /** Why the stations `askers`, the last of which sent the request, may not have `stream`; null: they may. */
  loopOf(stream: StreamAddress, askers: readonly string[]): string | null {
    const asker = askers.at(-1) ?? '';
    if (askers.includes(this.stationOf(stream))) return `${LOOP_REFUSAL}: this server asks for it itself, through ${askers.length} servers`;
    if (askers.length > MAX_HOPS) return `${LOOP_REFUSAL}: more than ${MAX_HOPS} servers ask each other for it`;
    if (this.#upstream.get(streamKey(stream))?.includes(asker) === true)
      return `${LOOP_REFUSAL}: it comes from the server that asks for it`;
    return null;
  }

  /** Why a stream with this `path` must not be pulled as `stream`; null: it may. */
  loopIn(path: readonly string[], stream: StreamAddress | undefined): string | null {
    if (stream !== undefined && path.includes(this.stationOf(stream)))
      return `${LOOP_REFUSAL}: it comes from this server, through ${path.length} servers`;
    return path.length > MAX_HOPS ? `${LOOP_REFUSAL}: it has passed more than ${MAX_HOPS} servers` : null;
  }

  /** `stream` could not be pulled because it would go in a loop. */
  noteLoop(stream: StreamAddress): void {
    this.#loops.add(streamKey(stream));
    for (const oldest of this.#loops) {
      if (this.#loops.size <= MAX_LOOPS) break;
      this.#loops.delete(oldest);
    }
  }

  /** Whether the last attempt to pull `stream` ended in a loop; true only once. */
  takeLoop(stream: StreamAddress): boolean {
    return this.#loops.delete(streamKey(stream));
  }
}
