/** The map file that starts push tasks by the names of streams. */
import type { XmlElement } from '../../config/xml.ts';
import { entriesFor, type MapElement, readStreamMap, type StreamMapEntry } from '../../core/tasks/stream-map.ts';
import { faultOfUrl, isStreamKey, PushProtocol, type PushRequest, pushProtocolOf, trimUrl } from './push-request.ts';

/** An entry of the map. */
export interface PushMapEntry extends StreamMapEntry {
  readonly variantNames: readonly string[];
  readonly protocol: PushProtocol;
  /** Both with macros. */
  readonly url: string;
  readonly streamKey: string;
}

/** The outbound stream that a map is applied to. */
export interface MappedStream {
  readonly app: string;
  readonly name: string;
  readonly sourceName: string;
}

/** The entries that are enabled. Throws `ConfigError` with the line at fault. */
export function parsePushMap(root: XmlElement): PushMapEntry[] {
  return readStreamMap(root, { root: 'PushInfo', item: 'Push' }, entryOf);
}

/** Requests for a stream of these names; `nextId` makes their ids. */
export function pushRequestsFor(entries: readonly PushMapEntry[], stream: MappedStream, nextId: () => string): PushRequest[] {
  return entriesFor(entries, stream).map(({ variantNames, protocol, url, streamKey }) => ({
    ...{ id: nextId(), streamName: stream.name, trackIds: [], variantNames, protocol, isConfig: true },
    ...{ url: withMacros(url, stream), streamKey: withMacros(streamKey, stream) },
  }));
}

function entryOf(push: MapElement): PushMapEntry {
  const { streamName, variantNames } = push;
  const protocol = pushProtocolOf(push.text('Protocol'));
  if (protocol === null) {
    const known = Object.values(PushProtocol).join(', ');
    throw push.fault('Protocol', `must be one of ${known}, but is ${JSON.stringify(push.text('Protocol'))}`);
  }
  const url = trimUrl(push.text('Url'));
  // Macros are replaced by names of streams, which are not longer than this one.
  if (faultOfUrl(protocol, withMacros(url, { app: 'a', name: 'a', sourceName: 'a' })) !== null) {
    throw push.fault('Url', `is no URL for ${protocol}: ${JSON.stringify(url)}`);
  }
  const streamKey = push.text('StreamKey');
  if (!isStreamKey(streamKey)) throw push.fault('StreamKey', 'must be one short line');
  return { streamName, variantNames, protocol, url, streamKey };
}

function withMacros(text: string, { app, name, sourceName }: MappedStream): string {
  return text.replaceAll('${Application}', app).replaceAll('${Stream}', name).replaceAll('${SourceStream}', sourceName);
}
