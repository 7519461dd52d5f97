/** The `Origins` of a virtual host: sources for requested streams that are not being published. */
import type { OriginConfig, OriginsConfig } from '../config/index.ts';
import { type PullDefinition, schemeOf } from './pull.ts';
import type { StreamAddress } from './stream-address.ts';

/** A stream that a viewer requests. */
export interface WantedStream extends StreamAddress {
  /** Raw query of the request, without `?`; '' when there is none. */
  readonly query: string;
  /** Address of the client that asks; absent: the server itself asks. */
  readonly client?: string;
  /** Ids of the servers that ask for the stream, the first to ask first; absent: the client is not a server. */
  readonly via?: readonly string[];
}

/** Keys of queries whose values are for this server alone, in lower case. */
export type SecretKeys = readonly string[];

const DEFAULTS = { noInputFailoverTimeout: 3000, unusedStreamDeletionTimeout: 60_000, streamFailbackTimeout: 3000, retryCount: 1 };

/** The pull for `wanted` by the first matching origin; null without one. Parameters in `secrets` are not passed on to origins. */
export function originPull(
  origins: Partial<OriginsConfig> | undefined,
  wanted: WantedStream,
  secrets: SecretKeys = [],
): PullDefinition | null {
  const path = `/${wanted.app}/${wanted.stream}`;
  const origin = origins?.origin?.find(({ location, strictLocation }) => (strictLocation ? path === location : path.startsWith(location)));
  if (origin === undefined || origin.pass.urls.url.length === 0) return null;
  const query = withoutSecrets(wanted.query, secrets);
  const failbackMs = origins?.properties?.streamFailbackTimeout || DEFAULTS.streamFailbackTimeout;
  return {
    name: wanted.stream,
    urls: origin.pass.urls.url.map((url) => composed(origin, url, path, query)),
    properties: {
      persistent: origin.persistent,
      ...commonProperties(origins),
      ignoreRtcpSRTimestamp: origin.ignoreRtcpSRTimestamp,
      relay: origin.relay === true,
      ...(origin.failback && { failbackMs }),
    },
    configured: true,
    ...(wanted.via !== undefined && { via: wanted.via }),
  };
}

/**
 * The pull for `wanted` from the server in the origin map, with the settings of all origins. `successor` asks the map again if that server
 * is lost.
 */
export function mappedPull(
  origins: Partial<OriginsConfig> | undefined,
  { stream, via }: WantedStream,
  { url, successor }: { readonly url: string; readonly successor: () => Promise<string | null> },
): PullDefinition {
  return {
    name: stream,
    urls: [url],
    properties: { persistent: false, ...commonProperties(origins), ignoreRtcpSRTimestamp: false, relay: /^ovts?$/.test(schemeOf(url)) },
    configured: true,
    fromOriginMap: true,
    successor,
    ...(via !== undefined && { via }),
  };
}

/** Times of 0 mean the defaults. */
function commonProperties(origins: Partial<OriginsConfig> | undefined) {
  const properties = { ...DEFAULTS, ...origins?.properties };
  return {
    noInputFailoverTimeoutMs: properties.noInputFailoverTimeout || DEFAULTS.noInputFailoverTimeout,
    unusedStreamDeletionTimeoutMs: properties.unusedStreamDeletionTimeout || DEFAULTS.unusedStreamDeletionTimeout,
    retryCount: properties.retryCount,
  };
}

/** The URL to pull: scheme and URL of the origin, the rest of the viewer's path after the location, and both queries. */
function composed({ location, pass }: OriginConfig, url: string, path: string, query: string): string {
  const [, base = '', own = ''] = /^([^?]*)\??(.*)$/s.exec(url) ?? [];
  // The viewer's path was decoded, the origin reads an encoded one.
  const rest = path.slice(location.length).split('/').map(encodeURIComponent).join('/');
  const queries = [own, pass.forwardQueryParams ? query : ''].filter((part) => part !== '').join('&');
  // A source without a path ends with host and port: the viewer's path must not extend them.
  const joint = rest === '' || rest.startsWith('/') || base.includes('/') ? '' : '/';
  return `${pass.scheme}://${base}${joint}${rest}${queries === '' ? '' : `?${queries}`}`;
}

/** The query without secret parameters; all others keep their order and their encoding. */
function withoutSecrets(query: string, secrets: SecretKeys): string {
  if (secrets.length === 0) return query;
  const isSecret = (parameter: string): boolean => secrets.includes(parameter.split('=', 1)[0]?.toLowerCase() ?? '');
  return query
    .split('&')
    .filter((parameter) => !isSecret(parameter))
    .join('&');
}
