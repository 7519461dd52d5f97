import { type StreamAddress, streamKey, streamText } from './stream-address.ts';

/** The sources of each stream that is made of others. */
interface Origin {
  readonly key: string;
  readonly text: string;
}

/**
 * Records which inbound streams of the server are made of which others: channels that play live streams, channels that combine tracks,
 * stand-ins. They ask before they use a stream, so that no stream is its own source. Needs no closing.
 */
export class StreamLineage {
  /** Sources of each stream, by `streamKey`; twice if used twice. */
  readonly #origins = new Map<string, Origin[]>();

  /** `stream` uses `source` from now on. Returns an idempotent function that ends this. */
  add(stream: StreamAddress, source: StreamAddress): () => void {
    const key = streamKey(stream);
    const origin = { key: streamKey(source), text: streamText(source) };
    this.#origins.set(key, [...(this.#origins.get(key) ?? []), origin]);
    return () => {
      const rest = this.#origins.get(key)?.filter((each) => each !== origin) ?? [];
      if (rest.length > 0) this.#origins.set(key, rest);
      else this.#origins.delete(key);
    };
  }

  /** The chain of names by which `stream` would be its own source if it used `source`; null: there is none. */
  loopOf(stream: StreamAddress, source: StreamAddress): string | null {
    const goal = streamKey(stream);
    const seen = new Set<string>();
    const walk = ({ key, text }: Origin, path: readonly string[]): readonly string[] | null => {
      const here = [...path, text];
      if (key === goal) return here;
      if (seen.has(key)) return null;
      seen.add(key);
      for (const origin of this.#origins.get(key) ?? []) {
        const found = walk(origin, here);
        if (found !== null) return found;
      }
      return null;
    };
    const loop = walk({ key: streamKey(source), text: streamText(source) }, [streamText(stream)]);
    return loop === null ? null : `${streamText(stream)} would be made of itself: ${loop.join(' <- ')}`;
  }
}
