/** The map file that starts push tasks by the names of streams. */
import { ConfigError } from '../../config/index.ts';
import { parseXml, type XmlElement } from '../../config/xml.ts';
import { compileWildcard } from '../../util/wildcard.ts';
import { faultOfUrl, PushProtocol, type PushRequest, pushProtocolOf, trimUrl } from './push-request.ts';

/** An entry of the map. */
export interface PushMapEntry {
  /** Takes `*` and `?`; the macro for the name of the inbound stream is replaced first. */
  readonly streamName: string;
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
export function parsePushMap(xml: string, file: string): PushMapEntry[] {
  const root = parseXml(xml, file);
  if (root.name !== 'PushInfo') throw fault(root, `the root element must be PushInfo, but is ${root.name}`);
  return root.children.filter(({ name }) => name === 'Push').flatMap(entryOf);
}

/** Requests for a stream of these names; `nextId` makes their ids. */
export function pushRequestsFor(entries: readonly PushMapEntry[], stream: MappedStream, nextId: () => string): PushRequest[] {
  return entries
    .filter(({ streamName }) => compileWildcard(streamName.replaceAll('${SourceStream}', stream.sourceName))(stream.name))
    .map(({ variantNames, protocol, url, streamKey }) => ({
      ...{ id: nextId(), streamName: stream.name, trackIds: [], variantNames, protocol, isConfig: true },
      ...{ url: withMacros(url, stream), streamKey: withMacros(streamKey, stream) },
    }));
}

function entryOf(push: XmlElement): PushMapEntry[] {
  const textOf = (name: string): string => (push.children.find((child) => child.name === name)?.text ?? '').trim();
  if (textOf('Enable').toLowerCase() !== 'true') return [];
  const streamName = textOf('StreamName');
  if (streamName === '') throw fault(push, 'Push/StreamName is missing');
  const protocol = pushProtocolOf(textOf('Protocol'));
  if (protocol === null) {
    const known = Object.values(PushProtocol).join(', ');
    throw fault(push, `Push/Protocol must be one of ${known}, but is ${JSON.stringify(textOf('Protocol'))}`);
  }
  const url = trimUrl(textOf('Url'));
  // Macros stand for names of streams, which need no more room than this one.
  if (faultOfUrl(protocol, withMacros(url, { app: 'a', name: 'a', sourceName: 'a' })) !== null) {
    throw fault(push, `Push/Url is no URL for ${protocol}: ${JSON.stringify(url)}`);
  }
  const variantNames = textOf('VariantNames')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  return [{ streamName, variantNames, protocol, url, streamKey: textOf('StreamKey') }];
}

function withMacros(text: string, { app, name, sourceName }: MappedStream): string {
  return text.replaceAll('${Application}', app).replaceAll('${Stream}', name).replaceAll('${SourceStream}', sourceName);
}

function fault({ file, line, name }: XmlElement, message: string): ConfigError {
  return new ConfigError(`${file}:${line}: ${message}`, { path: name, file, line });
}
