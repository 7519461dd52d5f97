/** Finds multiplex channels that would be made of themselves. */
import { type StreamAddress, streamKey, streamOfUrl, streamText } from '../../core/stream-address.ts';
import type { ChannelDefinition } from './channel-definition.ts';

/** A channel whose output stream is named as a source. */
export interface NamedChannel {
  /** The address of the channel's inbound stream. */
  readonly address: StreamAddress;
  readonly definition: ChannelDefinition;
}

/**
 * Describes the loop from a channel back to itself through its sources; null if there is none. `producerOf` returns the channel that makes
 * an output stream, or null.
 */
export function loopOf(start: NamedChannel, producerOf: (output: StreamAddress) => NamedChannel | null): string | null {
  const goal = streamKey(start.address);
  const seen = new Set<string>();
  const walk = ({ definition }: NamedChannel, path: readonly string[]): readonly string[] | null => {
    for (const { url } of definition.sourceStreams) {
      const source = streamOfUrl(url);
      const channel = source === null ? null : producerOf(source);
      if (source === null || channel === null) continue;
      const next = [...path, streamText(source)];
      const key = streamKey(channel.address);
      if (key === goal) return next;
      if (seen.has(key)) continue;
      seen.add(key);
      const found = walk(channel, next);
      if (found !== null) return found;
    }
    return null;
  };
  const loop = walk(start, [streamText(start.address)]);
  return loop === null ? null : `the channel would be made of itself: ${loop.join(' <- ')}`;
}
